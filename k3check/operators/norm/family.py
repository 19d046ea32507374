"""The operator ``gated_rms_norm``, put together."""

from __future__ import annotations

from k3check.nouns.check import Family
from k3check.nouns.operator import Operator, Output
from k3check.nouns.recipe import legal_activations
from k3check.operators.norm import candidate, cases, conventions, faults, properties, reference
from k3check.operators.norm.semantics import SEMANTICS

GATED_RMS_NORM = Operator(
    name="gated_rms_norm",
    suite="kda",
    title="the gated norm of KDA's output",
    semantics=SEMANTICS,
    outputs=(Output("output", ("batch", "token", "head", "feature")),),
    cases=cases.CASES,
    conventions=conventions.CONVENTIONS,
    raw=cases.raw,
    present=cases.present,
    evaluate=reference.evaluate,
    builtin=candidate.builtin,
    faults=faults.faults,
    baseline=reference.baseline,
    legal=legal_activations,
    properties=properties.PROPERTIES,
)

FAMILY = Family("norm", (GATED_RMS_NORM,))
