"""mlx-lm: gated_delta_update, whose caller normalises q and k and folds the scale into q."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.nouns.convention import Binding, Convention, Example
from k3check.nouns.returned import parts
from k3check.operators.kda.conventions._foreign import with_torch
from k3check.operators.kda.conventions._tools import flipped, knows, no_article, without
from k3check.operators.kda.semantics import KdaInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.nouns.tensors import Tensors


def _bind(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """Raw a and b; alpha itself is formed inside, so there is no log decay to pass."""
    bounded = knows(names)("lower_bound")
    interface = without(KdaInterface(norm="caller", scale="folded"), "packed")

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        arguments: dict[str, Any] = {
            "q": inputs["q"],
            "k": inputs["k"],
            "v": inputs["v"],
            "a": inputs["gate"],
            "b": inputs["beta"],
            "A_log": inputs["A_log"].unsqueeze(-1),
            "dt_bias": inputs["dt_bias"],
            "state": flipped(inputs.get("initial_state")),
        }
        if bounded:
            arguments["lower_bound"] = inputs["lower_bound"]
        result = with_torch(target)(**{**arguments, **options})
        output, state = parts(result, "output", "final_state")
        return {"output": output, "final_state": flipped(state)}

    only_softplus = {"k3": "this version has no lower_bound: its gate is Kimi Linear's"}
    return Binding(
        interface,
        call,
        excludes={**no_article(interface), **({} if bounded else only_softplus)},
    )


CONVENTIONS = (
    Convention(
        "mlx-lm",
        "mlx-lm's gated_delta_update: raw a and b, scale folded into q, state V-first",
        ("q", "k", "v", "a", "b", "A_log", "dt_bias", "state"),
        _bind,
        typical=("mask", "use_kernel", "lower_bound"),
        library="mlx_lm",
        example=Example(
            "kda_recurrent",
            "mlx_lm.models.gated_delta:gated_delta_update",
            "gated_delta_update(q, k, v, a, b, A_log, dt_bias, state=None, mask=None, *, "
            "use_kernel=True, lower_bound=None, allow_neg_eigval=False)",
            "(y [B, T, Hv, Dv], state)",
            state="[B, Hv, Dv, Dk] float32, returned",
        ),
    ),
)
