"""flash-linear-attention: chunk_kda, fused_recurrent_kda and the naive forms.

In fla the value of ``lower_bound`` switches the gate's formula; ``safe_gate`` only selects a faster
kernel. The naive functions know neither packing nor activation inside.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import torch

from k3check.model import Message
from k3check.nouns.convention import Binding, Convention, Example, Form
from k3check.nouns.returned import output_and_state, state_unasked
from k3check.operators.kda.conventions._tools import ALL, flat, flipped, knows, no_article
from k3check.operators.kda.semantics import KdaInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.nouns.tensors import Tensors
    from k3check.operators.kda.semantics import KdaSemantics

#: Options of chunk_kda that fused_recurrent_kda takes without a word and does not read.
CHUNK_ONLY = frozenset(
    {
        "safe_gate",
        "chunk_size",
        "disable_recompute",
        "return_intermediate_states",
        "cu_seqlens_cpu",
        "cp_context",
        "use_graph",
        "max_num_seqs",
    }
)
#: What the kernel does itself if it is told to; the released model tells it to.
INSIDE = ("use_qk_l2norm_in_kernel", "use_gate_in_kernel", "use_beta_sigmoid_in_kernel")
#: All of these, and fla hands the call to FlashKDA if it can.
DISPATCHED = (
    "use_gate_in_kernel",
    "use_beta_sigmoid_in_kernel",
    "use_qk_l2norm_in_kernel",
    "safe_gate",
    "state_v_first",
)


def _bind(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    has = knows(names)
    gate_inside = bool(options.get("use_gate_in_kernel", False))
    v_first = bool(options.get("state_v_first", options.get("transpose_state_layout", False)))
    is_packed = has("cu_seqlens")
    interface = KdaInterface(
        gate="raw" if gate_inside else "ln",
        beta="logit" if options.get("use_beta_sigmoid_in_kernel") else "prob",
        norm="op" if options.get("use_qk_l2norm_in_kernel") else "caller",
        multiple_of=1 if is_packed or not has("chunk_size") else int(options.get("chunk_size", 64)),
        chunk=int(options.get("chunk_size", 0)),
        supports=ALL if is_packed else ALL - {"packed"},
    )
    # these two names together are chunk_kda's own; a port of it may keep other states
    own_chunk = names is not None and names >= {"safe_gate", "return_intermediate_states"}
    inference = bool(options.get("return_intermediate_states"))

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        initial = inputs.get("initial_state")
        arguments: dict[str, Any] = {
            "q": inputs["q"],
            "k": inputs["k"],
            "v": inputs["v"],
            "g": inputs["gate"],
            "beta": inputs["beta"],
            "scale": inputs.get("scale"),
            "initial_state": flipped(initial) if v_first else initial,
            "output_final_state": True,
        }
        if gate_inside:
            arguments["A_log"] = inputs.get("A_log")
            arguments["dt_bias"] = flat(inputs.get("dt_bias"))
            arguments["lower_bound"] = inputs["lower_bound"]
        if inputs.get("cu_seqlens") is not None:
            arguments["cu_seqlens"] = inputs["cu_seqlens"]
        with torch.inference_mode() if inference else nullcontext():
            output, state = output_and_state(target, {**arguments, **options}, more=True)
        return {"output": output, "final_state": flipped(state) if v_first else state}

    def advice(semantics: KdaSemantics) -> tuple[Message, ...]:
        unbounded = semantics.gate == "softplus" and options.get("lower_bound") is None
        asked = gate_inside and bool(options.get("safe_gate"))
        return (Message("K3O-653"),) if asked and unbounded else ()

    return Binding(
        interface,
        call,
        notes=_notes(names, options),
        advice=advice,
        excludes=no_article(interface),
        state_dtypes=("float32",) if own_chunk else (),
    )


def _forms(names: frozenset[str], options: Mapping[str, Any]) -> tuple[Form, ...]:
    """The kernel's switches: all of them, as in the released model, and each alone.

    The state's layout and whether it is returned are switches as well.
    """
    inside = [switch for switch in INSIDE if switch in names and switch not in options]
    found = [Form("released", dict.fromkeys(inside, True), "quick")] if inside else []
    if len(inside) > 1:
        found += [Form(f"{switch}-alone", {switch: True}) for switch in inside]
    flips = [n for n in ("state_v_first", "transpose_state_layout") if n in names]
    found += [Form(name, {name: True}) for name in flips[:1] if name not in options]
    return (*found, *state_unasked(names, options))


def _notes(names: frozenset[str] | None, options: Mapping[str, Any]) -> tuple[Message, ...]:
    """What is worth knowing about the options."""
    found = []
    if names is not None and names >= {"A_log", "use_gate_in_kernel"} and "safe_gate" not in names:
        swallowed = sorted(CHUNK_ONLY & set(options) - names)
        if swallowed:
            found.append(Message("K3O-654", {"options": ", ".join(swallowed)}))
        found.append(Message("K3O-656"))
    if options.get("allow_neg_eigval"):
        found.append(Message("K3O-655"))
    if all(options.get(name) for name in DISPATCHED):
        found.append(Message("K3O-657"))
    return tuple(found)


FLA = Convention(
    "fla",
    "flash-linear-attention: chunk_kda, fused_recurrent_kda and the naive forms",
    ("q", "k", "v", "g", "beta"),
    _bind,
    typical=(
        "scale",
        "initial_state",
        "output_final_state",
        "cu_seqlens",
        "A_log",
        "dt_bias",
        "lower_bound",
    ),
    library="fla",
    abilities={"packed": ("cu_seqlens",)},
    forms=_forms,
    example=Example(
        "kda_chunk",
        "fla.ops.kda:chunk_kda",
        "chunk_kda(q, k, v, g, beta, scale=None, initial_state=None, output_final_state=False, "
        "use_qk_l2norm_in_kernel=False, use_gate_in_kernel=False, "
        "use_beta_sigmoid_in_kernel=False, allow_neg_eigval=False, safe_gate=False, "
        "lower_bound=None, disable_recompute=False, return_intermediate_states=False, "
        "state_v_first=False, cu_seqlens=None, **kwargs)",
        "(o [B, T, HV, V], final_state[, h])",
        {
            "use_gate_in_kernel": True,
            "use_beta_sigmoid_in_kernel": True,
            "use_qk_l2norm_in_kernel": True,
            "safe_gate": True,
        },
        state="[N, HV, K, V] float32, returned; [N, HV, V, K] with state_v_first",
    ),
)
CONVENTIONS = (FLA,)
