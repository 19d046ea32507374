"""sglang: chunk_kda and the fused decode, both on a pool of states that they update in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.nouns.convention import Binding, Convention, Example
from k3check.operators.kda.conventions._tools import (
    Pool,
    flat,
    flipped,
    knows,
    no_article,
    packed,
)
from k3check.operators.kda.semantics import KdaInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import torch

    from k3check.nouns.tensors import Tensors

#: chunk_kda writes its output over v; the pool is the caller's too.
MUTATES = frozenset({"initial_state", "v"})


def first(result: Any) -> torch.Tensor:
    """The output, alone or before the states at chunk boundaries."""
    found: torch.Tensor = result[0] if isinstance(result, tuple | list) else result
    return found


def _bind_chunk(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """As sglang calls it: raw gate with A_log, raw beta, norms inside."""
    has = knows(names)
    raw_beta = bool(options.get("beta_is_raw", has("beta_is_raw")))
    interface = KdaInterface(
        beta="logit" if raw_beta else "prob",
        norm="op" if options.get("use_qk_l2norm_in_kernel", True) else "caller",
        state="required",
    )

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        given, pool = packed(inputs), Pool.v_first(inputs)
        arguments: dict[str, Any] = {
            "q": given["q"],
            "k": given["k"],
            "v": given["v"],
            "g": given["gate"],
            "beta": given["beta"],
            "scale": given.get("scale"),
            "initial_state": pool.slots,
            "initial_state_indices": pool.indices,
            "use_qk_l2norm_in_kernel": True,
            "cu_seqlens": given["cu_seqlens"],
            "A_log": given["A_log"],
            "dt_bias": flat(given["dt_bias"]),
            "lower_bound": given["lower_bound"],
        }
        if raw_beta:
            arguments["beta_is_raw"] = True
        output = first(target(**{**arguments, **options}))
        return {
            "output": output.reshape(inputs["v"].shape),
            "final_state": flipped(pool.states()),
        }

    return Binding(interface, call, mutates=MUTATES, excludes=no_article(interface))


def _bind_fused(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """fused_sigmoid_gating_delta_rule_update with is_kda: a is the raw gate, b the raw beta."""
    interface = KdaInterface(
        norm="op" if options.get("use_qk_l2norm_in_kernel", True) else "caller", state="required"
    )

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        given, pool = packed(inputs), Pool.v_first(inputs)
        arguments: dict[str, Any] = {
            "A_log": given["A_log"],
            "a": given["gate"],
            "dt_bias": flat(given["dt_bias"]),
            "softplus_beta": 1.0,
            "softplus_threshold": 20.0,
            "q": given["q"],
            "k": given["k"],
            "v": given["v"],
            "b": given["beta"],
            "initial_state_source": pool.slots,
            "initial_state_indices": pool.indices,
            "scale": given.get("scale"),
            "use_qk_l2norm_in_kernel": True,
            "cu_seqlens": given["cu_seqlens"],
            "is_kda": True,
            "lower_bound": given["lower_bound"],
        }
        output = first(target(**{**arguments, **options}))
        return {
            "output": output.reshape(inputs["v"].shape),
            "final_state": flipped(pool.states()),
        }

    return Binding(
        interface,
        call,
        mutates=frozenset({"initial_state"}),
        excludes=no_article(interface),
    )


CONVENTIONS = (
    Convention(
        "sglang",
        "sglang's chunk_kda: packed tokens, raw gate and beta, a pool of states in place",
        ("q", "k", "v", "g", "beta", "initial_state", "initial_state_indices", "A_log"),
        _bind_chunk,
        typical=(
            "scale",
            "use_qk_l2norm_in_kernel",
            "cu_seqlens",
            "dt_bias",
            "lower_bound",
            "beta_is_raw",
        ),
        library="sglang",
        example=Example(
            "kda_chunk",
            "sglang.kernels.ops.attention.fla.kda:chunk_kda",
            "chunk_kda(q, k, v, g, beta, scale=None, initial_state=None, "
            "initial_state_indices=None, use_qk_l2norm_in_kernel=False, cu_seqlens=None, "
            "A_log=None, dt_bias=None, lower_bound=None, output_intermediate_states=False, "
            "track_state=None, track_chunk_idx=None, beta_is_raw=False, **kwargs)",
            "o [1, T, HV, V], or (o, h) with output_intermediate_states; v is overwritten",
            state="[slots, HV, V, K], updated in place by slot",
        ),
    ),
    Convention(
        "sglang-fused",
        "sglang's fused_sigmoid_gating_delta_rule_update with is_kda, for decode",
        (
            "A_log",
            "a",
            "dt_bias",
            "q",
            "k",
            "v",
            "b",
            "initial_state_source",
            "initial_state_indices",
            "is_kda",
        ),
        _bind_fused,
        typical=(
            "softplus_beta",
            "softplus_threshold",
            "scale",
            "use_qk_l2norm_in_kernel",
            "cu_seqlens",
            "lower_bound",
        ),
        library="sglang",
        example=Example(
            "kda_step",
            "kernels/decode.py:fused_sigmoid_gating_delta_rule_update",
            "fused_sigmoid_gating_delta_rule_update(A_log, a, dt_bias, softplus_beta, "
            "softplus_threshold, q, k, v, b, initial_state_source, initial_state_indices, "
            "scale=None, use_qk_l2norm_in_kernel=False, cu_seqlens=None, is_kda=False, "
            "lower_bound=None)",
            "o [1, T, HV, V]",
            state="[slots, HV, V, K], updated in place by slot",
        ),
    ),
)
