"""The dual-benchmark rule: a candidate's errors over a baseline's, elementwise relative.

For teams that must report by it (``--standard cann-l0|cann-l1|cann-l2``). Three numbers, each the
candidate's over the baseline's, both against the float64 reference: the largest and the mean
relative error |x - r| / (|r| + 1e-7), and the root of the mean square error.

Source of the levels: the accuracy standard of Ascend operators (CANN), as used by msprobe:
L0 10 / 2 / 2, L1 5 / 1.5 / 1.5, L2 2 / 1.2 / 1.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

#: level -> largest allowed ratio of (maximum relative error, mean relative error, RMSE)
LEVELS = {
    "cann-l0": (10.0, 2.0, 2.0),
    "cann-l1": (5.0, 1.5, 1.5),
    "cann-l2": (2.0, 1.2, 1.2),
}
METRICS = ("max_relative_error_ratio", "mean_relative_error_ratio", "rmse_ratio")
#: keeps a relative error finite where the reference is zero
SMALL = 1e-7


@dataclass(frozen=True)
class Errors:
    """Elementwise errors of a tensor against its reference."""

    largest: float
    mean: float
    rmse: float


def errors(x: torch.Tensor, reference: torch.Tensor) -> Errors:
    """Measure finite tensors of one shape, in float64."""
    r = reference.double()
    gap = (x.double() - r).abs()
    relative = gap / (r.abs() + SMALL)
    return Errors(
        relative.max().item() if r.numel() else 0.0,
        relative.mean().item() if r.numel() else 0.0,
        gap.square().mean().sqrt().item() if r.numel() else 0.0,
    )


def ratios(
    candidate: torch.Tensor, baseline: torch.Tensor, reference: torch.Tensor
) -> dict[str, float]:
    """The three ratios by metric name.

    A baseline that happens to be exact is counted with a small part of an epsilon of the output's
    precision: less than any rounding costs, so that it never counts where there is one.
    """
    own, usual = errors(candidate, reference), errors(baseline, reference)
    least = torch.finfo(baseline.dtype).eps / 32
    size = reference.double().square().mean().sqrt().item() if reference.numel() else 0.0
    pairs = (
        (own.largest, max(usual.largest, least)),
        (own.mean, max(usual.mean, least)),
        (own.rmse, max(usual.rmse, size * least)),
    )
    return {name: _ratio(value, base) for name, (value, base) in zip(METRICS, pairs, strict=True)}


def _ratio(value: float, base: float) -> float:
    if base == 0.0:
        return 1.0 if value == 0.0 else float("inf")
    return value / base
