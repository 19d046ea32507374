"""How callables of the field take and return KDA's tensors.

Each convention turns canonical inputs (see ``reference.evaluate``) into one library's call and its
result back. What the callable does itself (activation, norm) follows from its parameters and from
the options that the user passes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from k3check.operators.base import Binding, Convention, Tensors
from k3check.operators.kda.semantics import KdaInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ALL = KdaInterface().supports


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


def _bind_fla(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """chunk_kda, fused_recurrent_kda, naive_recurrent_kda and naive_chunk_kda of fla.

    In fla the value of ``lower_bound`` switches the gate's formula; ``safe_gate`` only selects a
    faster kernel. The naive functions know neither packing nor in-kernel activation.
    """
    has = (lambda _name: True) if names is None else names.__contains__
    gate_inside = bool(options.get("use_gate_in_kernel", False))
    v_first = bool(options.get("state_v_first", options.get("transpose_state_layout", False)))
    packed = has("cu_seqlens")
    interface = KdaInterface(
        gate="raw" if gate_inside else "ln",
        beta="logit" if options.get("use_beta_sigmoid_in_kernel") else "prob",
        norm="op" if options.get("use_qk_l2norm_in_kernel") else "caller",
        multiple_of=1 if packed or not has("chunk_size") else int(options.get("chunk_size", 64)),
        supports=ALL if packed else ALL - {"packed"},
    )

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        arguments: dict[str, Any] = {
            "q": inputs["q"],
            "k": inputs["k"],
            "v": inputs["v"],
            "g": inputs["gate"],
            "beta": inputs["beta"],
            "scale": inputs.get("scale"),
            "initial_state": _layout(inputs.get("initial_state"), v_first),
            "output_final_state": True,
        }
        if gate_inside:
            arguments["A_log"] = inputs.get("A_log")
            bias = inputs.get("dt_bias")
            arguments["dt_bias"] = None if bias is None else bias.flatten()
            arguments["lower_bound"] = inputs["lower_bound"]
        if inputs.get("cu_seqlens") is not None:
            arguments["cu_seqlens"] = inputs["cu_seqlens"]
        output, state, *_ = target(**{**arguments, **options})
        return {"output": output, "final_state": _layout(state, v_first)}

    return Binding(interface, call)


def _layout(state: torch.Tensor | None, v_first: bool) -> torch.Tensor | None:
    """[N, HV, K, V] <-> [N, HV, V, K]."""
    return state if state is None or not v_first else state.transpose(-1, -2).contiguous()


def _bind_article_step(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """kda_step(S_prev, k, v, alpha, beta) of the first article: one head, one token, state out."""
    interface = KdaInterface(
        gate="alpha",
        beta="prob",
        norm="caller",
        scale="none",
        readout=False,
        log_dtype="io",
        supports=frozenset({"initial_state", "final_state", "grouped", "value_dim"}),
    )

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        k, v, alpha, beta = inputs["k"], inputs["v"], inputs["gate"], inputs["beta"]
        B, T, HV, _ = v.shape
        times = HV // k.shape[2]
        rows = []
        for b in range(B):
            heads = []
            for h in range(HV):
                state = inputs["initial_state"][b, h]
                for t in range(T):
                    state = target(
                        state, k[b, t, h // times], v[b, t, h], alpha[b, t, h], beta[b, t, h],
                        **options,
                    )  # fmt: skip
                heads.append(state)
            rows.append(torch.stack(heads))
        return {"final_state": torch.stack(rows)}

    return Binding(interface, call)


K3CHECK = Convention(
    "k3check",
    "raw gate and beta, q and k not normalised; (output, final_state) with state [N, HV, K, V]",
    ("q", "k", "v", "gate", "beta"),
    _bind_k3check,
    typical=("A_log", "dt_bias", "lower_bound", "scale", "initial_state", "cu_seqlens"),
)
ACTIVATED = Convention(
    "k3check-activated",
    "log decay, beta as a probability, q and k normalised; otherwise as k3check",
    ("q", "k", "v", "gate", "beta", "activated"),
    _bind_activated,
    typical=("scale", "initial_state", "cu_seqlens"),
)
FLA = Convention(
    "fla",
    "flash-linear-attention: chunk_kda, fused_recurrent_kda and the naive forms",
    ("q", "k", "v", "g", "beta"),
    _bind_fla,
    typical=(
        "scale",
        "initial_state",
        "output_final_state",
        "cu_seqlens",
        "A_log",
        "dt_bias",
        "lower_bound",
    ),
)
ARTICLE_STEP = Convention(
    "article",
    "kda_step(S_prev, k, v, alpha, beta) -> S: one head, one token, alpha linear",
    ("k", "v", "alpha", "beta"),
    _bind_article_step,
    typical=("S_prev",),
    positional=True,
)

SEQUENCE_CONVENTIONS = {c.name: c for c in (K3CHECK, ACTIVATED, FLA)}
STEP_CONVENTIONS = {c.name: c for c in (K3CHECK, ACTIVATED, FLA, ARTICLE_STEP)}
