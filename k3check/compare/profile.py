"""What a deviation looks like: rounding or structure, and where it begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

#: A deviation of more than this many times the baseline's is not rounding of the same recipe.
ROUNDING_AT_MOST = 8.0


@dataclass(frozen=True)
class ErrorProfile:
    """The error of an output over its tokens.

    Attributes:
        per_token: relative L2 of every token's row against the RMS of the whole tensor.
        first_bad: first token whose error exceeds what rounding explains, None if none does.
        looks_like: ``rounding``, ``structure`` or ``precision`` (larger than the baseline, but
            small and spread evenly: the same formula in a lower precision).
    """

    per_token: tuple[float, ...]
    first_bad: int | None
    looks_like: str


def error_profile(
    actual: torch.Tensor, expected: torch.Tensor, baseline: torch.Tensor, axes: Sequence[str]
) -> ErrorProfile:
    """Profile of an output with a ``token`` axis, or of a whole tensor without one."""
    own, usual = (_per_token(x, expected, axes) for x in (actual, baseline))
    typical = usual.square().mean().sqrt().clamp(min=torch.finfo(torch.float64).eps)
    ratio = own / torch.maximum(usual, typical)
    bad = (ratio > ROUNDING_AT_MOST).nonzero().flatten()
    overall = (own.square().mean().sqrt() / typical).item()
    if len(bad) == 0 and overall <= ROUNDING_AT_MOST:
        looks = "rounding"
    elif own.max().item() < 0.1 and _even(own):
        looks = "precision"
    else:
        looks = "structure"
    first = int(bad[0]) if len(bad) else None
    return ErrorProfile(tuple(own.tolist()), first, looks)


def _per_token(x: torch.Tensor, expected: torch.Tensor, axes: Sequence[str]) -> torch.Tensor:
    """RMS of the error at each token over the RMS of the whole reference."""
    reference = expected.double()
    size = reference.square().mean().sqrt().clamp(min=torch.finfo(torch.float64).tiny)
    squares = (x.double() - reference).square()
    if "token" not in axes:
        return (squares.mean().sqrt() / size).reshape(1)
    dim = list(axes).index("token")
    others = [d for d in range(squares.dim()) if d != dim]
    return squares.mean(dim=others).sqrt() / size


def _even(errors: torch.Tensor) -> bool:
    """No token's error stands out: the largest is within a few times the typical one."""
    typical = errors.median().item()
    return typical > 0 and errors.max().item() <= 6 * typical


def sparkline_series(values: Sequence[float], points: int = 64) -> list[float]:
    """Shorten a series to at most ``points`` values, each the largest of its stretch."""
    if len(values) <= points:
        return list(values)
    step = len(values) / points
    return [max(values[int(i * step) : int((i + 1) * step)]) for i in range(points)]
