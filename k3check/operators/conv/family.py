"""The operator ``short_conv``, put together."""

from __future__ import annotations

from k3check.nouns.check import Family
from k3check.nouns.operator import Operator, Output
from k3check.nouns.recipe import legal_activations
from k3check.operators.conv import candidate, cases, conventions, faults, properties, reference
from k3check.operators.conv.semantics import SEMANTICS

SHORT_CONV = Operator(
    name="short_conv",
    suite="kda",
    title="the short causal convolution",
    semantics=SEMANTICS,
    outputs=(
        Output("output", ("batch", "token", "feature")),
        Output("final_state", ("batch", "feature", "column")),
    ),
    cases=cases.CASES,
    conventions=conventions.CONVENTIONS,
    raw=cases.raw,
    present=cases.present,
    evaluate=reference.evaluate,
    builtin=candidate.builtin,
    faults=faults.faults,
    fit=cases.fit,
    legal=legal_activations,
    properties=properties.PROPERTIES,
)

FAMILY = Family("conv", (SHORT_CONV,))
