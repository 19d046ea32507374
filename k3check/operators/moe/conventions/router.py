"""How callables of the field take and return routing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch

from k3check.nouns.arguments import able, taken
from k3check.nouns.convention import Binding, Convention, Example
from k3check.nouns.returned import parts
from k3check.operators.moe.semantics import RouterInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.nouns.tensors import Tensors

OURS = {"renormalize": ("renormalize",), "scaling": ("scaling",)}
SCALED = {"scaling": ("routed_scaling_factor",)}
ROUTES = "(ids [T, k], weights [T, k]) in either order: ids are the integers"
#: In either order: they are told apart by their dtype.
ROUTED = ("ids", "weights")


def routing(result: Any, inputs: Tensors) -> Tensors:
    """(ids, weights) or (weights, ids), told apart by dtype, as ids and dense weights.

    Returns:
        ``ids`` [T, k] ascending and ``weights`` [T, E]. Whatever cannot be brought into that form
        is handed on as it is: the comparison says what is wrong with it.

    Raises:
        ConventionBroken: it is one output, not two.
    """
    parts(result, *ROUTED, more=True)
    tensors = [x for x in result if isinstance(x, torch.Tensor)]
    ids = next((x for x in tensors if not x.is_floating_point()), None)
    weights = next((x for x in tensors if x.is_floating_point()), None)
    if ids is None:
        first, last = (tensors[0], tensors[-1]) if tensors else (result[0], None)
        return {"ids": first, "weights": last}
    if weights is None:
        return {"ids": ids, "weights": None}
    ids = ids.reshape(-1, ids.shape[-1]).long()
    weights = weights.reshape(-1, weights.shape[-1])
    E = inputs["bias"].shape[0]
    if weights.shape != ids.shape:
        return {"ids": ids, "weights": weights}
    known = (ids >= 0) & (ids < E)
    dense = weights.new_zeros(len(ids), E)
    dense = dense.scatter_add(1, ids.clamp(0, E - 1), torch.where(known, weights, 0))
    return {"ids": ids.sort(-1).values, "weights": dense}


def _bind_router(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        arguments = taken(names, inputs, "renormalize", "scaling")
        return routing(target(**{**arguments, **options}), inputs)

    return Binding(RouterInterface(supports=able(names, OURS)), call)


def _bind_hf_gate(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """KimiMoEGate.forward as a function: self carries the weights and the configuration."""

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        E, D = inputs["weight"].shape
        gate = SimpleNamespace(
            weight=inputs["weight"],
            e_score_correction_bias=inputs["bias"],
            top_k=inputs["top_k"],
            num_experts=E,
            n_routed_experts=E,
            gating_dim=D,
            routed_scaling_factor=inputs["scaling"],
            moe_router_activation_func="sigmoid",
            scoring_func="sigmoid",
            moe_renormalize=inputs["renormalize"],
            norm_topk_prob=inputs["renormalize"],
            num_expert_group=1,
            n_group=1,
            topk_group=1,
            topk_method="noaux_tc",
            use_grouped_topk=True,
            training=False,
            **options,
        )
        return routing(target(gate, inputs["hidden"].unsqueeze(0)), inputs)

    return Binding(RouterInterface(), call)


def _bind_vllm(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """fused_grouped_topk / grouped_topk: logits in, (weights, ids) out."""
    scaled = names is None or "routed_scaling_factor" in names

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        arguments = {
            "hidden_states": inputs["hidden"],
            "gating_output": inputs["logits"],
            "topk": inputs["top_k"],
            "renormalize": inputs["renormalize"],
            "num_expert_group": 1,
            "topk_group": 1,
            "scoring_func": "sigmoid",
            "e_score_correction_bias": inputs["bias"],
        }
        if scaled:
            arguments["routed_scaling_factor"] = inputs["scaling"]
        return routing(target(**{**arguments, **options}), inputs)

    supports = frozenset({"renormalize", "scaling"} if scaled else {"renormalize"})
    return Binding(RouterInterface(logits=True, supports=supports), call)


def _bind_sglang(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """biased_grouped_topk: logits in, (weights, ids) out."""
    scaled = names is None or "routed_scaling_factor" in names

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        arguments = {
            "hidden_states": inputs["hidden"],
            "gating_output": inputs["logits"],
            "correction_bias": inputs["bias"],
            "topk": inputs["top_k"],
            "renormalize": inputs["renormalize"],
            "num_expert_group": 1,
            "topk_group": 1,
        }
        if scaled:
            arguments["routed_scaling_factor"] = inputs["scaling"]
        return routing(target(**{**arguments, **options}), inputs)

    supports = frozenset({"renormalize", "scaling"} if scaled else {"renormalize"})
    return Binding(RouterInterface(logits=True, supports=supports), call)


def _bind_logits(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """(logits, bias, top_k): the least that a router kernel takes."""

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        result = target(inputs["logits"], inputs["bias"], inputs["top_k"], **options)
        return routing(result, inputs)

    return Binding(RouterInterface(logits=True, supports=frozenset()), call)


ROUTER = (
    Convention(
        "k3check",
        "hidden [T, D], weight [E, D], bias [E] -> (ids, weights) in either order",
        ("hidden", "weight", "bias", "top_k"),
        _bind_router,
        typical=("renormalize", "scaling"),
        abilities=OURS,
        example=Example(
            "moe_router",
            "kernels/router.py:moe_router",
            "moe_router(hidden, weight, bias, top_k, renormalize=True, scaling=1.0)",
            ROUTES,
        ),
    ),
    Convention(
        "hf",
        "KimiMoEGate.forward of the released model, called with a stand-in for self",
        ("self", "hidden_states"),
        _bind_hf_gate,
        positional=True,
        example=Example(
            "moe_router",
            "modeling_kimi_linear:KimiMoEGate.forward",
            "forward(self, hidden_states)",
            ROUTES,
        ),
    ),
    Convention(
        "vllm",
        "fused_grouped_topk and grouped_topk: logits in",
        ("hidden_states", "gating_output", "topk", "renormalize", "e_score_correction_bias"),
        _bind_vllm,
        typical=("num_expert_group", "topk_group", "scoring_func", "routed_scaling_factor"),
        abilities=SCALED,
        example=Example(
            "moe_router",
            "kernels/router.py:fused_grouped_topk",
            "fused_grouped_topk(hidden_states, gating_output, topk, renormalize, "
            "e_score_correction_bias, num_expert_group=0, topk_group=0, "
            "scoring_func='softmax', routed_scaling_factor=1.0)",
            ROUTES,
        ),
    ),
    Convention(
        "sglang",
        "biased_grouped_topk: logits in",
        ("hidden_states", "gating_output", "correction_bias", "topk", "renormalize"),
        _bind_sglang,
        typical=("num_expert_group", "topk_group", "routed_scaling_factor"),
        abilities=SCALED,
        example=Example(
            "moe_router",
            "kernels/router.py:biased_grouped_topk",
            "biased_grouped_topk(hidden_states, gating_output, correction_bias, topk, "
            "renormalize, num_expert_group=None, topk_group=None, "
            "routed_scaling_factor=1.0)",
            ROUTES,
        ),
    ),
    Convention(
        "logits",
        "(logits [T, E], bias [E], top_k), weights renormalised, no factor",
        ("logits", "bias", "top_k"),
        _bind_logits,
        positional=True,
        example=Example(
            "moe_router", "kernels/router.py:route", "route(logits, bias, top_k)", ROUTES
        ),
    ),
)
