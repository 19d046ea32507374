"""The built-in gated MLA, in its absorbed form: latents are never expanded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def _norm(x: torch.Tensor, gain: torch.Tensor, eps: float) -> torch.Tensor:
    wide = x if x.dtype == torch.float64 else x.float()
    return (torch.nn.functional.rms_norm(wide, wide.shape[-1:], eps=eps) * gain).to(x.dtype)


def gated_mla(
    x: torch.Tensor,
    w_qa: torch.Tensor,
    q_gain: torch.Tensor,
    w_qb: torch.Tensor,
    w_kva: torch.Tensor,
    kv_gain: torch.Tensor,
    w_kvb: torch.Tensor,
    w_g: torch.Tensor,
    w_o: torch.Tensor,
    *,
    heads: int,
    nope: int,
    pe: int,
    value: int,
    latent: int,
    eps: float = 1e-6,
    past: torch.Tensor | None = None,
    absorbed: bool = True,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gated multi-head latent attention without rotary positions.

    Args:
        x: [B, T, D], the normed layer input.
        w_qa: [Rq, D]; ``q_gain`` [Rq]; ``w_qb`` [H (nope + pe), Rq].
        q_gain: see ``w_qa``.
        w_qb: see ``w_qa``.
        w_kva: [latent + pe, D]; ``kv_gain`` [latent]; ``w_kvb`` [H (nope + value), latent].
        kv_gain: see ``w_kva``.
        w_kvb: see ``w_kva``.
        w_g: [H value, D], of the output gate.
        w_o: [D, H value].
        heads: H.
        nope: width of a key's part from the latent.
        pe: width of its shared part.
        value: width of a value.
        latent: width of the latent.
        eps: of both latent norms.
        past: [B, P, latent + pe], cached rows of earlier tokens.
        absorbed: fold w_kvb into queries and outputs; False expands keys and values.

    Returns:
        (output [B, T, D], this call's cache rows [B, T, latent + pe]).
    """
    B, T, _ = x.shape
    q = (_norm(x @ w_qa.mT, q_gain, eps) @ w_qb.mT).view(B, T, heads, nope + pe)
    c, k_pe = (x @ w_kva.mT).split([latent, pe], dim=-1)
    rows = torch.cat([_norm(c, kv_gain, eps), k_pe], dim=-1)
    cache = rows if past is None else torch.cat([past, rows], dim=1)
    up_k, up_v = w_kvb.view(heads, nope + value, latent).split([nope, value], dim=1)
    hidden = torch.ones(T, cache.shape[1], dtype=torch.bool, device=x.device).triu(
        cache.shape[1] - T + 1
    )
    if absorbed:
        q_latent = torch.einsum("bthn,hnl->bthl", q[..., :nope], up_k)
        full = torch.cat([q_latent, q[..., nope:]], dim=-1)
        scores = torch.einsum("bthl,bsl->bhts", full, cache)
    else:
        keys = torch.einsum("bsl,hnl->bshn", cache[..., :latent], up_k)
        shared = cache[:, :, None, latent:].expand(-1, -1, heads, -1)
        scores = torch.einsum("bthn,bshn->bhts", q, torch.cat([keys, shared], dim=-1))
    wide = scores if scores.dtype == torch.float64 else scores.float()
    weights = (wide * (nope + pe) ** -0.5).masked_fill(hidden, -torch.inf).softmax(-1).to(x.dtype)
    if absorbed:
        mixed = torch.einsum("bhts,bsl->bthl", weights, cache[..., :latent])
        o = torch.einsum("bthl,hvl->bthv", mixed, up_v)
    else:
        values = torch.einsum("bsl,hvl->bshv", cache[..., :latent], up_v)
        o = torch.einsum("bhts,bshv->bthv", weights, values)
    return (o.reshape(B, T, -1) * torch.sigmoid(x @ w_g.mT)) @ w_o.mT, rows


def builtin(_settings: Mapping[str, Mapping[str, Any]]) -> Callable[..., Any]:
    """The built-in of ``gated_mla``."""
    return gated_mla
