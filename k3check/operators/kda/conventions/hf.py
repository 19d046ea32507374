"""Hugging Face transformers: recurrent_ and chunk_kimi_delta_attention.

The released model's own modules call flash-linear-attention: their functions have fla's convention.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.nouns.convention import Binding, Convention, Example
from k3check.nouns.returned import output_and_state, state_unasked
from k3check.operators.kda.conventions._tools import knows, no_article, without
from k3check.operators.kda.semantics import KdaInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.nouns.tensors import Tensors


def _bind(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """Log decay and probabilities; norms inside, as the model asks for; cu_seqlens is not read."""
    has = knows(names)
    interface = without(
        KdaInterface(
            gate="ln",
            beta="prob",
            norm="op" if options.get("use_qk_l2norm_in_kernel", True) else "caller",
            scale="fixed",
            chunk=int(options.get("chunk_size", 64)) if has("chunk_size") else 0,
        ),
        "packed",
        "grouped",
        "scale",
    )

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        arguments = {
            "query": inputs["q"],
            "key": inputs["k"],
            "value": inputs["v"],
            "g": inputs["gate"],
            "beta": inputs["beta"],
            "initial_state": inputs.get("initial_state"),
            "output_final_state": True,
            "use_qk_l2norm_in_kernel": True,
        }
        output, state = output_and_state(target, {**arguments, **options})
        return {"output": output, "final_state": state}

    return Binding(interface, call, excludes=no_article(interface))


CONVENTIONS = (
    Convention(
        "hf",
        "transformers: chunk_kimi_delta_attention and recurrent_kimi_delta_attention",
        ("query", "key", "value", "g", "beta", "initial_state", "output_final_state"),
        _bind,
        typical=("use_qk_l2norm_in_kernel", "chunk_size"),
        library="transformers",
        forms=state_unasked,
        example=Example(
            "kda_chunk",
            "transformers.models.kimi_linear.modeling_kimi_linear:chunk_kimi_delta_attention",
            "chunk_kimi_delta_attention(query, key, value, g, beta, chunk_size=64, "
            "initial_state=None, output_final_state=False, use_qk_l2norm_in_kernel=False, "
            "**kwargs)",
            "(output [B, T, H, V], final_state)",
            state="[B, H, K, V] float32, returned",
        ),
    ),
)
