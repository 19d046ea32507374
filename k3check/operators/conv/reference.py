"""The short convolution by the plainest code that is right, for every value of its semantics."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from k3check.mutate.site import at, note
from k3check.nouns.recipe import EXACT, Arithmetic

if TYPE_CHECKING:
    from k3check.nouns.tensors import Tensors
    from k3check.operators.conv.semantics import ConvInterface, ConvSemantics


def evaluate(
    semantics: ConvSemantics,
    interface: ConvInterface,
    inputs: Tensors,
    arithmetic: Arithmetic = EXACT,
) -> Tensors:
    """Convolve every sequence from its own state.

    Args:
        semantics: which convolution.
        interface: how many columns a state has.
        inputs: ``x`` [B, T, C], ``weight`` [C, W]; optional ``initial_state`` [N, C, W or W - 1]
            and ``cu_seqlens`` [N + 1] (then B = 1).
        arithmetic: where to round; exact for the reference.

    Returns:
        ``output`` [B, T, C] and, where the interface returns it, ``final_state``.
    """
    x, weight = (inputs[name].to(arithmetic.compute) for name in ("x", "weight"))
    lengths = inputs.get("cu_seqlens")
    C, W = weight.shape
    note(
        packed=lengths is not None,
        ends=None if lengths is None else [int(end) for end in lengths],
        state_given=inputs.get("initial_state") is not None,
        sizes={"W": W},
        tokens=x.shape[1],
        whole=True,
        later_sequence=False,
    )
    x, weight = at("input", x, "batch token channel"), at("kernel", weight, "channel tap")
    kept = W if interface.extra_column else W - 1
    ends = [0, x.shape[1]] if lengths is None else [int(end) for end in lengths]
    count = x.shape[0] if lengths is None else len(ends) - 1
    given = inputs.get("initial_state")
    start = x.new_zeros(count, C, kept) if given is None else given.to(arithmetic.compute)
    start = at("initial state", chosen_state(semantics, start), "batch channel column")
    outputs, states = [], []
    for n, (begin, end) in enumerate(pairwise(ends)):
        part = x[:, begin:end].mT
        before = start if lengths is None else start[n : n + 1]
        note(sequence=n, later_sequence=n > 0, tokens=end - begin, whole=False)
        if semantics.packing == "leak" and begin > 0:
            before = x[:, max(0, begin - kept) : begin].mT
            before = F.pad(before, (kept - before.shape[-1], 0))
        outputs.append(convolved(semantics, before, part, weight))
        states.append(final_state(semantics, before, part, outputs[-1]))
        states[-1] = at("final state", states[-1], "batch channel column")
    output = at("output", torch.cat(outputs, dim=-1).mT, "batch token channel")
    if semantics.residual == "added":
        output = output + x
    result: Tensors = {"output": output.to(arithmetic.output).contiguous()}
    if "final_state" in interface.supports:
        result["final_state"] = torch.cat(states).to(arithmetic.output).contiguous()
    return result


def chosen_state(semantics: ConvSemantics, state: torch.Tensor) -> torch.Tensor:
    """The state as it is read, [N, C, columns]."""
    if semantics.initial_state == "ignored":
        return torch.zeros_like(state)
    if semantics.initial_state == "reversed":
        return state.flip(-1)
    if semantics.initial_state == "shifted":
        return F.pad(state[..., :-1], (1, 0))
    if semantics.initial_state == "first_sequence":
        return state[:1].expand_as(state)
    return state


def convolved(
    semantics: ConvSemantics, before: torch.Tensor, x: torch.Tensor, weight: torch.Tensor
) -> torch.Tensor:
    """One sequence, [B, C, T]."""
    W, T = weight.shape[1], x.shape[-1]
    if semantics.activation == "on_input":
        before, x = F.silu(before), F.silu(x)
    if semantics.kernel == "flipped":
        weight = weight.flip(-1)
    if semantics.channel == "first":
        weight = weight[:1].expand_as(weight)
    elif semantics.channel == "rolled":
        weight = weight.roll(1, 0)
    used = {"all": W, "without_oldest": W - 1, "current_only": 1}[semantics.taps]
    later = {"causal": 0, "late": -1, "early": 1, "centred": W // 2}[semantics.alignment]
    # one column more on the left for a late read, zeros on the right for an early one
    line = torch.cat([F.pad(before, (W, 0)), x, x.new_zeros(*x.shape[:-1], W)], dim=-1)
    line = at("line of inputs", line, "batch channel place")
    origin = W + before.shape[-1] + later  # where the current input of token 0 stands
    total = x.new_zeros(x.shape)
    for j in range(W - used, W):
        first = origin - (W - 1) + j
        tap = at(f"tap {j - W + 1}", weight[:, j, None], "channel one")
        total = total + tap * line[..., first : first + T]
    total = at("sum of taps", total, "batch channel token")
    if semantics.activation in ("none", "on_input"):
        return total
    if semantics.activation == "sigmoid":
        return total.sigmoid()
    if semantics.activation == "relu":
        return total.relu()
    if semantics.activation == "twice":
        return F.silu(F.silu(total))
    return total * at("sigmoid", total.sigmoid(), "batch channel token")


def final_state(
    semantics: ConvSemantics, before: torch.Tensor, x: torch.Tensor, output: torch.Tensor
) -> torch.Tensor:
    """The last inputs, [B, C, columns]."""
    kept = before.shape[-1]
    source = output if semantics.final_state == "outputs" else x
    if semantics.final_state == "initial":
        return before
    if semantics.final_state == "without_last":
        source = source[..., :-1]
    if semantics.final_state == "short_padded":
        before = torch.zeros_like(before)
    state = torch.cat([before, source], dim=-1)[..., -kept:]
    if semantics.final_state == "reversed":
        return state.flip(-1)
    if semantics.final_state == "transposed":
        return state.mT.reshape(state.shape)
    return state
