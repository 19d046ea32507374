"""How callables of the field take a gated norm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from k3check.nouns.arguments import taken
from k3check.nouns.convention import Binding, Convention, Example
from k3check.operators.norm.semantics import NormInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.nouns.tensors import Tensors


def _bind_k3check(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        return {"output": target(**{**taken(names, inputs, "eps"), **options})}

    return Binding(NormInterface(), call)


def _bind_fla(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
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
        return {"output": target(**{**taken(names, arguments, "eps"), **options})}

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


CONVENTIONS = (
    Convention(
        "k3check",
        "x and gate [..., D], gain [D], eps",
        ("x", "gate", "gain"),
        _bind_k3check,
        typical=("eps",),
        example=Example(
            "gated_rms_norm",
            "kernels/norm.py:gated_rms_norm",
            "gated_rms_norm(x, gate, gain, eps=1e-5)",
            "output [B, T, H, D]",
        ),
    ),
    Convention(
        "fla",
        "flash-linear-attention's rms_norm_gated, activation=sigmoid passed",
        ("x", "g", "weight", "bias", "activation"),
        _bind_fla,
        typical=("eps",),
        library="fla",
        example=Example(
            "gated_rms_norm",
            "fla.modules.fused_norm_gate:rms_norm_gated",
            "rms_norm_gated(x, g, weight, bias, activation='swish', residual=None, "
            "prenorm=False, residual_in_fp32=False, eps=1e-6)",
            "output [B, T, H, D]",
        ),
    ),
    Convention(
        "module",
        "a class FusedRMSNormGated(hidden_size, eps, activation) whose instances take (x, g)",
        ("hidden_size", "activation", "eps"),
        _bind_module,
        example=Example(
            "gated_rms_norm",
            "fla.modules:FusedRMSNormGated",
            "FusedRMSNormGated(hidden_size, elementwise_affine=True, eps=1e-5, activation='swish')",
            "a module with a weight [D]; called with (x, g) it returns output [B, T, H, D]",
        ),
    ),
)
