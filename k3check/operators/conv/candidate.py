"""The built-in short convolution: torch's grouped convolution on the state and the inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def short_conv(
    x: torch.Tensor,
    weight: torch.Tensor,
    initial_state: torch.Tensor | None = None,
    cu_seqlens: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Depthwise causal convolution with SiLU.

    Args:
        x: [B, T, C].
        weight: [C, W], the current token's weight last.
        initial_state: [N, C, W - 1], the inputs before the first token, oldest first.
        cu_seqlens: [N + 1], sequences packed into one row (then B is 1).

    Returns:
        (output [B, T, C], state after the last token [N, C, W - 1]), in the dtype of x.
    """
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    C, W = weight.shape
    pieces = list(x.split(1)) if cu_seqlens is None else list(
        x.split(cu_seqlens.diff().tolist(), dim=1)
    )  # fmt: skip
    if initial_state is None:
        initial_state = x.new_zeros(len(pieces), C, W - 1)
    outputs, states = [], []
    for piece, state in zip(pieces, initial_state.split(1), strict=True):
        line = torch.cat([state, piece.mT], dim=-1)
        y = piece.mT.to(wide)
        if piece.shape[1]:  # torch convolves no empty sequence
            y = F.conv1d(line.to(wide), weight.to(wide).unsqueeze(1), groups=C)
        outputs.append(F.silu(y).mT.to(x.dtype))
        states.append(line[..., line.shape[-1] - (W - 1) :])
    output = torch.cat(outputs, dim=0 if cu_seqlens is None else 1)
    return output, torch.cat(states)


def builtin(_settings: Mapping[str, Mapping[str, Any]]) -> Callable[..., Any]:
    """The built-in of ``short_conv``."""
    return short_conv
