"""SiTU-GLU by the plainest code that is right, for every value of its semantics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from k3check.mutate.site import at, note
from k3check.nouns.recipe import EXACT, Arithmetic
from k3check.released import TEXT

if TYPE_CHECKING:
    from k3check.nouns.tensors import Tensors
    from k3check.operators.moe.semantics import SituInterface, SituSemantics

BETA: float = TEXT["activation_situ_beta"]
LINEAR_BETA: float = TEXT["activation_situ_linear_beta"]
#: the clamp by whose value DeepGEMM's first interface recognised SiTU
SENTINEL = 0.03125


def _at(name: str, value: torch.Tensor) -> torch.Tensor:
    """A site; not where all experts are evaluated at once, whose activation is a site itself."""
    return at(name, value, "token channel") if value.dim() == 2 else value


def evaluate(
    semantics: SituSemantics,
    interface: SituInterface,
    inputs: Tensors,
    arithmetic: Arithmetic = EXACT,
) -> Tensors:
    """The activation of gate and up.

    Args:
        semantics: which activation.
        interface: whether the halves come as one tensor.
        inputs: ``x`` [T, 2 I], gate first, or ``gate`` and ``up`` [T, I]; ``beta``,
            ``linear_beta`` (may be None).
        arithmetic: where to round; exact for the reference.

    Returns:
        ``output`` [T, I].
    """
    if interface.packed:
        gate, up = inputs["x"].to(arithmetic.compute).chunk(2, dim=-1)
    else:
        gate, up = inputs["gate"].to(arithmetic.compute), inputs["up"].to(arithmetic.compute)
    output = situ(semantics, gate, up, inputs["beta"], inputs["linear_beta"])
    return {"output": output.to(arithmetic.output)}


def situ(
    semantics: SituSemantics,
    gate: torch.Tensor,
    up: torch.Tensor,
    beta: float,
    linear_beta: float | None,
) -> torch.Tensor:
    """The activation of two halves of one shape, in their precision."""
    known = {"beta": beta} | ({} if linear_beta is None else {"linear_beta": linear_beta})
    note(numbers=known)
    gate, up = _at("gate", gate), _at("up", up)
    if semantics.halves == "swapped":
        gate, up = up, gate
    elif semantics.halves == "interleaved":
        packed = torch.cat([gate, up], dim=-1)
        gate, up = packed[..., 0::2], packed[..., 1::2]
    if semantics.betas == "swiglu_clamped":
        return F.silu(gate.clamp(max=SENTINEL)) * up.clamp(-SENTINEL, SENTINEL)
    if linear_beta is None and semantics.no_linear_beta == "released":
        linear_beta = LINEAR_BETA
    if semantics.betas == "released":
        beta, linear_beta = BETA, None if linear_beta is None else LINEAR_BETA
    elif semantics.betas == "swapped" and linear_beta is not None:
        beta, linear_beta = linear_beta, beta
    elif semantics.betas == "one_uncapped":
        beta, linear_beta = 1.0, None
    left = _at("gate half", gate_part(semantics, gate, beta))
    right = _at("up half", up_part(semantics, up, beta, linear_beta))
    if semantics.half_rounding == "bfloat16":
        left, right = (x.to(torch.bfloat16).to(gate.dtype) for x in (left, right))
    return _at("product", left * right)


def gate_part(semantics: SituSemantics, g: torch.Tensor, beta: float) -> torch.Tensor:
    """What the gate becomes."""
    ratio = _at("gate over beta", g / beta)
    capped = _at("capped gate", beta * _at("tanh of the gate", tanh(semantics, ratio)))
    probability = _at("sigmoid argument", semantics.sigmoid_gain * g).sigmoid()
    probability = _at("sigmoid", probability)
    if semantics.gate == "silu":
        return g * probability
    if semantics.gate == "relu":
        return g.relu()
    if semantics.gate == "gelu":
        return F.gelu(g)
    if semantics.gate == "clamped":
        return g.clamp(-beta, beta) * probability
    if semantics.gate == "capped_sigmoid":
        return capped * capped.sigmoid()
    if semantics.gate == "no_sigmoid":
        return capped
    if semantics.gate == "unscaled":
        return capped / beta * probability
    if semantics.gate == "no_division":
        return beta * tanh(semantics, g) * probability
    if semantics.gate == "tanh_of_silu":
        return beta * tanh(semantics, g * probability / beta)
    return capped * probability


def up_part(
    semantics: SituSemantics, u: torch.Tensor, beta: float, linear_beta: float | None
) -> torch.Tensor:
    """What the up branch becomes."""
    if semantics.up == "dropped":
        return torch.ones_like(u)
    if semantics.up == "gate_beta":
        linear_beta = beta
    if semantics.up == "plus_one":
        u = u + 1
    if linear_beta is None or semantics.up == "uncapped":
        return u
    if semantics.up == "clamped":
        return u.clamp(-linear_beta, linear_beta)
    if semantics.up == "no_division":
        return linear_beta * tanh(semantics, u)
    capped = _at("tanh of up", tanh(semantics, _at("up over its beta", u / linear_beta)))
    return capped if semantics.up == "unscaled" else linear_beta * capped


def tanh(semantics: SituSemantics, x: torch.Tensor) -> torch.Tensor:
    """tanh, or what it becomes by its textbook formula in float32."""
    if semantics.tanh == "safe":
        return x.tanh()
    e = (2 * x.float()).exp()
    return ((e - 1) / (e + 1)).to(x.dtype)
