"""The gated norm by the plainest code that is right, for every value of its semantics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from k3check.mutate.site import at, note
from k3check.nouns.recipe import EXACT, Arithmetic

if TYPE_CHECKING:
    from k3check.nouns.tensors import Tensors
    from k3check.operators.norm.semantics import NormInterface, NormSemantics


ROWS = "batch token head channel"


def evaluate(
    semantics: NormSemantics,
    _interface: NormInterface,
    inputs: Tensors,
    arithmetic: Arithmetic = EXACT,
) -> Tensors:
    """Norm and gate.

    Args:
        semantics: which norm.
        inputs: ``x``, ``gate`` [B, T, H, D], ``gain`` [D].
        arithmetic: where to round; exact for the reference.

    Returns:
        ``output`` [B, T, H, D].
    """
    x, gate, gain = (inputs[name].to(arithmetic.compute) for name in ("x", "gate", "gain"))
    note(sizes={"D": x.shape[-1]}, tokens=x.shape[1], whole=True)
    x, gate, gain = at("x", x, ROWS), at("gate", gate, ROWS), at("gain", gain, "channel")
    opened = at("opened gate", activated(semantics, gate), ROWS)
    raised = {
        "once": gain,
        "dropped": torch.ones_like(gain),
        "one_plus": 1 + gain,
        "twice": gain * gain,
        "before_norm": torch.ones_like(gain),
        "reversed": gain.flip(0),
    }[semantics.gain]
    if semantics.gain == "before_norm":
        x = x * gain
    if semantics.order == "gate_first":
        output = normalised(semantics, x * opened) * raised
    else:
        unit = at("normalised x", normalised(semantics, x), ROWS)
        output = at("gained x", unit * raised, ROWS) * opened
    output = at("output", output, ROWS)
    return {"output": output.to(arithmetic.output)}


def baseline(
    semantics: NormSemantics, interface: NormInterface, inputs: Tensors, arithmetic: Arithmetic
) -> Tensors:
    """The same with the channels in the opposite order, so that the sums are other ones."""
    turned = {
        name: value.flip(-1) if isinstance(value, torch.Tensor) else value
        for name, value in inputs.items()
    }
    return {"output": evaluate(semantics, interface, turned, arithmetic)["output"].flip(-1)}


def activated(semantics: NormSemantics, gate: torch.Tensor) -> torch.Tensor:
    """What the gate becomes."""
    if semantics.gate_head == "reversed":
        gate = gate.flip(2)
    elif semantics.gate_head == "first":
        gate = gate[:, :, :1].expand_as(gate)
    if semantics.gate_token == "previous":
        gate = gate.roll(1, 1)
    if semantics.gate == "silu":
        return F.silu(gate)
    if semantics.gate == "none":
        return torch.ones_like(gate)
    if semantics.gate == "raw":
        return gate
    if semantics.gate == "tanh":
        return gate.tanh()
    if semantics.gate == "softmax":
        return gate.softmax(-1)
    return 1 - gate.sigmoid() if semantics.gate == "one_minus" else gate.sigmoid()


def normalised(semantics: NormSemantics, x: torch.Tensor) -> torch.Tensor:
    """x without gain."""
    if semantics.norm == "none":
        return x
    dims = {"head": [-1], "all_heads": [-2, -1], "tokens": [1, -1]}[semantics.over]
    if semantics.norm == "layer":
        x = x - x.mean(dims, keepdim=True)
    if semantics.norm == "l2":
        return x / (x.square().sum(dims, keepdim=True) + semantics.eps).sqrt()
    size = x.square().mean(dims, keepdim=True)
    if semantics.over == "head":
        size = at("mean square", size, "batch token head one")
    if semantics.eps_on == "outside":
        return x / (size.sqrt() + semantics.eps)
    extra = semantics.eps / x.shape[-1] if semantics.eps_on == "sum" else semantics.eps
    root = (at("mean square with eps", size + extra, "batch token head one")).sqrt()
    return x * at("norm factor", 1 / root, "batch token head one")
