"""The gate's mistakes, for the gate as an operator of its own; codes as in ``faults.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.nouns.fault import Fault
from k3check.operators.kda import faults as kda
from k3check.operators.kda.returned_faults import output_faults

if TYPE_CHECKING:
    from k3check.nouns.recipe import Recipe
    from k3check.operators.kda.semantics import GateInterface, KdaSemantics

FLOOR: kda.Rows = (("K3O-980", "gate.no-floor", {"floor": 0.0}),)
BOTTLENECK: kda.Rows = (
    ("K3O-981", "gate.bottleneck-not-activated", {"bottleneck": "none"}),
    ("K3O-982", "gate.bottleneck-relu", {"bottleneck": "relu"}),
)


def faults(semantics: KdaSemantics, interface: GateInterface, _recipe: Recipe) -> tuple[Fault, ...]:
    """Every mistake against a gate: its form, its parameters, base, granularity and token."""
    rows = [*kda.GATE_FORM, *kda.GATE_SIGN, *kda.GATE_GIVEN]
    if semantics.gate != "floor":
        rows += kda.GATE_PARAMETERS
    if semantics.gate == "floor":
        rows += FLOOR
    if interface.bottleneck:
        rows += BOTTLENECK
    if semantics.gate == "lower_bound":
        rows += kda.GATE_BOUND
    found = [
        Fault(code, slug, changes)
        for code, slug, changes in rows
        if any(getattr(semantics, name) != value for name, value in changes.items())
    ]
    return (*found, *output_faults(("decay",), ()))
