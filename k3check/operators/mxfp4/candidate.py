"""The built-in dequantisation: a table of sixteen values and ldexp."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TABLE = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)


def mxfp4_dequant(
    packed: torch.Tensor,
    scale: torch.Tensor,
    dtype: torch.dtype = torch.bfloat16,
    at_255: float = torch.nan,
) -> torch.Tensor:
    """Dequantise weights.

    Args:
        packed: uint8 [R, C / 2], two columns a byte, the even one in the low half.
        scale: uint8 [R, C / 32], exponents with a bias of 127; 255 is no number.
        dtype: of the result.
        at_255: what stands where the scale is 255.

    Returns:
        [R, C].
    """
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    table = torch.tensor(TABLE, dtype=wide, device=packed.device)
    out = torch.empty(len(packed), 2 * packed.shape[1], dtype=wide, device=packed.device)
    out[:, 0::2] = table[(packed & 0x0F).int()]
    out[:, 1::2] = table[(packed >> 4).int()]
    exponent = (scale.int() - 127).unsqueeze(-1)
    # In two steps: the exponent alone is beyond float32's smallest normal number.
    half = exponent // 2
    grouped = out.view(len(packed), -1, 32)
    grouped = torch.ldexp(torch.ldexp(grouped, half), exponent - half)
    grouped = torch.where(scale.unsqueeze(-1) == 255, at_255, grouped)
    return grouped.reshape(out.shape).to(dtype)


def builtin(settings: Mapping[str, Mapping[str, Any]]) -> Callable[..., Any]:
    """The built-in of ``mxfp4_dequant``."""
    if settings.get("semantics", {}).get("name") == "zero-255":
        return partial(mxfp4_dequant, at_255=0.0)
    return mxfp4_dequant
