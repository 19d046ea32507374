"""Gated MLA in its expanded form, for every value of the semantics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from k3check.mutate.site import at, note
from k3check.nouns.recipe import EXACT, Arithmetic, rounding

if TYPE_CHECKING:
    from k3check.nouns.recipe import Recipe
    from k3check.nouns.tensors import Tensors
    from k3check.operators.mla.semantics import MlaInterface, MlaSemantics

ROPE_BASE = 10000.0
HEADS, SCORES = "batch token head value", "batch head token source"


@dataclass(frozen=True)
class Sizes:
    """H heads; widths of nope and pe parts of a key, of a value, and of the latent."""

    heads: int
    nope: int
    pe: int
    value: int
    latent: int

    @classmethod
    def of(cls, inputs: Tensors) -> Sizes:
        """From the inputs' own entries."""
        names = ("heads", "nope", "pe", "value", "latent")
        return cls(**{name: int(inputs[name]) for name in names})


@dataclass(frozen=True)
class Absorbed(Arithmetic):
    """Rounding of the absorbed form: latents are never expanded, other products are rounded."""


def absorbed(recipe: Recipe) -> Absorbed:
    """The absorbed form in a recipe."""
    low = rounding(recipe, block_operands=True)
    return Absorbed(low.compute, low.operand, low.state, low.output)


@dataclass(frozen=True)
class Eager(Arithmetic):
    """Rounding of the released eager code: the scores, too, are a product in the inputs' dtype."""


def eager(recipe: Recipe) -> Eager:
    """The eager form in a recipe."""
    low = rounding(recipe, block_operands=True)
    return Eager(low.compute, low.operand, low.state, low.output)


def evaluate(
    semantics: MlaSemantics,
    interface: MlaInterface,
    inputs: Tensors,
    arithmetic: Arithmetic = EXACT,
) -> Tensors:
    """The layer, or its attention alone.

    Args:
        semantics: which MLA.
        interface: how much of it.
        inputs: the sizes ``heads, nope, pe, value, latent``; ``w_kvb`` [H (nope + value), latent];
            optional ``past`` [B, P, latent + pe], rows of normed latent and raw k_pe. The layer:
            ``x`` [B, T, D], ``w_qa``, ``q_gain``, ``w_qb``, ``w_kva``, ``kv_gain``, ``w_g``,
            ``w_o``. The core: ``q`` [B, T, H, nope + pe], ``rows`` [B, T, latent + pe].
        arithmetic: where to round; exact for the reference.

    Returns:
        ``output``: [B, T, D], or [B, T, H, value] of the core; and ``cache``
        [B, T, latent + pe], the rows to be kept, where the interface returns them.
    """
    cast = {
        name: value.to(arithmetic.compute)
        for name, value in inputs.items()
        if isinstance(value, torch.Tensor)
    }
    sizes, r = Sizes.of(inputs), arithmetic.operands
    if interface.part == "core":
        q, rows = cast["q"], cast["rows"]
        raw_rows = rows
    else:
        q = queries(semantics, cast, sizes, arithmetic)
        rows, raw_rows = latents(semantics, cast, sizes, arithmetic)
    note(
        past_given=cast.get("past") is not None,
        sizes={"nope": sizes.nope, "value": sizes.value, "qk": sizes.nope + sizes.pe},
        tokens=q.shape[1],
    )
    q, rows = at("query", q, "batch token head key"), at("latent row", rows, "batch token latent")
    o = at("attention output", r(attention(semantics, q, rows, cast, sizes, arithmetic)), HEADS)
    if interface.part == "core":
        return {"output": o.to(arithmetic.output)}
    gate = at("gate logit", cast["x"] @ cast["w_g"].T, "batch token channel")
    mixed = at("gated output", r(gated(semantics, o, r(gate))), "batch token channel")
    output = at("output", mixed @ cast["w_o"].T, "batch token width")
    result: Tensors = {"output": output.to(arithmetic.output)}
    if "cache" in interface.supports:
        result["cache"] = raw_rows.to(arithmetic.output)
    return result


def baseline(
    semantics: MlaSemantics, interface: MlaInterface, inputs: Tensors, arithmetic: Arithmetic
) -> Tensors:
    """The same with the layer's width in the opposite order, so that its sums are other ones."""
    turned = {
        name: value.flip(-1) if name in ("x", "w_qa", "w_kva", "w_g") else value
        for name, value in inputs.items()
    }
    if interface.part == "core":  # whose weights come split for the absorbed form
        arithmetic = Absorbed(
            arithmetic.compute, arithmetic.operand, arithmetic.state, arithmetic.output
        )
    return evaluate(semantics, interface, turned, arithmetic)


def rms(semantics: MlaSemantics, x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
    """RMSNorm over the last dimension."""
    unit = x / (x.square().mean(-1, keepdim=True) + semantics.norm_eps).sqrt()
    if semantics.norm_gain == "dropped":
        return unit
    return unit * (1 + gain if semantics.norm_gain == "one_plus" else gain)


def queries(
    semantics: MlaSemantics, cast: Tensors, sizes: Sizes, arithmetic: Arithmetic
) -> torch.Tensor:
    """[B, T, H, nope + pe]."""
    r = arithmetic.operands
    low = at("query latent", r(cast["x"] @ cast["w_qa"].T), "batch token latent")
    if semantics.q_norm == "rms":
        low = r(rms(semantics, low, cast["q_gain"]))
        low = at("normalised query latent", low, "batch token latent")
    q = r(low @ cast["w_qb"].T).unflatten(-1, (sizes.heads, -1))
    if semantics.q_split == "pe_first":
        q = torch.cat([q[..., sizes.pe :], q[..., : sizes.pe]], dim=-1)
    return q


def latents(
    semantics: MlaSemantics, cast: Tensors, sizes: Sizes, arithmetic: Arithmetic
) -> tuple[torch.Tensor, torch.Tensor]:
    """(rows as the attention uses them, rows as they are cached), [B, T, latent + pe]."""
    r, gain = arithmetic.operands, cast["kv_gain"]
    both = r(cast["x"] @ cast["w_kva"].T)
    if semantics.latent_split == "pe_first":
        both = torch.cat([both[..., sizes.pe :], both[..., : sizes.pe]], dim=-1)
    c, k_pe = both[..., : sizes.latent], both[..., sizes.latent :]
    c = at("latent before its norm", c, "batch token latent")
    k_pe = at("shared key part", k_pe, "batch token key")
    if semantics.kv_norm == "with_pe":
        full = F.pad(gain, (0, sizes.pe), value=1.0)
        rows = r(rms(semantics, both, full))
        return rows, rows
    if semantics.kv_norm != "none":
        c = r(rms(semantics, c, gain))
    if semantics.kv_norm == "twice":
        c = r(rms(semantics, c, gain))
    rows = torch.cat([c, k_pe], dim=-1)
    return rows, both if semantics.past == "raw_latent" else rows


def attention(
    semantics: MlaSemantics,
    q: torch.Tensor,
    rows: torch.Tensor,
    cast: Tensors,
    sizes: Sizes,
    arithmetic: Arithmetic,
) -> torch.Tensor:
    """[B, T, H, value]."""
    past = cast.get("past")
    if past is not None and semantics.past != "ignored":
        if semantics.past == "normed_twice" and "kv_gain" in cast:
            again = rms(semantics, past[..., : sizes.latent], cast["kv_gain"])
            past = torch.cat([again, past[..., sizes.latent :]], dim=-1)
        rows = torch.cat([past, rows], dim=1)
    before = rows.shape[1] - q.shape[1]
    if isinstance(arithmetic, Absorbed):
        return over_latents(semantics, q, rows, cast, sizes, arithmetic)
    keys, values = expanded(semantics, rows, cast, sizes, arithmetic)
    keys = at("key", keys, "batch source head key")
    values = at("value", values, "batch source head value")
    q, keys, values = (x.transpose(1, 2) for x in (q, keys, values))
    if semantics.rope == "applied":
        q = rotated(q, sizes, before)
        keys = rotated(keys, sizes, 0)
    products = q @ keys.mT
    if isinstance(arithmetic, Eager):
        products = arithmetic.operands(products)
    scores = at("score", scaled(semantics, products, sizes), SCORES)
    scores = scores.masked_fill(~seen(semantics, q.shape[2], before, rows.device), -torch.inf)
    weights = at("attention weight", softmax(semantics, scores, before), SCORES)
    if semantics.gate == "on_values":
        values = values.sigmoid() * values
    if semantics.head == "value_reversed":
        values = values.flip(1)
    return (arithmetic.operands(weights) @ values).transpose(1, 2)


def over_latents(
    semantics: MlaSemantics,
    q: torch.Tensor,
    rows: torch.Tensor,
    cast: Tensors,
    sizes: Sizes,
    arithmetic: Absorbed,
) -> torch.Tensor:
    """[B, T, H, value] in the absorbed form: the right semantics with another rounding."""
    r, latent = arithmetic.operands, sizes.latent
    up = cast["w_kvb"].view(sizes.heads, -1, latent)
    low = r(torch.einsum("bthn,hnl->bthl", q[..., : sizes.nope], up[:, : sizes.nope]))
    full = torch.cat([low, q[..., sizes.nope :]], dim=-1)
    scores = scaled(semantics, torch.einsum("bthl,bsl->bhts", full, rows), sizes)
    before = rows.shape[1] - q.shape[1]
    scores = scores.masked_fill(~seen(semantics, q.shape[1], before, rows.device), -torch.inf)
    mixed = r(torch.einsum("bhts,bsl->bthl", r(scores.softmax(-1)), rows[..., :latent]))
    return torch.einsum("bthl,hvl->bthv", mixed, up[:, sizes.nope :])


def expanded(
    semantics: MlaSemantics,
    rows: torch.Tensor,
    cast: Tensors,
    sizes: Sizes,
    arithmetic: Arithmetic,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Keys [B, S, H, nope + pe] and values [B, S, H, value]."""
    c, k_pe = rows[..., : sizes.latent], rows[..., sizes.latent :]
    flat = arithmetic.operands(c @ cast["w_kvb"].T)
    if semantics.kv_split == "all_keys_first":
        width = sizes.heads * sizes.nope
        k = flat[..., :width].unflatten(-1, (sizes.heads, -1))
        v = flat[..., width:].unflatten(-1, (sizes.heads, -1))
    else:
        both = flat.unflatten(-1, (sizes.heads, -1))
        k, v = both[..., : sizes.nope], both[..., sizes.nope :]
        if semantics.kv_split == "value_first":
            k, v = both[..., sizes.value :], both[..., : sizes.value]
    if semantics.head == "first_key":
        k = k[:, :, :1].expand_as(k)
    pe = k_pe.unsqueeze(2).expand(*k.shape[:3], sizes.pe)
    if semantics.pe == "dropped":
        pe = torch.zeros_like(pe)
    elif semantics.pe == "normed_scale":
        pe = pe / (pe.square().mean(-1, keepdim=True) + semantics.norm_eps).sqrt()
    return torch.cat([k, pe], dim=-1), v


def scaled(semantics: MlaSemantics, scores: torch.Tensor, sizes: Sizes) -> torch.Tensor:
    """Scores times the scale."""
    full = (sizes.nope + sizes.pe) ** -0.5
    return (
        scores
        * {
            "full": full,
            "nope": sizes.nope**-0.5,
            "value": sizes.value**-0.5,
            "none": 1.0,
            "twice": full * full,
        }[semantics.scale]
    )


def seen(semantics: MlaSemantics, T: int, before: int, device: torch.device) -> torch.Tensor:
    """[T, before + T]: which rows a token sees."""
    query = torch.arange(T, device=device).unsqueeze(1) + before
    key = torch.arange(before + T, device=device)
    if semantics.causal == "none":
        return torch.ones(T, before + T, dtype=torch.bool, device=device)
    if semantics.causal == "strict":
        return (key < query) | (key == 0)
    if semantics.causal == "one_ahead":
        return key <= query + 1
    if semantics.causal == "past_hidden":  # a mask aligned to the first row instead of the last
        return key <= query - before
    return key <= query


def softmax(semantics: MlaSemantics, scores: torch.Tensor, before: int) -> torch.Tensor:
    """Weights over all rows; wrongly merged ones of past and present."""
    if semantics.merge == "exact" or before == 0:
        return scores.softmax(-1)
    parts = [scores[..., :before].softmax(-1), scores[..., before:].softmax(-1)]
    if semantics.merge == "mean":
        return torch.cat([0.5 * part for part in parts], dim=-1)
    # the share of each part by its maximum instead of its sum of exponentials
    tops = torch.stack([scores[..., :before].amax(-1), scores[..., before:].amax(-1)])
    share = tops.softmax(0).unsqueeze(-1)
    return torch.cat([share[0] * parts[0], share[1] * parts[1]], dim=-1)


def rotated(x: torch.Tensor, sizes: Sizes, first: int) -> torch.Tensor:
    """Rotary positions on the pe part, halves rotated: what NoPE leaves out."""
    half = sizes.pe // 2
    where = torch.arange(x.shape[2], dtype=x.dtype, device=x.device) + first
    speed = ROPE_BASE ** (-torch.arange(half, dtype=x.dtype, device=x.device) / half)
    angle = where.unsqueeze(-1) * speed
    a, b = x[..., sizes.nope : sizes.nope + half], x[..., sizes.nope + half :]
    turned = torch.cat(
        [a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], dim=-1
    )
    return torch.cat([x[..., : sizes.nope], turned], dim=-1)


def gated(semantics: MlaSemantics, o: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
    """[B, T, H value]: what the output projection gets."""
    if semantics.gate == "after_norm":  # as KDA does it
        o = o / (o.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    if semantics.head == "gate_reversed":
        gate = gate.unflatten(-1, (o.shape[2], -1)).flip(2).flatten(2)
    o = o.flatten(2)
    if semantics.gate in ("none", "on_values"):
        return o
    if semantics.gate == "raw":
        return o * gate
    if semantics.gate == "silu":
        return o * F.silu(gate)
    return o * at("gate sigmoid", gate.sigmoid(), "batch token channel")
