"""The operator ``attn_res``, put together."""

from __future__ import annotations

from k3check.nouns.check import Family
from k3check.nouns.operator import Operator, Output
from k3check.operators.attn_res import (
    article,
    candidate,
    cases,
    conventions,
    faults,
    properties,
    recipes,
    reference,
)
from k3check.operators.attn_res.semantics import SEMANTICS

# The width is no axis of parts: a channel that happens to be near zero in each of a few tokens has
# no relative error worth judging, and one of 7168 always is.
OUTPUT = Output("output", ("token", "feature"))

ATTN_RES = Operator(
    name="attn_res",
    suite="attnres",
    title="one mix of attention residuals",
    semantics=SEMANTICS,
    outputs=(OUTPUT,),
    cases=cases.CASES,
    conventions=conventions.CONVENTIONS,
    raw=cases.raw,
    present=cases.present,
    evaluate=reference.evaluate,
    builtin=candidate.builtin,
    faults=faults.faults,
    baseline=reference.baseline,
    block_operands=True,
    legal=recipes.legal,
    properties=properties.PROPERTIES,
    sized=cases.sized,
)

FAMILY = Family("attn_res", (ATTN_RES,), article.checks)
