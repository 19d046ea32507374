"""TensorRT-LLM: kda_decode, which is more than this operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.nouns.convention import Binding, Convention, Example
from k3check.operators.kda.semantics import KdaInterface

if TYPE_CHECKING:
    from collections.abc import Mapping


def _bind(_names: frozenset[str] | None, _options: Mapping[str, Any]) -> Binding:
    """Never called: the convention is refused before."""
    return Binding(KdaInterface(), lambda _target, _inputs: {})


STEPS_ONLY = (
    Convention(
        "trtllm",
        "TensorRT-LLM's kda_decode: convolution and KDA in one call",
        ("x_q", "x_k", "x_v"),
        _bind,
        library="tensorrt_llm",
        refuses="its x_q, x_k and x_v are what goes into the short convolution, which it does "
        "itself, with its own cache of the last three inputs",
        example=Example(
            "kda_step",
            "kernels/kda.py:kda_decode",
            "kda_decode(x_q, x_k, x_v, w_q_t, w_k_t, w_v_t, conv_state, g, beta, A_log, dt_bias, "
            "state, lower_bound=None)",
            "o [B, 1, H, 128]",
        ),
    ),
)
