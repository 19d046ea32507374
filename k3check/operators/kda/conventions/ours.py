"""k3check's own conventions: the built-in operators', and the easiest for a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.nouns.arguments import able, taken
from k3check.nouns.convention import Binding, Convention, Example
from k3check.nouns.returned import parts
from k3check.operators.kda.semantics import KdaInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.nouns.tensors import Tensors

ABILITIES = {
    "packed": ("cu_seqlens",),
    "initial_state": ("initial_state",),
    "scale": ("scale",),
}
STATE = "[N, HV, K, V], returned"


def _interface(names: frozenset[str] | None, **given: Any) -> KdaInterface:
    """What a function of these forms does, by the parameters that it has."""
    always = KdaInterface().supports - {*ABILITIES}
    scaled = names is None or "scale" in names
    return KdaInterface(
        supports=always | able(names, ABILITIES), scale="argument" if scaled else "fixed", **given
    )


def _bind_k3check(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    interface = _interface(names)

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        tensors = {name: value for name, value in inputs.items() if value is not None}
        if "lower_bound" in inputs:
            tensors["lower_bound"] = inputs["lower_bound"]
            if inputs["lower_bound"] is None:  # a softplus gate may do without the parameter
                tensors = taken(names, tensors, "lower_bound")
        output, state = parts(target(**{**tensors, **options}), "output", "final_state")
        return {"output": output, "final_state": state}

    return Binding(interface, call, excludes=_fixed(interface))


def _bind_activated(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    interface = _interface(names, gate="ln", beta="prob", norm="caller")

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        tensors = {name: value for name, value in inputs.items() if value is not None}
        result = target(**{**tensors, "activated": True, **options})
        output, state = parts(result, "output", "final_state")
        return {"output": output, "final_state": state}

    return Binding(interface, call, excludes=_fixed(interface))


def _fixed(interface: KdaInterface) -> dict[str, str]:
    """The article scales by nothing: a function without ``scale`` cannot be told so."""
    return {"article": "it scales by K^-1/2"} if interface.scale == "fixed" else {}


K3CHECK = Convention(
    "k3check",
    "raw gate and beta, q and k not normalised; (output, final_state) with state [N, HV, K, V]",
    ("q", "k", "v", "gate", "beta"),
    _bind_k3check,
    typical=("A_log", "dt_bias", "lower_bound", "scale", "initial_state", "cu_seqlens"),
    abilities=ABILITIES,
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
    abilities=ABILITIES,
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
