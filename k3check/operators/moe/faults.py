"""The mistakes that ports of router, activation and expert layer are known for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from k3check.nouns.fault import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from k3check.nouns.recipe import Recipe
    from k3check.operators.moe.semantics import (
        LatentInterface,
        LatentSemantics,
        RouterInterface,
        RouterSemantics,
        SituInterface,
        SituSemantics,
    )

Rows = tuple[tuple[int, str, dict[str, Any]], ...]

ROUTER: Rows = (
    (310, "router.bias-dropped", {"bias": "dropped"}),
    (311, "router.bias-subtracted", {"bias": "subtracted"}),
    (312, "router.bias-before-sigmoid", {"bias": "before_sigmoid"}),
    (313, "router.bias-multiplied", {"bias": "multiplied"}),
    (314, "router.bias-bfloat16", {"bias_rounding": "bfloat16"}),
    (315, "router.bias-reversed", {"bias_expert": "reversed"}),
    (316, "router.bias-rolled", {"bias_expert": "rolled"}),
    (317, "router.weights-biased", {"weights_from": "choice"}),
    (318, "router.weights-of-logits", {"weights_from": "logits"}),
    (319, "router.weights-equal", {"weights_from": "ones"}),
    (320, "router.sum-biased", {"renormalise": "biased_sum"}),
    (321, "router.softmax-scores", {"score": "softmax"}),
    (322, "router.logit-scores", {"score": "logit"}),
    (323, "router.sigmoid-twice", {"score": "sigmoid_twice"}),
    (324, "router.logits-bfloat16", {"logit_rounding": "bfloat16"}),
    (325, "router.smallest", {"direction": "smallest"}),
    (326, "router.shared-in-list", {"count": "with_shared"}),
    (327, "router.one-less", {"count": "one_less"}),
    (328, "router.all-experts", {"count": "all"}),
    (329, "router.first-512", {"experts": "first_512"}),
    (330, "router.modulo-512", {"experts": "modulo_512"}),
    (331, "router.grouped", {"groups": 8}),
    (332, "router.empty-minus-one", {"empty": "minus_one"}),
    (333, "router.empty-zero", {"empty": "zero"}),
    (334, "router.one-based", {"id_base": 1}),
    (335, "router.previous-token", {"token": "previous"}),
    (336, "router.weights-sorted", {"weight_order": "sorted"}),
    (337, "router.weights-rolled", {"weight_order": "rolled"}),
    (338, "router.not-renormalised", {"renormalise": "none"}),
    (339, "router.renormalised-over-all", {"renormalise": "over_all"}),
    (340, "router.renormalised-by-softmax", {"renormalise": "softmax"}),
    (341, "router.renormalised-by-largest", {"renormalise": "largest"}),
    (342, "router.renormalised-anyway", {"switch": "ignored"}),
    (343, "router.scaling-dropped", {"scaling": "none"}),
    (344, "router.scaling-twice", {"scaling": "twice"}),
    (345, "router.scaling-before-sum", {"scaling": "before_sum"}),
)

SITU: Rows = (
    (350, "situ.silu", {"gate": "silu"}),
    (351, "situ.clamped-gate", {"gate": "clamped"}),
    (352, "situ.capped-sigmoid", {"gate": "capped_sigmoid"}),
    (353, "situ.no-sigmoid", {"gate": "no_sigmoid"}),
    (354, "situ.gelu", {"gate": "gelu"}),
    (355, "situ.relu", {"gate": "relu"}),
    (356, "situ.gate-unscaled", {"gate": "unscaled"}),
    (357, "situ.gate-no-division", {"gate": "no_division"}),
    (358, "situ.tanh-of-silu", {"gate": "tanh_of_silu"}),
    (359, "situ.quick-gelu", {"sigmoid_gain": 1.702}),
    (360, "situ.up-uncapped", {"up": "uncapped"}),
    (361, "situ.up-clamped", {"up": "clamped"}),
    (362, "situ.up-gate-beta", {"up": "gate_beta"}),
    (363, "situ.up-unscaled", {"up": "unscaled"}),
    (364, "situ.up-no-division", {"up": "no_division"}),
    (365, "situ.up-plus-one", {"up": "plus_one"}),
    (366, "situ.up-dropped", {"up": "dropped"}),
    (367, "situ.swapped-halves", {"halves": "swapped"}),
    (368, "situ.interleaved-halves", {"halves": "interleaved"}),
    (369, "situ.betas-swapped", {"betas": "swapped"}),
    (370, "situ.betas-unread", {"betas": "one_uncapped"}),
    (371, "situ.betas-released", {"betas": "released"}),
    (372, "situ.swiglu-clamped", {"betas": "swiglu_clamped"}),
    (373, "situ.none-is-released", {"no_linear_beta": "released"}),
    (374, "situ.unsafe-tanh", {"tanh": "exp_ratio"}),
)


#: The codes are those that router and activation left free.
LATENT: Rows = (
    (307, "latent.norm-per-expert", {"norm": "per_expert"}),
    (308, "latent.norm-before-experts", {"norm": "before_experts"}),
    (309, "latent.norm-dropped", {"norm": "dropped"}),
    (346, "latent.gain-dropped", {"norm_gain": "dropped"}),
    (347, "latent.eps-1e-6", {"norm_eps": 1e-06}),
    (348, "latent.weight-before-experts", {"weight_place": "before_experts"}),
    (349, "latent.weights-ones", {"weights": "ones"}),
    (375, "latent.weights-rolled", {"weights": "rolled"}),
    (376, "latent.next-expert", {"expert": "next"}),
    (377, "latent.last-slot", {"dropped": "last_slot"}),
    (378, "latent.overflow", {"dropped": "overflow"}),
    (379, "latent.combine-bfloat16", {"combine": "bfloat16"}),
    (380, "latent.routed-silu", {"activation": "silu"}),
    (381, "latent.routed-swapped", {"activation": "swapped_halves"}),
    (382, "latent.shared-silu", {"shared_activation": "silu"}),
    (383, "latent.shared-swapped", {"shared_activation": "swapped_halves"}),
    (384, "latent.shared-left-out", {"shared": "left_out"}),
    (385, "latent.shared-twice", {"shared": "twice"}),
    (386, "latent.shared-weighted", {"shared": "weighted"}),
    (387, "latent.shared-into-norm", {"shared": "into_norm"}),
    (388, "latent.shared-half", {"shared": "half"}),
    (389, "latent.routed-left-out", {"routed": "left_out"}),
    (397, "latent.routed-twice", {"routed": "twice"}),
    (398, "latent.rank-norms", {"ranks": "after_norm"}),
    (399, "latent.rank-missing", {"ranks": "never"}),
)


def rows(table: Rows, semantics: Any) -> Iterator[Fault]:
    """The faults of a table that differ from some semantics."""
    for code, slug, changes in table:
        if replace(semantics, **changes) != semantics:
            yield Fault(f"K3O-{code}", slug, changes)


def router_faults(
    semantics: RouterSemantics, interface: RouterInterface, _recipe: Recipe
) -> tuple[Fault, ...]:
    """The router's mistakes that this interface can make."""

    def possible(fault: Fault) -> bool:
        if interface.logits and "logit_rounding" in fault.changes:
            return False
        if "scaling" in fault.changes and "scaling" not in interface.supports:
            return False
        return "switch" not in fault.changes or "renormalize" in interface.supports

    return tuple(fault for fault in rows(ROUTER, semantics) if possible(fault))


def situ_faults(
    semantics: SituSemantics, interface: SituInterface, _recipe: Recipe
) -> tuple[Fault, ...]:
    """The activation's mistakes that this interface can make."""
    needs = {
        "situ.interleaved-halves": interface.packed,
        "situ.none-is-released": "uncapped" in interface.supports,
        "situ.betas-released": "betas" in interface.supports,
    }
    return tuple(fault for fault in rows(SITU, semantics) if needs.get(fault.slug, True))


#: what the experts alone can get wrong
CORE = ("weight_place", "weights", "expert", "dropped", "combine", "activation")


def latent_faults(
    semantics: LatentSemantics, interface: LatentInterface, _recipe: Recipe
) -> tuple[Fault, ...]:
    """The expert layer's mistakes that this interface can make."""
    return tuple(
        fault
        for fault in rows(LATENT, semantics)
        if not interface.core or set(fault.changes) <= set(CORE)
    )
