"""Correct candidates pass, and nobody tells them what is wrong with them."""

from __future__ import annotations

import pytest

from tests.kill_matrix.matrix import compared, failures
from tests.kill_matrix.right import all_variants

pytestmark = pytest.mark.proof

VARIANTS = all_variants()


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.where.replace(" · ", "-"))
def test_a_correct_candidate_passes_without_a_diagnosis(variant):
    findings = variant.findings("quick")
    assert not failures(findings)
    assert compared(findings)
