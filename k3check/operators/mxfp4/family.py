"""The operator ``mxfp4_dequant``, put together."""

from __future__ import annotations

from k3check.nouns.check import Family
from k3check.nouns.operator import Operator, Output
from k3check.operators.mxfp4 import candidate, cases, conventions, faults, properties, reference
from k3check.operators.mxfp4.semantics import SEMANTICS

MXFP4_DEQUANT = Operator(
    name="mxfp4_dequant",
    suite="mxfp4",
    title="MXFP4 weights to numbers",
    semantics=SEMANTICS,
    outputs=(Output("output", ("row", "column"), compare="exact"),),
    cases=cases.CASES,
    conventions=conventions.CONVENTIONS,
    raw=cases.raw,
    present=cases.present,
    evaluate=reference.evaluate,
    builtin=candidate.builtin,
    faults=faults.faults,
    properties=properties.PROPERTIES,
)

FAMILY = Family("mxfp4", (MXFP4_DEQUANT,))
