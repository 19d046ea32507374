"""How callables of the field take a short convolution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from k3check.operators.base import Binding, Convention, Tensors
from k3check.operators.conv.semantics import ConvInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def _bind_k3check(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    supports = {"initial_state", "final_state", "packed"}
    if names is not None and "cu_seqlens" not in names:
        supports.discard("packed")

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        output, state = target(**{**inputs, **options})
        return {"output": output, "final_state": state}

    return Binding(ConvInterface(supports=frozenset(supports)), call)


def _bind_fla(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
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
        output, state, *_ = target(**{**arguments, **options})
        return {"output": output, "final_state": state}

    return Binding(ConvInterface(extra_column=True), call)


def _bind_dao(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """causal_conv1d_fn of causal-conv1d: channels before tokens, width - 1 columns."""
    stateful = names is None or {"initial_states", "return_final_states"} <= names

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        arguments = {"x": inputs["x"].mT.contiguous(), "weight": inputs["weight"],
                     "activation": "silu"}  # fmt: skip
        if not stateful:
            return {"output": target(**{**arguments, **options}).mT}
        arguments |= {
            "initial_states": inputs.get("initial_state"),
            "return_final_states": True,
        }
        output, state = target(**{**arguments, **options})
        return {"output": output.mT, "final_state": state}

    supports = frozenset({"initial_state", "final_state"} if stateful else ())
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

    return Binding(ConvInterface(supports=frozenset({"initial_state", "final_state"})), call)


CONVENTIONS = {
    c.name: c
    for c in (
        Convention(
            "k3check",
            "x [B, T, C], weight [C, W], state [N, C, W - 1] -> (output, final state)",
            ("x", "weight"),
            _bind_k3check,
            typical=("initial_state", "cu_seqlens"),
        ),
        Convention(
            "fla",
            "flash-linear-attention's causal_conv1d: state [N, C, W]",
            ("x", "weight", "activation", "output_final_state"),
            _bind_fla,
            typical=("initial_state", "cu_seqlens"),
        ),
        Convention(
            "causal-conv1d",
            "causal_conv1d_fn: x [B, C, T], state [B, C, W - 1]",
            ("x", "weight", "activation"),
            _bind_dao,
            typical=("initial_states", "return_final_states", "bias", "seq_idx"),
        ),
        Convention(
            "causal-conv1d-update",
            "causal_conv1d_update: one token, state changed in place",
            ("x", "conv_state", "weight", "activation"),
            _bind_update,
            typical=("bias",),
        ),
    )
}
