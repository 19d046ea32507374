"""Distances between an output and its reference, computed in float64.

The distance that verdicts rest on is the relative L2 error, sqrt(sum (x - r)^2 / sum r^2), over
the whole tensor and over each window of tokens, each head and each channel. A whole-tensor norm
alone dilutes one bad head or token; an elementwise rule alone is blind to scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WINDOW = 32
#: What a part of a tensor (one window, head or channel) is measured against is at least this
#: share of the whole tensor's RMS: a head that is nearly zero has no relative error worth judging.
LEAST_PART = 1e-2

#: axis in the tensor -> name of the metric over its parts
PARTS = {"token": "worst_window", "head": "worst_head", "channel": "worst_channel"}


@dataclass(frozen=True)
class Part:
    """The relative errors of a tensor's parts along one axis, and which is the worst."""

    errors: torch.Tensor
    worst: float
    index: int


@dataclass(frozen=True)
class Measurement:
    """How far a tensor is from its reference.

    Attributes:
        relative_l2: over the whole tensor.
        parts: by metric name (``worst_window`` ...).
        max_abs: largest absolute deviation; its multi-dimensional index is ``max_index``.
        cosine: of the angle between the two, explanatory only: it cannot see a scale.
        best_scale: the factor a that minimises |x - a r|.
        reference_rms: size of the reference.
    """

    relative_l2: float
    parts: Mapping[str, Part] = field(default_factory=dict)
    max_abs: float = 0.0
    max_index: tuple[int, ...] = ()
    cosine: float = 1.0
    best_scale: float = 1.0
    reference_rms: float = 0.0

    def values(self) -> dict[str, float]:
        """Metric name -> value, for those that are judged."""
        return {"relative_l2": self.relative_l2} | {n: p.worst for n, p in self.parts.items()}


def relative_l2(actual: torch.Tensor, expected: torch.Tensor) -> float:
    """sqrt(sum (actual - expected)^2 / sum expected^2); inf where only the reference is zero."""
    difference = (actual.double() - expected.double()).norm().item()
    size = expected.double().norm().item()
    if size == 0.0:
        return 0.0 if difference == 0.0 else math.inf
    return difference / size


def measure(actual: torch.Tensor, expected: torch.Tensor, axes: tuple[str, ...]) -> Measurement:
    """Measure two finite tensors of one shape.

    Args:
        actual, expected: any floating dtype; compared in float64.
        axes: the name of each dimension; ``token``, ``head`` and ``channel`` get parts.
    """
    if expected.numel() == 0:
        return Measurement(0.0)
    reference = expected.double()
    deviation = actual.double() - reference
    squares, sizes = deviation.square(), reference.square()
    total = sizes.mean().item()
    largest = int(deviation.abs().argmax())
    inner = float((actual.double() * reference).sum())
    own = float(actual.double().square().sum())
    reference_sum = float(sizes.sum())
    return Measurement(
        relative_l2=_ratio(float(squares.sum()), reference_sum),
        parts={
            PARTS[axis]: _part(squares, sizes, dim, axis, total)
            for dim, axis in enumerate(axes)
            if axis in PARTS and expected.shape[dim] > 1
        },
        max_abs=deviation.flatten()[largest].abs().item(),
        max_index=unravelled(largest, expected.shape),
        cosine=inner / math.sqrt(own * reference_sum) if own and reference_sum else 0.0,
        best_scale=inner / reference_sum if reference_sum else math.nan,
        reference_rms=math.sqrt(total),
    )


def _ratio(error: float, size: float) -> float:
    return math.sqrt(error / size) if size else (0.0 if error == 0 else math.inf)


def _part(
    squares: torch.Tensor, sizes: torch.Tensor, dim: int, axis: str, mean_square: float
) -> Part:
    """Relative error of every slice along one dimension (of every window, for tokens)."""
    others = [d for d in range(squares.dim()) if d != dim]
    error, size = (x.mean(dim=others) if others else x for x in (squares, sizes))
    if axis == "token":
        error, size = (_windows(x) for x in (error, size))
    floor = LEAST_PART**2 * mean_square
    ratios = (
        error / size.clamp(min=floor if floor > 0 else torch.finfo(torch.float64).tiny)
    ).sqrt()
    worst = int(ratios.argmax())
    return Part(ratios, ratios[worst].item(), worst)


def _windows(x: torch.Tensor) -> torch.Tensor:
    """Means over windows of tokens; the last one may be shorter."""
    return torch.stack([part.mean() for part in x.split(WINDOW)])


def unravelled(flat: int, shape: Sequence[int]) -> tuple[int, ...]:
    """The index of an element that is given by its place in row-major order.

    ``torch.unravel_index`` does the same, and imports a computer algebra system for it.
    """
    index = []
    for size in reversed(shape):
        flat, place = divmod(flat, size)
        index.append(place)
    return tuple(reversed(index))
