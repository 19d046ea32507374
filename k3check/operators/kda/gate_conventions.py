"""How gate functions take and return their tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from k3check.nouns.arguments import taken
from k3check.nouns.convention import Binding, Convention, Example
from k3check.operators.kda.semantics import GateInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.nouns.tensors import Tensors


def _bind_k3check(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        tensors = {n: v for n, v in inputs.items() if n != "floor" or v is not None}
        if inputs["lower_bound"] is None:  # a softplus gate may do without the parameter
            tensors = taken(names, tensors, "lower_bound")
        return {"decay": target(**{**tensors, **options})}

    return Binding(GateInterface(), call)


def _bind_fla(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """naive_kda_gate, naive_kda_lowerbound_gate and fused_kda_gate of fla.

    A function without a ``lower_bound`` parameter is the softplus gate, whatever the model is.
    """

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        bias = inputs.get("dt_bias")
        arguments: dict[str, Any] = {
            "g": inputs["gate"],
            "A_log": inputs.get("A_log"),
            "dt_bias": None if bias is None else bias.flatten(),
        }
        if names is None or "lower_bound" in names:
            arguments["lower_bound"] = inputs["lower_bound"]
        return {"decay": target(**{**arguments, **options})}

    return Binding(GateInterface(supports=frozenset()), call)


def _bind_logits(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        return {"decay": target(inputs["gate"], **options)}

    return Binding(GateInterface(output="alpha"), call)


def _bind_article(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """compute_fine_grained_gate(x, W_alpha, W_alpha_down): one token of one head."""

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        x, first, second = (inputs[name] for name in ("x", "W_alpha", "W_alpha_down"))
        rows = [target(one, first, second, **options) for one in x.flatten(0, 2)]
        if not rows:
            return {"decay": x.new_zeros(*x.shape[:3], len(second))}
        return {"decay": torch.stack(rows).unflatten(0, x.shape[:3])}

    why = "its gate is sigmoid(logits) * 0.99 + 0.01 of a bottleneck, without rate and bias"
    excludes = {"k3": why, "kimi-linear": why}
    interface = GateInterface(output="alpha", supports=frozenset(), bottleneck=True)
    return Binding(interface, call, excludes=excludes)


CONVENTIONS = {
    c.name: c
    for c in (
        Convention(
            "k3check",
            "gate, A_log, dt_bias, lower_bound -> log decay",
            ("gate", "A_log", "dt_bias"),
            _bind_k3check,
            typical=("lower_bound", "floor"),
            example=Example(
                "kda_gate",
                "kernels/gate.py:kda_gate",
                "kda_gate(gate, A_log, dt_bias, lower_bound=-5.0)",
                "the log decay [B, T, HV, K], natural logarithm; A_log may have more entries "
                "than there are heads (K3's checkpoint stores 128 for 96): read A_log[:HV]",
            ),
        ),
        Convention(
            "fla",
            "flash-linear-attention: naive_kda_gate, naive_kda_lowerbound_gate, fused_kda_gate",
            ("g", "A_log", "dt_bias"),
            _bind_fla,
            typical=("lower_bound",),
            library="fla",
            example=Example(
                "kda_gate",
                "fla.ops.kda.gate:fused_kda_gate",
                "fused_kda_gate(g, A_log, dt_bias=None, lower_bound=None, "
                "output_dtype=torch.float32)",
                "the log decay [B, T, HV, K], natural logarithm",
            ),
        ),
        Convention(
            "article-logits",
            "alpha of the logits: logits -> sigmoid -> [floor, 1]",
            ("logits",),
            _bind_logits,
            positional=True,
            unlike=("A_log", "dt_bias", "lower_bound"),
            semantics="article",
            example=Example(
                "kda_gate",
                "kernels/gate.py:alpha_of",
                "alpha_of(logits)",
                "the decay itself, alpha [B, T, HV, K]",
            ),
        ),
        Convention(
            "article",
            "compute_fine_grained_gate(x, W_alpha, W_alpha_down) -> alpha: one token of one head",
            ("x", "W_alpha", "W_alpha_down"),
            _bind_article,
            positional=True,
            semantics="article",
            example=Example(
                "kda_gate",
                "kernels/gate.py:compute_fine_grained_gate",
                "compute_fine_grained_gate(x, W_alpha, W_alpha_down)",
                "the decay itself, alpha [K]",
            ),
        ),
    )
}
