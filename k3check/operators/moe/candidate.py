"""The built-in router, activation and expert layer. Shares no line with the references."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def _wide(x: torch.Tensor) -> torch.Tensor:
    """float32, unless it is float64 already."""
    return x if x.dtype == torch.float64 else x.float()


def moe_router(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    top_k: int = 16,
    *,
    renormalize: bool = True,
    scaling: float = 1.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Choose the experts of every token.

    Args:
        hidden: [T, D], the full width, after the norm.
        weight: [E, D].
        bias: [E], float32; it takes part in the choice and in nothing else.
        top_k: experts per token.
        renormalize: the weights of a token sum to ``scaling``.
        scaling: factor of the weights.

    Returns:
        (ids [T, top_k] int64, weights [T, top_k] float32), best first.
    """
    scores = torch.sigmoid(torch.einsum("td,ed->te", _wide(hidden), _wide(weight)))
    ids = torch.topk(scores + bias.to(scores.dtype), top_k, dim=-1).indices
    weights = torch.take_along_dim(scores, ids, dim=-1)
    if renormalize and top_k > 1:
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
    return ids, weights * scaling


def situ_and_mul(
    x: torch.Tensor, beta: float = 4.0, linear_beta: float | None = 25.0
) -> torch.Tensor:
    """SiTU-GLU of a packed input.

    Args:
        x: [..., 2 I], the gate's half first.
        beta: bound of the gate.
        linear_beta: bound of the up branch; None leaves it as it is.

    Returns:
        [..., I] in the dtype of x; computed in float32 (in float64 for float64).
    """
    half = x.shape[-1] // 2
    gate, up = _wide(x[..., :half]), _wide(x[..., half:])
    if linear_beta is not None:
        up = torch.tanh(up / linear_beta) * linear_beta
    return (torch.tanh(gate / beta) * beta / (1 + torch.exp(-gate)) * up).to(x.dtype)


def router_builtin(_settings: Mapping[str, Mapping[str, Any]]) -> Callable[..., Any]:
    """The built-in of ``moe_router``."""
    return moe_router


def situ_builtin(_settings: Mapping[str, Mapping[str, Any]]) -> Callable[..., Any]:
    """The built-in of ``situ_glu``; a configured clip is the article's check's matter."""
    return situ_and_mul


def latent_moe(
    x: torch.Tensor,
    ids: torch.Tensor,
    weights: torch.Tensor,
    w_down: torch.Tensor,
    w1: torch.Tensor,
    w3: torch.Tensor,
    w2: torch.Tensor,
    gain: torch.Tensor,
    w_up: torch.Tensor,
    s1: torch.Tensor,
    s3: torch.Tensor,
    s2: torch.Tensor,
    eps: float = 1e-5,
) -> torch.Tensor:
    """The latent expert layer: each expert on the tokens that chose it.

    Args:
        x: [T, D].
        ids: [T, k].
        weights: [T, k], float32.
        w_down: [L, D], into the latent.
        w1, w3: [E, I, L], gate and up.
        w2: [E, L, I].
        gain: [L], of the norm after the sum.
        w_up: [D, L].
        s1, s3: [S, D], the shared experts as one MLP.
        s2: [D, S].
        eps: of the norm.

    Returns:
        [T, D] in the dtype of x.
    """
    z = x @ w_down.mT
    total = torch.zeros(z.shape, dtype=_wide(z).dtype, device=z.device)
    for expert in range(w1.shape[0]):
        rows, slots = torch.where(ids == expert)
        if len(rows):
            own = z[rows]
            hidden = situ_and_mul(torch.cat([own @ w1[expert].mT, own @ w3[expert].mT], dim=-1))
            y = _wide(hidden @ w2[expert].mT)
            total.index_add_(0, rows, weights[rows, slots, None].to(y.dtype) * y)
    total = _wide(total.to(x.dtype))
    total = total * torch.rsqrt(total.pow(2).mean(-1, keepdim=True) + eps)
    routed = (total * _wide(gain)).to(x.dtype) @ w_up.mT
    shared = situ_and_mul(torch.cat([x @ s1.mT, x @ s3.mT], dim=-1)) @ s2.mT
    return routed + shared


def latent_builtin(_settings: Mapping[str, Mapping[str, Any]]) -> Callable[..., Any]:
    """The built-in of ``latent_moe``."""
    return latent_moe
