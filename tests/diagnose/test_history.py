"""When nothing is searched for: findings that say by themselves what is wrong."""

from __future__ import annotations

import torch

from k3check.diagnose import prediction
from k3check.diagnose.prediction import predict
from k3check.model import Outcome
from k3check.operators.kda.candidate import kda_recurrent
from k3check.report.formats.lines import paragraphs
from tests.operators.harness import plan_for


def run_all(target):
    """Every finding of the cases, and what the last one amends."""
    checks = [c for c in plan_for("kda_recurrent", target, convention="k3check", profile="quick")
              if c.operator == "kda_recurrent"]  # fmt: skip
    findings = [check.run() for check in checks]
    amended = [finding for check in checks if check.amend for finding in check.amend()]
    return findings, amended


def test_a_wrong_dtype_in_some_cases_leaves_nothing_to_search_for():
    def sometimes_wide(**given):
        output, state = kda_recurrent(**given)
        return (output.double() if given["k"].shape[1] > 100 else output), state

    findings, amended = run_all(sometimes_wide)
    codes = {f.hint.code for f in findings if f.outcome is Outcome.FAIL and f.hint}
    assert "K3O-003" in codes
    assert amended == []


def test_a_right_operator_has_nothing_amended():
    findings, amended = run_all(kda_recurrent)
    assert all(f.outcome is Outcome.PASS for f in findings)
    assert amended == []


def test_a_mistake_is_named_in_every_failed_case():
    def unscaled(**given):
        return kda_recurrent(**{**given, "scale": 1.0})

    findings, amended = run_all(unscaled)
    failed = {f.id for f in findings if f.outcome is Outcome.FAIL and f.metrics
              and "output.relative_l2" in f.metrics}  # fmt: skip
    assert {f.id for f in amended} == failed
    assert {f.diagnoses[0].code for f in amended} == {"K3O-155"}
    assert all(str(f.diagnoses[0].confidence) == "high" for f in amended)


def test_a_prediction_that_breaks_is_told_and_the_others_go_on(monkeypatch):
    def unscaled(**given):
        return kda_recurrent(**{**given, "scale": 1.0})

    def broken(candidate, faults, inputs, *rest):
        if any(fault.slug == "decay.twice" for fault in faults):
            raise AttributeError("a bug of ours")
        return predict(candidate, faults, inputs, *rest)

    monkeypatch.setattr(prediction, "predict", broken)
    _, amended = run_all(unscaled)
    assert {f.diagnoses[0].code for f in amended} == {"K3O-155"}
    (note,) = {n for f in amended for n in map(repr, f.notes) if "K3C-190" in n}
    assert "decay.twice" in note
    assert "AttributeError: a bug of ours" in note


def test_a_nan_keeps_its_own_words():
    def nan_tail(**given):
        output, state = kda_recurrent(**given)
        output = output.clone()
        output[:, 3:] = torch.nan
        return output, state

    _, amended = run_all(nan_tail)
    assert amended
    assert {f.hint.code for f in amended} == {"K3O-004"}


def test_two_mistakes_at_once_are_said_together():
    def unscaled_and_undecayed_beta(**given):
        return kda_recurrent(**{**given, "scale": 1.0, "dt_bias": None})

    _, amended = run_all(unscaled_and_undecayed_beta)
    for finding in amended:
        first, second = finding.diagnoses[:2]
        assert {first.code, second.code} == {"K3O-155", "K3O-114"}
        assert second.values["together_with"] == first.code
    lines = [paragraph.label for paragraph in paragraphs(amended[0], "en")]
    assert "and" in lines
    assert "or" not in lines
