"""tt-metal's reference: kda_recurrent_reference, called by position.

What its parameters are called is not public knowledge here, so their order alone counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.nouns.convention import Binding, Convention, Example
from k3check.nouns.returned import parts
from k3check.operators.kda.conventions._tools import no_article, without
from k3check.operators.kda.semantics import KdaInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.nouns.tensors import Tensors


def _bind(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """q, k, v, log decay, beta and the carried state; norms and scale inside."""
    interface = without(
        KdaInterface(gate="ln", beta="prob", scale="fixed"), "packed", "grouped", "scale"
    )

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        given = [inputs[name] for name in ("q", "k", "v", "gate", "beta")]
        result = target(*given, inputs.get("initial_state"), **options)
        output, state = parts(result, "output", "final_state")
        return {"output": output, "final_state": state}

    return Binding(interface, call, excludes=no_article(interface))


CONVENTIONS = (
    Convention(
        "tt-metal",
        "tt-metal's kda_recurrent_reference: by position, log decay, norms and scale inside",
        ("q", "k", "v", "g", "beta"),
        _bind,
        typical=("state", "initial_state"),
        positional=True,
        recognisable=False,
        example=Example(
            "kda_recurrent",
            "kernels/reference.py:kda_recurrent_reference",
            "kda_recurrent_reference(q, k, v, g, beta, state=None)",
            "(o [B, T, H, V], state)",
            state="[B, H, K, V], returned",
        ),
    ),
)
