"""One sequence in the form that both forms of the recurrence work on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Sequence:
    """One sequence in the form that the recurrence works on, in compute precision.

    ``q, k, g`` are [B, HV, T, K] (query heads already spread over value heads, q scaled),
    ``v`` is [B, HV, T, V], ``beta`` [B, HV, T], ``state`` [B, HV, K, V].
    """

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    g: torch.Tensor
    beta: torch.Tensor
    state: torch.Tensor
