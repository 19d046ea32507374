"""The built-in gated norm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def gated_rms_norm(
    x: torch.Tensor, gate: torch.Tensor, gain: torch.Tensor, eps: float = 1e-5
) -> torch.Tensor:
    """RMSNorm over the last dimension, then a sigmoid gate.

    Args:
        x, gate: [..., D].
        gain: [D].
        eps: inside the root.

    Returns:
        [..., D] in the dtype of x; computed in float32 (in float64 for float64).
    """
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    value = x.to(wide)
    scale = torch.rsqrt(torch.linalg.vecdot(value, value) / x.shape[-1] + eps).unsqueeze(-1)
    return (value * scale * gain.to(wide) / (1 + torch.exp(-gate.to(wide)))).to(x.dtype)


def builtin(_settings: Mapping[str, Mapping[str, Any]]) -> Callable[..., Any]:
    """The built-in of ``gated_rms_norm``."""
    return gated_rms_norm
