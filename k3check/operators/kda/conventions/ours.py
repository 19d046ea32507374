"""k3check's own conventions: the built-in operators', and the easiest for a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.operators.base import Binding, Convention, Example, Tensors
from k3check.operators.kda.semantics import KdaInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

STATE = "[N, HV, K, V], returned"


def _bind_k3check(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        tensors = {name: value for name, value in inputs.items() if value is not None}
        if "lower_bound" in inputs:
            tensors["lower_bound"] = inputs["lower_bound"]
        output, state = target(**{**tensors, **options})
        return {"output": output, "final_state": state}

    return Binding(KdaInterface(), call)


def _bind_activated(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        tensors = {name: value for name, value in inputs.items() if value is not None}
        output, state = target(**{**tensors, "activated": True, **options})
        return {"output": output, "final_state": state}

    return Binding(KdaInterface(gate="ln", beta="prob", norm="caller"), call)


K3CHECK = Convention(
    "k3check",
    "raw gate and beta, q and k not normalised; (output, final_state) with state [N, HV, K, V]",
    ("q", "k", "v", "gate", "beta"),
    _bind_k3check,
    typical=("A_log", "dt_bias", "lower_bound", "scale", "initial_state", "cu_seqlens"),
    example=Example(
        "kda_chunk",
        "examples/operators/my_kda.py:kda_chunk",
        "kda_chunk(q, k, v, gate, beta, A_log=None, dt_bias=None, lower_bound=-5.0, scale=None, "
        "initial_state=None, cu_seqlens=None)",
        "(output [B, T, HV, V], final_state)",
        state=STATE,
    ),
)
ACTIVATED = Convention(
    "k3check-activated",
    "log decay, beta as a probability, q and k normalised; otherwise as k3check",
    ("q", "k", "v", "gate", "beta", "activated"),
    _bind_activated,
    typical=("scale", "initial_state", "cu_seqlens"),
    example=Example(
        "kda_recurrent",
        "kernels/kda.py:kda_recurrent",
        "kda_recurrent(q, k, v, gate, beta, *, activated, scale=None, initial_state=None, "
        "cu_seqlens=None)",
        "(output [B, T, HV, V], final_state)",
        state=STATE,
    ),
)
CONVENTIONS = (K3CHECK, ACTIVATED)
