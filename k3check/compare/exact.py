"""Outputs that have one right value: compared element by element, without a tolerance."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.nouns.operator import Output


@dataclass(frozen=True)
class Exactness:
    """How many elements are another value.

    Attributes:
        problem, location: the first one, None if there is none.
        metrics, limits: their number.
    """

    problem: Message | None = None
    location: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[Message, ...] = ()


def exactness(output: Output, actual: torch.Tensor, expected: torch.Tensor) -> Exactness:
    """Compare with the reference rounded to the output's dtype; NaN equals NaN, 0 equals -0."""
    rounded = expected.to(actual.dtype)
    wrong = (actual != rounded) & ~(torch.isnan(actual) & torch.isnan(rounded))
    key = f"{output.name}.wrong_elements"
    metrics, limits = {key: float(wrong.sum())}, {key: 0.0}
    if not wrong.any():
        return Exactness(None, {}, metrics, limits)
    place = [int(i) for i in wrong.nonzero()[0]]
    values = {
        "tensor": output.name,
        "count": int(wrong.sum()),
        "total": wrong.numel(),
        "index": place,
        "found": f"{actual[tuple(place)].item():.6g}",
        "expected": f"{rounded[tuple(place)].item():.6g}",
    }
    location = {"tensor": output.name} | dict(zip(output.axes, place, strict=False))
    return Exactness(Message("K3O-450", values), location, metrics, limits)
