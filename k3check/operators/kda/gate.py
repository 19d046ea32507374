"""From raw projections to what the recurrence uses: decay, beta, normalised q and k."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from k3check.mutate.site import at

if TYPE_CHECKING:
    from k3check.operators.kda.semantics import KdaSemantics

LN2 = math.log(2.0)
GATE = "batch token head key"


def rate(semantics: KdaSemantics, A_log: torch.Tensor, heads: int, K: int) -> torch.Tensor:
    """The factor that multiplies the raw gate, broadcastable to [HV, K].

    ``A_log`` may hold more entries than there are heads (K3 stores 128 for 96): the first
    ``heads`` count.
    """
    flat = A_log.flatten()
    if semantics.rate == "by_channel":  # indexed by channel instead of head
        return flat[torch.arange(K, device=flat.device) % flat.numel()].exp().expand(heads, K)
    per_head = flat[:heads]
    if semantics.rate == "first_head":
        per_head = per_head[:1].expand(heads)
    factor = {
        "exp": per_head.exp(),
        "first_head": per_head.exp(),
        "plain": per_head,
        "double_exp": per_head.exp().exp(),
        "one": torch.ones_like(per_head),
    }[semantics.rate]
    return factor[:, None]


def bias(semantics: KdaSemantics, dt_bias: torch.Tensor, heads: int, K: int) -> torch.Tensor:
    """The bias added to the raw gate, [HV, K]."""
    flat = dt_bias.flatten()
    if semantics.bias == "dropped":
        return torch.zeros_like(flat).reshape(heads, K)
    if semantics.bias == "per_head":  # read at [h] instead of [h, c]
        return flat[:heads, None].expand(heads, K)
    if semantics.bias == "transposed":  # read as [K, HV]
        return flat.reshape(K, heads).T
    shaped = flat.reshape(heads, K)
    return 2 * shaped if semantics.bias == "twice" else shaped


def log_decay(
    semantics: KdaSemantics,
    raw: torch.Tensor,
    A_log: torch.Tensor | None,
    dt_bias: torch.Tensor | None,
    *,
    coarse_log: bool = False,
) -> torch.Tensor:
    """The log decay g <= 0 of the raw gate.

    Args:
        semantics: the gate's form.
        raw: [B, T, HV, K].
        A_log: [HV] or longer, None for a rate of one.
        dt_bias: [HV, K] or [HV * K], None for no bias.
        coarse_log: see :class:`k3check.nouns.recipe.Arithmetic`.

    Returns:
        [B, T, HV, K] in ``raw``'s dtype.

    Source: lower bound ``LB * sigmoid(exp(A_log) * (x + dt_bias))`` and softplus
    ``-exp(A_log) * softplus(x + dt_bias)``, fla ``fla/ops/kda/gate.py``; floor
    ``ln(sigmoid(x) * 0.99 + 0.01)``, the first article.
    """
    heads, K = raw.shape[-2:]
    one = torch.ones((), dtype=raw.dtype, device=raw.device)
    factor = one if A_log is None else rate(semantics, A_log.to(raw.dtype), heads, K)
    shift = (
        torch.zeros_like(one)
        if dt_bias is None
        else bias(semantics, dt_bias.to(raw.dtype), heads, K)
    )
    if A_log is not None:
        factor = at("rate", factor.expand(heads, K), "head key")
    if dt_bias is not None:
        shift = at("bias", shift, "head key")
    signed = at("raw gate", semantics.gate_sign * raw, GATE)
    if semantics.gate == "floor":
        opened = at("gate sigmoid", torch.sigmoid(signed), GATE)
        gain, least = at("floor gain", 1 - semantics.floor), semantics.floor
        alpha = gain * opened + at("floor", least)
        return at("alpha", alpha, GATE).log()
    if semantics.gate in ("softplus", "clamped_softplus"):
        x = signed + shift if semantics.bias != "after_rate" else signed
        x = at("biased gate", x, GATE)
        g = -factor * at("gate softplus", softplus(x, coarse_log=coarse_log), GATE)
        if semantics.bias == "after_rate":
            g = g + shift
        return g.clamp(min=semantics.lower_bound) if semantics.gate == "clamped_softplus" else g
    if semantics.rate_place == "outside":
        g = semantics.lower_bound * factor * torch.sigmoid(signed + shift)
    elif semantics.bias == "after_rate":
        g = semantics.lower_bound * torch.sigmoid(factor * signed + shift)
    else:
        argument = at("gate argument", factor * at("biased gate", signed + shift, GATE), GATE)
        opened = at("gate sigmoid", torch.sigmoid(argument), GATE)
        g = at("lower bound", semantics.lower_bound) * opened
    return semantics.lower_bound - g if semantics.gate == "upper_bound" else g


def softplus(x: torch.Tensor, *, coarse_log: bool = False) -> torch.Tensor:
    """The natural logarithm of 1 + exp(x).

    In float64 to the last bit. In a lower precision as kernels write it, linear above 20 and with
    the plain sum: below -7 that costs digits, and a baseline must pay for them as kernels do.
    """
    if x.dtype == torch.float64:
        return torch.logaddexp(x, torch.zeros_like(x))
    sum_ = 1 + torch.exp(x.clamp(max=20))
    if coarse_log:  # a systematic error: it grows with the number of tokens
        grid = 2.0**22
        return torch.where(x > 20, x, (torch.log2(sum_) * grid).floor() / grid * LN2)
    return torch.where(x > 20, x, torch.log(sum_))


def choose_gate(semantics: KdaSemantics, g: torch.Tensor) -> torch.Tensor:
    """Apply the choices that concern an activated gate: base, granularity, token. [B,T,HV,K]."""
    g = g * semantics.decay_gain if semantics.decay_gain != 1.0 else g
    if semantics.gate_over == "mean":
        g = g.mean(-1, keepdim=True).expand_as(g)
    elif semantics.gate_over == "first_channel":
        g = g[..., :1].expand_as(g)
    elif semantics.gate_over == "reversed":
        g = g.flip(-1)
    elif semantics.gate_over == "value_head_0":
        g = g[..., :1, :].expand_as(g)
    if semantics.gate_token == "previous":
        g = torch.cat([torch.zeros_like(g[:, :1]), g[:, :-1]], dim=1)
    elif semantics.gate_token == "next":
        g = torch.cat([g[:, 1:], torch.zeros_like(g[:, :1])], dim=1)
    return g


def activated_beta(semantics: KdaSemantics, logits: torch.Tensor) -> torch.Tensor:
    """Beta of its logits, [B, T, HV]."""
    value = logits
    if semantics.beta in ("sigmoid", "double_sigmoid"):
        value = torch.sigmoid(at("beta logit", value, "batch token head"))
    if semantics.beta == "double_sigmoid":
        value = torch.sigmoid(value)
    elif semantics.beta == "one":
        value = torch.ones_like(value)
    elif semantics.beta == "softplus":
        value = F.softplus(value)
    return semantics.beta_gain * value


def choose_beta(semantics: KdaSemantics, beta: torch.Tensor) -> torch.Tensor:
    """Apply the choices that concern an activated beta. [B, T, HV]."""
    if semantics.beta_token == "previous":
        beta = torch.cat([torch.zeros_like(beta[:, :1]), beta[:, :-1]], dim=1)
    if semantics.beta_head == "mean":
        beta = beta.mean(-1, keepdim=True).expand_as(beta)
    elif semantics.beta_head == "reversed":
        beta = beta.flip(-1)
    return beta


def normalised(semantics: KdaSemantics, x: torch.Tensor) -> torch.Tensor:
    """x / sqrt(sum x^2 + eps) over the last axis; eps is inside the root and on the sum."""
    eps = semantics.norm_eps
    square = x.square()
    if semantics.norm == "rms":
        return x * torch.rsqrt(square.mean(-1, keepdim=True) + eps)
    if semantics.norm == "l1":
        return x / (x.abs().sum(-1, keepdim=True) + eps)
    total = square.sum(-1, keepdim=True)
    if semantics.eps_on == "mean":  # equals an eps that is K times too large
        return x * torch.rsqrt(total + eps * x.shape[-1])
    if semantics.eps_on == "outside":
        return x / (total.sqrt() + eps)
    if semantics.eps_on == "squared_sum_max":
        return x / total.sqrt().clamp(min=eps)
    return x * torch.rsqrt(total + eps)


def normalised_pair(
    semantics: KdaSemantics, q: torch.Tensor, k: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Normalise q and k as far as the semantics says."""
    if semantics.norm == "none":
        return q, k
    if semantics.norm != "k_only":
        q = normalised(semantics, q)
    if semantics.norm != "q_only":
        k = normalised(semantics, k)
    return q, k


def scale_value(semantics: KdaSemantics, K: int, V: int, given: float | None) -> float:
    """The factor on the readout; ``given`` replaces the default K^-1/2."""
    usual = K**-0.5 if given is None else given
    return {
        "key": usual,
        "none": 1.0,
        "value": V**-0.5,
        "inverse": 1 / usual,
        "twice": usual * usual,
    }[semantics.scale]
