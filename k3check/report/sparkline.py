"""A series of numbers as one line of block characters."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

BLOCKS = "▁▂▃▄▅▆▇█"
NOT_FINITE = "!"
_LOGARITHMIC_FROM = 100.0  # a span above this ratio would draw everything but the peak as flat


def pool(values: Sequence[float], width: int) -> list[float]:
    """At most ``width`` values, each the largest (or a non-finite one) of its stretch.

    The largest, because a single bad position must stay visible.
    """
    if len(values) <= width:
        return list(values)
    edges = [round(i * len(values) / width) for i in range(width + 1)]
    pooled = []
    for start, stop in pairwise(edges):
        stretch = values[start:stop]
        pooled.append(next((v for v in stretch if not math.isfinite(v)), max(stretch)))
    return pooled


def sparkline(values: Sequence[float], width: int = 48) -> str:
    """Draw values with eight heights, on a logarithmic scale when they span two decades.

    Args:
        values: the series; non-finite values show as ``!``.
        width: the most characters to use.
    """
    points = pool(values, width)
    finite = [value for value in points if math.isfinite(value)]
    if not finite:
        return NOT_FINITE * len(points)
    low, high = min(finite), max(finite)
    if low > 0 and high / low > _LOGARITHMIC_FROM:
        points = [math.log(v) if math.isfinite(v) else v for v in points]
        low, high = math.log(low), math.log(high)
    span = high - low
    return "".join(
        NOT_FINITE
        if not math.isfinite(v)
        else BLOCKS[0 if span == 0 else min(7, int((v - low) / span * 8))]
        for v in points
    )
