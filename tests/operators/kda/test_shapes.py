"""What a case is there for is as visible with the shapes that an accelerator's run has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from k3check.nouns.shapes import Shapes
from tests.kill_matrix.visibility import visibility
from tests.operators.harness import VISIBLE, operator_of
from tests.operators.kda.test_sees import PAIRS, parts

FEW = Shapes(few=True)
#: Long sequences are shown once, on their own shape.
LONG = ("long-1k", "long-2k")


@pytest.mark.proof
@pytest.mark.parametrize(
    ("name", "dtype", "case", "slug"),
    [pair for pair in PAIRS if pair[0] != "kda_gate" and pair[2].name not in LONG],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_claimed_mistake_is_visible(name, dtype, case, slug):
    _, semantics, interface, recipe, faults = parts(name, dtype)
    operator = operator_of(name)
    few = operator.sized(case, interface, FEW)
    seen = visibility(operator, few, faults[slug, 64], semantics, interface, recipe)
    assert seen >= VISIBLE


def test_a_fixed_size_stays():

    operator = operator_of("kda_step")
    case = operator.cases[0]
    interface = operator.conventions["k3check"].bind(None, {}).interface
    fixed = replace(case, spec=replace(case.spec, fixed=True))
    assert operator.sized(fixed, interface, FEW) == fixed
    assert operator.sized(case, interface, FEW).spec.key_dim == 128
