"""How callables of the field take a gated norm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from k3check.operators.base import Binding, Convention, Tensors
from k3check.operators.norm.semantics import NormInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def _bind_k3check(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        return {"output": target(**{**inputs, **options})}

    return Binding(NormInterface(), call)


def _bind_fla(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """rms_norm_gated(x, g, weight, bias, activation, eps): its default activation is swish."""

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        arguments = {
            "x": inputs["x"],
            "g": inputs["gate"],
            "weight": inputs["gain"],
            "bias": None,
            "activation": "sigmoid",
            "eps": inputs["eps"],
        }
        return {"output": target(**{**arguments, **options})}

    return Binding(NormInterface(), call)


def _bind_module(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """A class like FusedRMSNormGated(hidden_size, eps, activation) with a weight."""

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        gain = inputs["gain"]
        arguments = {"activation": "sigmoid", "eps": inputs["eps"]} | dict(options)
        module = target(gain.shape[0], **arguments).to(gain.device, gain.dtype)
        with torch.no_grad():
            module.weight.copy_(gain)
            return {"output": module(inputs["x"], inputs["gate"])}

    return Binding(NormInterface(), call)


CONVENTIONS = {
    c.name: c
    for c in (
        Convention(
            "k3check",
            "x and gate [..., D], gain [D], eps",
            ("x", "gate", "gain"),
            _bind_k3check,
            typical=("eps",),
        ),
        Convention(
            "fla",
            "flash-linear-attention's rms_norm_gated, activation=sigmoid passed",
            ("x", "g", "weight", "bias", "activation"),
            _bind_fla,
            typical=("eps",),
        ),
        Convention(
            "module",
            "a class FusedRMSNormGated(hidden_size, eps, activation) whose instances take (x, g)",
            ("hidden_size", "activation", "eps"),
            _bind_module,
        ),
    )
}
