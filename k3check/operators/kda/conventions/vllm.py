"""vLLM: chunk_kda_with_fused_gate and fused_recurrent_kda, with the raw gate and raw beta.

The parameter names are those of public descriptions; no vLLM was called with them yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.nouns.convention import Binding, Convention, Example
from k3check.nouns.returned import parts
from k3check.operators.kda.conventions._tools import (
    Pool,
    flat,
    flipped,
    knows,
    no_article,
    only,
    packed,
    without,
)
from k3check.operators.kda.semantics import KdaInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.nouns.tensors import Tensors


def _bind(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """Packed tokens [1, T, H, K]; with ssm_state_indices the state is a pool, updated in place."""
    has = knows(names)
    pooled = names is not None and "ssm_state_indices" in names
    scaled = has("scale")
    interface = without(
        KdaInterface(
            state="required" if pooled else "optional", scale="argument" if scaled else "fixed"
        ),
        "grouped",
        *(() if scaled else ("scale",)),
    )
    bias = "g_bias" if has("g_bias") else "dt_bias"

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        given = packed(inputs)
        initial = flipped(given.get("initial_state"))
        pool = Pool.v_first(given) if pooled else None
        arguments: dict[str, Any] = {
            "q": given["q"].contiguous(),
            "k": given["k"].contiguous(),
            "v": given["v"].contiguous(),
            "raw_g": given["gate"].contiguous(),
            "raw_beta": given["beta"].contiguous(),
            "A_log": given["A_log"],
            bias: flat(given["dt_bias"]),
            "lower_bound": given["lower_bound"],
            "initial_state": initial if pool is None else pool.slots,
        }
        optional: dict[str, Any] = {
            "scale": given.get("scale"),
            "cu_seqlens": given["cu_seqlens"],
            "output_final_state": True,
            "use_qk_l2norm_in_kernel": True,
        }
        if pool is not None:
            optional["ssm_state_indices"] = pool.indices
        result = target(**{**arguments, **only(names, optional), **options})
        # A pool is updated in place: what is returned beside the output does not count.
        output, state = parts(
            result, "output", "final_state", more=True, optional=0 if pool is None else 1
        )
        kept = state if pool is None else pool.states()
        return {"output": output.reshape(inputs["v"].shape), "final_state": flipped(kept)}

    return Binding(
        interface,
        call,
        mutates=frozenset({"initial_state"}) if pooled else frozenset(),
        excludes=no_article(interface),
    )


CONVENTIONS = (
    Convention(
        "vllm",
        "vLLM: packed tokens, raw_g and raw_beta, norms inside, state V-first",
        ("q", "k", "v", "raw_g", "raw_beta", "A_log", "lower_bound", "initial_state"),
        _bind,
        typical=(
            "g_bias",
            "dt_bias",
            "scale",
            "cu_seqlens",
            "output_final_state",
            "use_qk_l2norm_in_kernel",
            "ssm_state_indices",
        ),
        library="vllm",
        abilities={"scale": ("scale",)},
        example=Example(
            "kda_chunk",
            "kernels/kda.py:chunk_kda_with_fused_gate",
            "chunk_kda_with_fused_gate(q, k, v, raw_g, raw_beta, A_log, g_bias, lower_bound=None, "
            "scale=None, initial_state=None, output_final_state=True, cu_seqlens=None)",
            "(o [1, T, H, V], final_state)",
            state="[N, H, V, K] float32, returned; a pool in place with ssm_state_indices",
        ),
    ),
)
