"""The mistakes that ports of the gated norm are known for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from k3check.nouns.fault import Fault

if TYPE_CHECKING:
    from k3check.nouns.recipe import Recipe
    from k3check.operators.norm.semantics import NormInterface, NormSemantics

_CHANGES: tuple[tuple[int, str, dict[str, Any]], ...] = (
    (526, "gate-first", {"order": "gate_first"}),
    (527, "silu", {"gate": "silu"}),
    (528, "no-gate", {"gate": "none"}),
    (529, "raw-gate", {"gate": "raw"}),
    (530, "tanh", {"gate": "tanh"}),
    (531, "gate-inverted", {"gate": "one_minus"}),
    (532, "softmax-gate", {"gate": "softmax"}),
    (533, "heads-reversed", {"gate_head": "reversed"}),
    (534, "gate-of-first-head", {"gate_head": "first"}),
    (535, "previous-token", {"gate_token": "previous"}),
    (536, "l2", {"norm": "l2"}),
    (537, "layer-norm", {"norm": "layer"}),
    (538, "no-norm", {"norm": "none"}),
    (539, "all-heads", {"over": "all_heads"}),
    (540, "over-tokens", {"over": "tokens"}),
    (541, "eps-1e-6", {"eps": 1e-6}),
    (542, "eps-on-sum", {"eps_on": "sum"}),
    (543, "eps-outside", {"eps_on": "outside"}),
    (544, "gain-dropped", {"gain": "dropped"}),
    (545, "gain-one-plus", {"gain": "one_plus"}),
    (546, "gain-twice", {"gain": "twice"}),
    (547, "gain-before", {"gain": "before_norm"}),
    (548, "gain-reversed", {"gain": "reversed"}),
)


def faults(
    semantics: NormSemantics, _interface: NormInterface, _recipe: Recipe
) -> tuple[Fault, ...]:
    """Every mistake that differs from these semantics."""
    return tuple(
        Fault(f"K3O-{code}", f"gated-norm.{slug}", change)
        for code, slug, change in _CHANGES
        if replace(semantics, **change) != semantics
    )
