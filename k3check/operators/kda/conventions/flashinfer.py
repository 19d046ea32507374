"""flashinfer: recurrent_kda, which updates its state in place, alone or in a pool."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from k3check.model import Message
from k3check.nouns.convention import Binding, Convention, Example
from k3check.nouns.returned import parts
from k3check.operators.kda.conventions._tools import (
    Pool,
    check_padding,
    flat,
    flipped,
    no_article,
    with_padding,
    without,
)
from k3check.operators.kda.semantics import KdaInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.nouns.tensors import Tensors

#: packed_kda_decode is made for K3 on eight devices.
HEADS, DIM = 12, 128


def _bind(
    _names: frozenset[str] | None, options: Mapping[str, Any], *, pooled: bool = False
) -> Binding:
    """Norms inside by default; A_log and dt_bias are read by query head."""
    gate_inside = bool(options.get("use_gate_in_kernel", False))
    interface = without(
        KdaInterface(
            gate="raw" if gate_inside else "ln",
            beta="logit" if options.get("beta_is_logit") else "prob",
            norm="op" if options.get("use_qk_l2norm_in_kernel", True) else "caller",
            log_dtype="io",
            rates="query" if gate_inside else "value",
            state="required" if pooled else "optional",
        ),
        "value_dim",
    )

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        lengths, initial = inputs.get("cu_seqlens"), flipped(inputs.get("initial_state"))
        pool = None
        arguments: dict[str, Any] = {
            "q": inputs["q"],
            "k": inputs["k"],
            "v": inputs["v"],
            "g": inputs["gate"],
            "beta": inputs["beta"],
            "scale": inputs.get("scale"),
            "initial_state": initial,
            "output_final_state": True,
            "cu_seqlens": None if lengths is None else lengths.to(torch.int32),
        }
        if pooled:
            pool = Pool.v_first(inputs)
            arguments |= {"initial_state": pool.slots, "ssm_state_indices": pool.indices}
        if gate_inside:
            every = inputs["v"].shape[2] // inputs["k"].shape[2]
            arguments["use_gate_in_kernel"] = True
            arguments["A_log"] = inputs["A_log"][::every].contiguous()
            arguments["dt_bias"] = flat(inputs["dt_bias"][::every])
            arguments["lower_bound"] = inputs["lower_bound"]
        result = target(**{**arguments, **options})
        output, state = parts(result, "output", "final_state", more=True)
        # In place: the buffer that was passed counts, not what is returned beside it.
        kept = pool.states() if pool is not None else state if initial is None else initial
        return {"output": output, "final_state": flipped(kept)}

    return Binding(
        interface,
        call,
        mutates=frozenset({"initial_state"}),
        notes=(Message("K3O-658"),) if gate_inside else (),
        excludes=no_article(interface),
    )


def _bind_packed(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """packed_kda_decode: one token, q, k and v in one row, 12 heads of 128, a padding row of -1."""
    interface = without(
        KdaInterface(scale="fixed", key_dim=DIM, heads=HEADS, state="required"),
        "packed",
        "grouped",
        "value_dim",
        "scale",
    )

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        B = inputs["v"].shape[0]
        pool = Pool.v_first(inputs)
        rows = [inputs[n].reshape(B, -1) for n in ("q", "k", "v")]
        padding = pool.indices.new_full((1,), -1)
        arguments = {
            "mixed_qkv": with_padding(torch.cat(rows, dim=1)),
            "raw_gate": with_padding(inputs["gate"].reshape(B, -1)),
            "raw_beta": with_padding(inputs["beta"].reshape(B, -1)),
            "A_log": inputs["A_log"],
            "dt_bias": flat(inputs["dt_bias"]),
            "state": pool.slots,
            "state_indices": torch.cat([pool.indices, padding]),
        }
        output = target(**{**arguments, **options})
        state = pool.states()
        check_padding(output[B:], -1)
        return {"output": output[:B], "final_state": flipped(state)}

    return Binding(
        interface,
        call,
        mutates=frozenset({"initial_state"}),
        excludes={**no_article(interface), "kimi-linear": "its lower bound is fixed at -5"},
    )


_SIGNATURE = (
    "recurrent_kda(q, k, v, g, beta, A_log=None, dt_bias=None, scale=None, initial_state=None, "
    "output_final_state=False, use_qk_l2norm_in_kernel=True, use_gate_in_kernel=False, "
    "lower_bound=None, cu_seqlens=None, ssm_state_indices=None, num_spec_tokens=None, "
    "num_accepted_tokens=None, output=None, initial_state_source=None, "
    "initial_state_indices=None, beta_is_logit=False)"
)
_REQUIRED = ("q", "k", "v", "g", "beta", "initial_state", "ssm_state_indices", "beta_is_logit")
_TYPICAL = (
    "A_log",
    "dt_bias",
    "scale",
    "output_final_state",
    "use_gate_in_kernel",
    "use_qk_l2norm_in_kernel",
    "lower_bound",
    "cu_seqlens",
)

CONVENTIONS = (
    Convention(
        "flashinfer",
        "flashinfer's recurrent_kda: norms inside, bfloat16 gate, state V-first and in place",
        _REQUIRED,
        _bind,
        typical=_TYPICAL,
        library="flashinfer",
        dtype="bfloat16",
        state_dtype="bfloat16",
        example=Example(
            "kda_recurrent",
            "flashinfer.kda:recurrent_kda",
            _SIGNATURE,
            "(o [B, T, HV, V], final_state[, checkpoints])",
            {"use_gate_in_kernel": True, "beta_is_logit": True},
            state="[N, HV, V, K] bfloat16, updated in place",
        ),
    ),
    Convention(
        "flashinfer-pool",
        "flashinfer's recurrent_kda on a pool of states, with ssm_state_indices",
        _REQUIRED,
        partial(_bind, pooled=True),
        typical=_TYPICAL,
        recognisable=False,
        dtype="bfloat16",
        state_dtype="bfloat16",
        example=Example(
            "kda_step",
            "flashinfer.kda:recurrent_kda",
            _SIGNATURE,
            "(o [B, T, HV, V], final_state[, checkpoints])",
            {"use_gate_in_kernel": True, "beta_is_logit": True},
            state="[slots, HV, V, K] bfloat16, updated in place by slot",
        ),
    ),
)
STEPS_ONLY = (
    Convention(
        "flashinfer-packed",
        "flashinfer's packed_kda_decode: one token, q, k, v in one row, 12 heads of 128",
        ("mixed_qkv", "raw_gate", "raw_beta", "A_log", "dt_bias", "state", "state_indices"),
        _bind_packed,
        library="flashinfer",
        dtype="bfloat16",
        state_dtype="bfloat16",
        example=Example(
            "kda_step",
            "flashinfer.kda_decode:packed_kda_decode",
            "packed_kda_decode(mixed_qkv, raw_gate, raw_beta, A_log, dt_bias, state, "
            "state_indices, output=None)",
            "o [B, 1, 12, 128]",
            state="[slots, 12, V, K] bfloat16, updated in place by slot; -1 is a padding row",
        ),
    ),
    Convention(
        "flashinfer-fused",
        "flashinfer's fused_kda_decode: convolution, KDA and gated norm in one call",
        ("x", "weight", "conv_state", "raw_gate", "raw_beta", "norm_weight"),
        _bind_packed,
        library="flashinfer",
        refuses="it starts before the short convolution and ends after the gated norm",
        example=Example(
            "kda_step",
            "flashinfer.kda_decode:fused_kda_decode",
            "fused_kda_decode(x, weight, conv_state, raw_gate, raw_beta, A_log, dt_bias, "
            "state_indices, state, output_gate, norm_weight, lower_bound=-5.0, norm_eps=1e-5)",
            "o [1, rows, H, 128], normalised and gated",
        ),
    ),
)
