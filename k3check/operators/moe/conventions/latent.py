"""How callables of the field take the expert layer, or its experts alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from k3check.nouns.arguments import taken
from k3check.nouns.convention import Binding, Convention, Example
from k3check.operators.moe.semantics import LatentInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.nouns.tensors import Tensors

CORE = LatentInterface(core=True, supports=frozenset())


def _bind_layer(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        return {"output": target(**{**taken(names, inputs, "eps"), **options})}

    return Binding(LatentInterface(), call)


def _bind_fused(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """fused_experts(hidden_states, w1 [E, 2 I, L], w2, topk_weights, topk_ids), gate first."""

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        arguments = {
            "hidden_states": inputs["z"],
            "w1": torch.cat([inputs["w1"], inputs["w3"]], dim=1),
            "w2": inputs["w2"],
            "topk_weights": inputs["weights"],
            "topk_ids": inputs["ids"].int(),
        }
        return {"output": target(**{**arguments, **options})}

    return Binding(CORE, call)


def _bind_grouped(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """(x, w1_EFD, w2_EDF, w3_EFD, ids, weights) of torchtitan: one tensor a projection."""

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        arguments = {
            "x": inputs["z"],
            "w1": inputs["w1"],
            "w2": inputs["w2"],
            "w3": inputs["w3"],
            "topk_ids": inputs["ids"],
            "topk_weights": inputs["weights"],
        }
        return {"output": target(**{**arguments, **options})}

    return Binding(CORE, call)


LATENT = (
    Convention(
        "k3check",
        "the whole layer on x [T, D], routing given, every weight a tensor of its own",
        ("x", "ids", "weights", "w_down", "w1", "w3", "w2", "gain", "w_up", "s1", "s3", "s2"),
        _bind_layer,
        typical=("eps",),
        example=Example(
            "latent_moe",
            "kernels/moe.py:latent_moe",
            "latent_moe(x, ids, weights, w_down, w1, w3, w2, gain, w_up, s1, s3, s2, eps=1e-5)",
            "output [T, D]",
        ),
    ),
    Convention(
        "fused-experts",
        "vLLM's fused_experts: the latent in, the weighted sum out, w1 = [gate; up]",
        ("hidden_states", "w1", "w2", "topk_weights", "topk_ids"),
        _bind_fused,
        example=Example(
            "latent_moe",
            "kernels/moe.py:fused_experts",
            "fused_experts(hidden_states, w1, w2, topk_weights, topk_ids)",
            "output [T, L]: the weighted sum over a token's experts",
        ),
    ),
    Convention(
        "experts",
        "the experts alone with three weights: x [T, L], w1, w2, w3, topk_ids, topk_weights",
        ("x", "w1", "w2", "w3", "topk_ids", "topk_weights"),
        _bind_grouped,
        example=Example(
            "latent_moe",
            "kernels/moe.py:experts",
            "experts(x, w1, w2, w3, topk_ids, topk_weights)",
            "output [T, L]: the weighted sum over a token's experts",
        ),
    ),
)
