"""What a call alone does not show comes through as well: through the real processes."""

from __future__ import annotations

from pathlib import Path

import pytest

import k3check.runners
from k3check.model import Outcome
from k3check.nouns.request import CandidateSpec, OpsRequest
from k3check.report.listener import Silent

OPERATORS = Path(__file__).with_name("far_operators.py")


@pytest.fixture
def findings(nothing_left, tmp_path):
    """case -> finding of one operator's checks."""

    def findings(operator, name, **spec):
        target = f"{OPERATORS}:{name}"
        given = CandidateSpec(operator, target=target, origin="--operator", **spec)
        request = OpsRequest(
            candidates={operator: given}, only_configured=True, directory=str(tmp_path)
        )
        return {f.case: f for f in k3check.runners.check(request, Silent()).findings}

    return findings


def failed(found):
    return {case for case, f in found.items() if f.outcome.is_failure}


def test_sub_layers_note_what_they_are_handed(findings):
    assert not failed(findings("attn_res", "whole_stack"))
    found = findings("attn_res", "whole_stack_of_other_blocks")
    assert found["stack-walk"].outcome is Outcome.FAIL
    assert found["stack-walk"].hint.code == "K3O-286"


def test_a_buffer_that_the_next_call_overwrites_is_seen(findings):
    assert not failed(findings("short_conv", "conv"))
    found = findings("short_conv", "conv_with_own_buffer")
    # it computes what it should: only what resumes from its state fails
    assert {case for case in failed(found) if not case.startswith("stack-")} == {"short_conv"}
    assert [d.code for d in found["short_conv"].diagnoses] == ["K3O-814"]


def test_views_arrive_as_views_and_changed_inputs_are_seen(findings):
    found = findings("short_conv", "conv_that_ignores_strides")
    assert found["strided"].outcome is Outcome.FAIL
    found = findings("short_conv", "conv_that_writes_its_input")
    assert {f.hint.code for f in found.values() if f.hint and f.outcome is Outcome.FAIL} >= {
        "K3O-008"
    }
