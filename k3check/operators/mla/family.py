"""The operator ``gated_mla``, put together."""

from __future__ import annotations

from k3check.nouns.check import Family
from k3check.nouns.operator import Operator, Output
from k3check.operators.mla import candidate, cases, conventions, faults, properties, reference
from k3check.operators.mla.semantics import SEMANTICS

GATED_MLA = Operator(
    name="gated_mla",
    suite="mla",
    title="gated multi-head latent attention",
    semantics=SEMANTICS,
    outputs=(
        Output("output", ("batch", "token", "feature")),
        Output("cache", ("batch", "token", "feature")),
    ),
    cases=cases.CASES,
    conventions=conventions.CONVENTIONS,
    raw=cases.raw,
    present=cases.present,
    evaluate=reference.evaluate,
    builtin=candidate.builtin,
    faults=faults.faults,
    baseline=reference.baseline,
    block_operands=True,
    legal=lambda recipe: {
        "absorbed form": reference.absorbed(recipe),
        "eager form": reference.eager(recipe),
    },
    properties=properties.PROPERTIES,
)

FAMILY = Family("mla", (GATED_MLA,))
