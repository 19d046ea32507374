"""The latent expert layer by the plainest code that is right, for every value of its semantics.

Every expert is evaluated on every token, and a dense table of weights picks what counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from k3check.mutate.site import at, note
from k3check.nouns.recipe import EXACT, Arithmetic
from k3check.operators.moe.semantics import SituSemantics
from k3check.operators.moe.situ import BETA, LINEAR_BETA, situ

if TYPE_CHECKING:
    from k3check.nouns.tensors import Tensors
    from k3check.operators.moe.semantics import LatentInterface, LatentSemantics

ACTIVATIONS = {
    "situ": SituSemantics(),
    "silu": SituSemantics(gate="silu", up="uncapped"),
    "swapped_halves": SituSemantics(halves="swapped"),
}
#: What an expert of a fixed capacity holds, as a multiple of the mean load.
CAPACITY = 1.25
INNER = "expert token channel"


def evaluate(
    semantics: LatentSemantics,
    interface: LatentInterface,
    inputs: Tensors,
    arithmetic: Arithmetic = EXACT,
) -> Tensors:
    """The expert layer, or its experts alone.

    Args:
        semantics: which layer.
        interface: the whole layer, or the experts alone.
        inputs: ``ids``, ``weights`` [T, k]; ``w1``, ``w3`` [E, I, L]; ``w2`` [E, L, I]; and
            ``z`` [T, L], or ``x`` [T, D], ``w_down`` [L, D], ``gain`` [L], ``w_up`` [D, L],
            ``s1``, ``s3`` [S, D], ``s2`` [D, S].
        arithmetic: where to round; exact for the reference.

    Returns:
        ``output``: [T, D], or [T, L] of the experts alone.
    """
    cast = {
        name: value.to(arithmetic.compute)
        for name, value in inputs.items()
        if isinstance(value, torch.Tensor) and value.is_floating_point()
    }
    r = arithmetic.operands
    z = cast["z"] if interface.core else r(cast["x"] @ cast["w_down"].T)
    if semantics.norm == "before_experts" and not interface.core:
        z = r(normalised(semantics, z, cast["gain"]))
    z = at("latent", z, "token latent")
    note(sizes={"L": z.shape[-1], "k": inputs["ids"].shape[-1]}, tokens=len(z))
    table = weight_table(semantics, inputs["ids"], cast["weights"], cast["w1"].shape[0])
    table = at("weight of an expert", table, "token expert")
    y = at("expert output", experts(semantics, z, table, cast, arithmetic), "expert token latent")
    if interface.core:
        return {"output": combined(semantics, y, table).to(arithmetic.output)}
    routed = r(latent_sum(semantics, y, table, cast, arithmetic) @ cast["w_up"].T)
    routed = at("routed part", routed, "token channel")
    shared = at("shared part", shared_part(semantics, cast, arithmetic), "token channel")
    if semantics.shared == "weighted":
        shared = shared * cast["weights"].sum(-1, keepdim=True)
    times = {"once": 1.0, "left_out": 0.0, "twice": 2.0}
    own = 0.0 if semantics.shared in ("left_out", "into_norm") else 1.0
    own = 2.0 if semantics.shared == "twice" else own
    output = at("output", times[semantics.routed] * routed + own * shared, "token channel")
    return {"output": output.to(arithmetic.output)}


def baseline(
    semantics: LatentSemantics, interface: LatentInterface, inputs: Tensors, arithmetic: Arithmetic
) -> Tensors:
    """The same with inner dimensions in the opposite order, so that all sums are other ones."""
    turned = dict(inputs)
    for name in ("x", "w_down", "s1", "s3", "w1", "w3", "z"):
        if name in turned:  # the width that these products sum over
            turned[name] = turned[name].flip(-1)
    if not interface.core:
        turned["w1"], turned["w3"] = inputs["w1"], inputs["w3"]
    return evaluate(semantics, interface, turned, arithmetic)


def weight_table(
    semantics: LatentSemantics, ids: torch.Tensor, weights: torch.Tensor, experts_: int
) -> torch.Tensor:
    """[T, E]: the weight with which each expert counts for each token."""
    if semantics.weights == "ones":
        weights = torch.ones_like(weights)
    elif semantics.weights == "rolled":
        weights = weights.roll(1, -1)
    if semantics.expert == "next":
        ids = (ids + 1) % experts_
    if semantics.dropped == "last_slot":
        ids, weights = ids[:, :-1], weights[:, :-1]
    table = weights.new_zeros(len(ids), experts_).scatter_add(1, ids, weights)
    if semantics.dropped == "overflow":
        most = int(CAPACITY * ids.numel() / experts_)
        position = (table != 0).cumsum(0)
        table = torch.where(position <= most, table, 0)
    return table


def experts(
    semantics: LatentSemantics,
    z: torch.Tensor,
    table: torch.Tensor,
    cast: Tensors,
    arithmetic: Arithmetic,
) -> torch.Tensor:
    """[E, T, L]: every expert's output for every token, without its weight."""
    r = arithmetic.operands
    given = z.expand(table.shape[1], *z.shape)
    if semantics.weight_place == "before_experts":
        given = given * table.T.unsqueeze(-1)
    gate, up = r(given @ cast["w1"].mT), r(given @ cast["w3"].mT)
    gate, up = at("expert gate", gate, INNER), at("expert up", up, INNER)
    active = r(situ(ACTIVATIONS[semantics.activation], gate, up, BETA, LINEAR_BETA))
    return r(at("expert activation", active, INNER) @ cast["w2"].mT)


def combined(semantics: LatentSemantics, y: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """Weighted sum over the experts, [T, L]."""
    if semantics.weight_place == "before_experts":
        table = (table != 0).to(table.dtype)
    terms = table.T.unsqueeze(-1) * y
    if semantics.combine == "wide":
        return terms.sum(0)
    total = torch.zeros_like(terms[0])
    for term in terms:
        total = (total + term.to(torch.bfloat16)).to(torch.bfloat16).to(term.dtype)
    return total


def latent_sum(
    semantics: LatentSemantics,
    y: torch.Tensor,
    table: torch.Tensor,
    cast: Tensors,
    arithmetic: Arithmetic,
) -> torch.Tensor:
    """What goes into the up projection, [T, L]."""
    r, gain = arithmetic.operands, cast["gain"]
    if semantics.norm == "per_expert":
        return r(combined(semantics, normalised(semantics, y, gain), table))
    half = table.shape[1] // 2
    if semantics.ranks == "never":
        table = table.clone()
        table[:, half:] = 0
    if semantics.ranks == "after_norm":
        parts = [table.clone(), table.clone()]
        parts[0][:, half:] = 0
        parts[1][:, :half] = 0
        sums = [r(combined(semantics, y, part)) for part in parts]
        return sum((r(normalised(semantics, s, gain)) for s in sums), torch.zeros_like(sums[0]))
    total = at("sum of experts", r(combined(semantics, y, table)), "token latent")
    if semantics.shared == "into_norm":
        down = cast["w_down"]
        total = total + shared_part(semantics, cast, arithmetic) @ down.T
    if semantics.norm in ("dropped", "before_experts"):
        return total
    return at("normalised sum", r(normalised(semantics, total, gain)), "token latent")


def normalised(semantics: LatentSemantics, x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
    """RMSNorm over the last dimension."""
    unit = x / (x.square().mean(-1, keepdim=True) + semantics.norm_eps).sqrt()
    return unit if semantics.norm_gain == "dropped" else unit * gain


def shared_part(semantics: LatentSemantics, cast: Tensors, arithmetic: Arithmetic) -> torch.Tensor:
    """The shared experts: one MLP of their joint width on x, [T, D]."""
    r, x = arithmetic.operands, cast["x"]
    s1, s3, s2 = cast["s1"], cast["s3"], cast["s2"]
    if semantics.shared == "half":
        width = s1.shape[0] // 2
        s1, s3, s2 = s1[:width], s3[:width], s2[:, :width]
    kind = ACTIVATIONS[semantics.shared_activation]
    return r(r(situ(kind, r(x @ s1.T), r(x @ s3.T), BETA, LINEAR_BETA)) @ s2.T)
