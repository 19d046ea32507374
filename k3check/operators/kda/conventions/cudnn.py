"""cuDNN frontend: kimi_delta_attention on packed tokens. Its fla shim has fla's convention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.nouns.convention import Binding, Convention, Example
from k3check.nouns.returned import parts
from k3check.operators.kda.conventions._tools import flipped, no_article, packed
from k3check.operators.kda.semantics import KdaInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.nouns.tensors import Tensors


def _bind(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """A batch is packed too. With safe_gate the gate is raw, without it the natural log decay."""
    raw = bool(options.get("safe_gate", False))
    interface = KdaInterface(
        gate="raw" if raw else "alpha" if options.get("gate_domain") == "linear" else "ln",
        beta="logit" if options.get("use_beta_sigmoid_in_kernel") else "prob",
        norm="op" if options.get("use_qk_l2norm_in_kernel") else "caller",
    )

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        given = packed(inputs)
        arguments: dict[str, Any] = {
            "q": given["q"][0],
            "k": given["k"][0],
            "v": given["v"][0],
            "g": given["gate"][0],
            "beta": given["beta"][0],
            "cu_seqlens": given["cu_seqlens"],
            "scale": given.get("scale"),
            "initial_state": flipped(given.get("initial_state")),
            "output_final_state": True,
        }
        if raw:
            arguments |= {
                "gate_lower_bound": given["lower_bound"],
                "a_log": given["A_log"],
                "dt_bias": given["dt_bias"],
            }
        result = target(**{**arguments, **options})
        output, state = parts(result, "output", "final_state", more=True)
        return {"output": output.reshape(inputs["v"].shape), "final_state": flipped(state)}

    softplus = {"kimi-linear": "its gate inside has a lower bound; activate it outside"}
    return Binding(interface, call, excludes={**no_article(interface), **(softplus if raw else {})})


CONVENTIONS = (
    Convention(
        "cudnn",
        "cuDNN frontend's kimi_delta_attention: packed [tokens, H, K], state V-first",
        ("q", "k", "v", "g", "beta", "cu_seqlens", "gate_lower_bound", "a_log"),
        _bind,
        typical=("scale", "initial_state", "output_final_state", "dt_bias", "safe_gate"),
        library="cudnn",
        example=Example(
            "kda_chunk",
            "cudnn.linear_attention.ops.kda:kimi_delta_attention",
            "kimi_delta_attention(q, k, v, g, beta, cu_seqlens, scale=None, initial_state=None, "
            "output_final_state=False, use_qk_l2norm_in_kernel=False, batch_invariant=False, "
            "use_beta_sigmoid_in_kernel=False, allow_neg_eigval=False, safe_gate=False, "
            "gate_lower_bound=None, gate_domain='log', a_log=None, dt_bias=None)",
            "(o [tokens, HV, V], final_state[, checkpoints])",
            {
                "safe_gate": True,
                "use_beta_sigmoid_in_kernel": True,
                "use_qk_l2norm_in_kernel": True,
            },
            state="[N, HV, V, K], returned",
        ),
    ),
)
