"""How callables of the field take a short convolution."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from k3check.nouns.arguments import able, taken
from k3check.nouns.convention import Binding, Convention, Example
from k3check.nouns.returned import output_and_state, parts, state_unasked
from k3check.operators.conv.semantics import ConvInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.nouns.tensors import Tensors

STATE = ("initial_state", "final_state")
OURS = {**dict.fromkeys(STATE, ("initial_state",)), "packed": ("cu_seqlens",)}
FLA = {"initial_state": ("initial_state",), "packed": ("cu_seqlens",)}
DAO_ASKS = "return_final_states"
DAO = dict.fromkeys(STATE, ("initial_states", "return_final_states"))


def _bind_k3check(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """A function without ``initial_state`` has no state to return either."""
    supports = able(names, OURS)
    activated = names is not None and "activation" in names

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        arguments = {**inputs, **({"activation": "silu"} if activated else {}), **options}
        result = target(**arguments)
        if "final_state" not in supports:
            return {"output": parts(result, "output", more=True)[0]}
        output, state = parts(result, "output", "final_state")
        return {"output": output, "final_state": state}

    return Binding(ConvInterface(supports=supports), call)


def _bind_fla(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """causal_conv1d of fla: the state has as many columns as the kernel."""

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        arguments = {
            "x": inputs["x"],
            "weight": inputs["weight"],
            "initial_state": inputs.get("initial_state"),
            "output_final_state": True,
            "activation": "silu",
        }
        if "cu_seqlens" in inputs:
            arguments["cu_seqlens"] = inputs["cu_seqlens"]
        arguments = taken(names, arguments, "initial_state")
        output, state = output_and_state(target, {**arguments, **options}, more=True)
        return {"output": output, "final_state": state}

    supports = able(names, FLA) | {"final_state"}
    return Binding(ConvInterface(extra_column=True, supports=supports), call)


def _bind_dao(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """causal_conv1d_fn of causal-conv1d: channels before tokens, width - 1 columns."""
    supports = able(names, DAO)

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        arguments = {
            "x": inputs["x"].mT.contiguous(),
            "weight": inputs["weight"],
            "activation": "silu",
        }
        if not supports:
            return {"output": target(**{**arguments, **options}).mT}
        arguments |= {
            "initial_states": inputs.get("initial_state"),
            "return_final_states": True,
        }
        output, state = output_and_state(target, {**arguments, **options}, asks=DAO_ASKS)
        return {"output": output.mT, "final_state": state}

    return Binding(ConvInterface(supports=supports), call)


def _bind_update(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """causal_conv1d_update(x, conv_state [B, C, W - 1], weight): one token, in place."""

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        x, weight = inputs["x"], inputs["weight"]
        state = inputs.get("initial_state")
        if state is None:
            state = x.new_zeros(x.shape[0], *weight.shape[:1], weight.shape[1] - 1)
        state = state.clone()
        rows = [
            target(x=x[:, t].contiguous(), conv_state=state, weight=weight,
                   **{"activation": "silu", **options}).clone()
            for t in range(x.shape[1])
        ]  # fmt: skip
        return {"output": torch.stack(rows, dim=1), "final_state": state}

    return Binding(ConvInterface(supports=frozenset(STATE)), call)


CONVENTIONS = (
    Convention(
        "k3check",
        "x [B, T, C], weight [C, W], state [N, C, W - 1] -> (output, final state)",
        ("x", "weight"),
        _bind_k3check,
        typical=("initial_state", "cu_seqlens", "activation"),
        unlike=("conv_state", "initial_states"),
        abilities=OURS,
        example=Example(
            "short_conv",
            "kernels/conv.py:short_conv",
            "short_conv(x, weight, initial_state=None, cu_seqlens=None)",
            "(output [B, T, C], final_state [N, C, W - 1]); the output alone from a function "
            "without initial_state",
        ),
    ),
    Convention(
        "fla",
        "flash-linear-attention's causal_conv1d: state [N, C, W]",
        ("x", "weight", "activation", "output_final_state"),
        _bind_fla,
        typical=("initial_state", "cu_seqlens"),
        abilities=FLA,
        forms=state_unasked,
        example=Example(
            "short_conv",
            "fla.modules.convolution:causal_conv1d",
            "causal_conv1d(x, weight=None, bias=None, residual=None, initial_state=None, "
            "output_final_state=False, activation=None, backend='triton', cu_seqlens=None, "
            "**kwargs)",
            "(output [B, T, C], final_state [N, C, W])",
        ),
    ),
    Convention(
        "causal-conv1d",
        "causal_conv1d_fn: x [B, C, T], state [B, C, W - 1]",
        ("x", "weight", "activation"),
        _bind_dao,
        typical=("initial_states", "return_final_states", "bias", "seq_idx"),
        library="causal_conv1d",
        telling=("initial_states", "return_final_states", "final_states_out", "seq_idx"),
        unlike=("conv_state",),
        abilities=DAO,
        forms=partial(state_unasked, asks=DAO_ASKS),
        example=Example(
            "short_conv",
            "causal_conv1d:causal_conv1d_fn",
            "causal_conv1d_fn(x, weight, bias=None, seq_idx=None, initial_states=None, "
            "return_final_states=False, final_states_out=None, activation=None)",
            "(output [B, C, T], final_states [B, C, W - 1]); the output alone from a function "
            "without initial_states and return_final_states",
        ),
    ),
    Convention(
        "causal-conv1d-update",
        "causal_conv1d_update: one token, state changed in place",
        ("x", "conv_state", "weight", "activation"),
        _bind_update,
        typical=("bias",),
        library="causal_conv1d",
        example=Example(
            "short_conv",
            "causal_conv1d:causal_conv1d_update",
            "causal_conv1d_update(x, conv_state, weight, bias=None, activation=None, "
            "cache_seqlens=None, conv_state_indices=None)",
            "output [B, C]; conv_state is updated in place; called once a token",
        ),
    ),
)
