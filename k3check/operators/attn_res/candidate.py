"""The built-in mix: one pass over the sources with a running maximum, as a kernel would do it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def attn_res(
    sources: torch.Tensor, query: torch.Tensor, gain: torch.Tensor, eps: float = 1e-5
) -> torch.Tensor:
    """Mix the sources of every token.

    Args:
        sources: [N, T, D]: snapshots, oldest first, then the running sum.
        query: [D], the learned pseudo-query.
        gain: [D], gain of the key norm.
        eps: of the key norm, inside the root.

    Returns:
        [T, D] in the sources' dtype; computed in float32 (in float64 for float64).
    """
    wide = torch.float64 if sources.dtype == torch.float64 else torch.float32
    direction = gain.to(wide) * query.to(wide)
    first = sources[0].to(wide)
    top = first.new_full((first.shape[0],), float("-inf"))
    total = torch.zeros_like(top)
    sum_ = torch.zeros_like(first)
    for source in sources:
        value = source.to(wide)
        score = value @ direction * (value.pow(2).mean(-1) + eps).rsqrt()
        higher = torch.maximum(top, score)
        keep, new = (top - higher).exp(), (score - higher).exp()
        sum_ = keep.unsqueeze(-1) * sum_ + new.unsqueeze(-1) * value
        total = keep * total + new
        top = higher
    return (sum_ / total.unsqueeze(-1)).to(sources.dtype)


def stack(
    hidden: torch.Tensor,
    sublayers: Sequence[Callable[[torch.Tensor], torch.Tensor]],
    queries: torch.Tensor,
    gains: torch.Tensor,
    block_size: int,
    eps: float = 1e-5,
    mix: Callable[..., torch.Tensor] = attn_res,
) -> torch.Tensor:
    """Walk a stack of layers with attention residuals over a preallocated bank of snapshots.

    Args:
        hidden: [T, D], the embedding.
        sublayers: attention and MLP of every layer in turn, norms included: [T, D] -> [T, D].
        queries, gains: [2 L + 1, D], of every sub-layer's mix and of the last one.
        block_size: layers of a block.
        eps: of the key norms.
        mix: one mix, ``mix(sources, query, gain, eps)``.

    Returns:
        [T, D]: the last mix, before the final norm.
    """
    layers = len(sublayers) // 2
    slots = -(-layers // block_size)
    bank = hidden.new_empty(slots + 1, *hidden.shape)
    filled, fresh = 0, False
    bank[0] = hidden  # the place after the snapshots holds the running sum
    for number, sublayer in enumerate(sublayers):
        sources = bank[: filled if fresh else filled + 1]
        value = sources[0] if filled == 0 else mix(sources, queries[number], gains[number], eps)
        if number % (2 * block_size) == 0:
            filled, fresh = filled + 1, True
        update = sublayer(value)
        bank[filled] = update if fresh else bank[filled] + update
        fresh = False
    return mix(bank[: filled + 1], queries[-1], gains[-1], eps)


def builtin(_settings: Mapping[str, Mapping[str, Any]]) -> Callable[..., Any]:
    """The built-in of the operator ``attn_res``."""
    return attn_res
