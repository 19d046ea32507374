"""What a case claims to see is visible in it: by five times the limit, in two precisions."""

from __future__ import annotations

from functools import cache

import pytest
import torch

from k3check.nouns.recipe import Recipe
from k3check.operators.kda.faults import CHUNKS
from k3check.operators.kda.sees import SEES
from tests.kill_matrix.matrix import Form, remembered
from tests.kill_matrix.visibility import visibility
from tests.operators.harness import VISIBLE, operator_of

pytestmark = pytest.mark.proof

OPERATORS = ("kda_gate", "kda_step", "kda_recurrent", "kda_chunk")
#: The article's gate alone can get these wrong; tests/operators/test_article_functions.py has them.
OF_THE_ARTICLE = ("gate.no-floor", "gate.bottleneck-not-activated", "gate.bottleneck-relu")
#: Released kernels round as much where inputs are bfloat16; and 2048 tokens are shown once.
FLOAT32_ONLY = {("step-slow", "decay.in-bfloat16"), *(("long-2k", s) for s in SEES["long-2k"])}


@cache
def parts(name, dtype):
    """The operator with memory, its faults by slug (in chunks of 64), interface and semantics."""
    form = Form(name, "k3")
    operator = remembered(operator_of(name), form)
    interface = operator.conventions["k3check"].bind(None, {}).interface
    semantics = operator.semantics["k3"]
    recipe = Recipe(io=getattr(torch, dtype))
    faults = {}
    for fault in operator.faults(semantics, interface, recipe):
        faults.setdefault((fault.slug, fault.values.get("chunk", CHUNKS[0])), fault)
    return operator, semantics, interface, recipe, faults


def claims(name):
    """(case, slug) of what the operator can get wrong: a recurrence has no chunks."""
    slugs = {slug for slug, _ in parts(name, "float32")[-1]}
    return [
        (case, slug)
        for case in operator_of(name).cases
        for slug in case.sees
        if slug in slugs and not (name == "kda_chunk" and not slug.startswith("chunk."))
    ]


PAIRS = [
    (name, dtype, case, slug)
    for name in OPERATORS
    for dtype in ("float32", "bfloat16")
    for case, slug in claims(name)
    if dtype == "float32" or (case.name, slug) not in FLOAT32_ONLY
]


@pytest.mark.parametrize(
    ("name", "dtype", "case", "slug"),
    PAIRS,
    ids=[f"{name}-{dtype}-{case.name}-{slug}" for name, dtype, case, slug in PAIRS],
)
def test_a_claimed_mistake_is_visible(name, dtype, case, slug):
    operator, semantics, interface, recipe, faults = parts(name, dtype)
    seen = visibility(operator, case, faults[slug, 64], semantics, interface, recipe)
    assert seen >= VISIBLE


@pytest.mark.parametrize("name", OPERATORS)
def test_every_case_says_what_it_is_for(name):
    for case in operator_of(name).cases:
        assert case.sees, case.name
        assert len(set(case.sees)) == len(case.sees), case.name


@pytest.mark.parametrize("name", OPERATORS)
def test_every_mistake_is_claimed_by_a_case(name):
    """For every semantics and convention: nothing is listed that no case is aimed at."""
    operator = operator_of(name)
    claimed = {slug for case in operator.cases for slug in case.sees}
    for semantics in operator.semantics.values():
        for convention in operator.conventions.values():
            interface = convention.bind(None, {}).interface
            slugs = {f.slug for f in operator.faults(semantics, interface, Recipe())}
            # K3's gate is the wrong one only for the others; it is gate.softplus reversed
            assert slugs - claimed <= {"gate.lower-bound", *OF_THE_ARTICLE}


@pytest.mark.parametrize("name", OPERATORS)
def test_nothing_is_claimed_that_no_operator_can_get_wrong(name):
    known = set()
    for other in OPERATORS:
        known |= {slug for slug, _ in parts(other, "float32")[-1]}
    for case in operator_of(name).cases:
        assert set(case.sees) <= known, case.name
