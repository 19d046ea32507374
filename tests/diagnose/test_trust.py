"""Two calls that do not agree: every other failure is a lead at most, and this comes first."""

from __future__ import annotations

import torch

from k3check.model import Confidence, Outcome
from k3check.operators.kda.candidate import kda_recurrent
from tests.operators.harness import operator_of, plan_for

FIRST = "K3O-713"


def run_all(target, profile="full", name="kda_recurrent"):
    """The findings by id, as they stand when every check of the operator has run."""
    found = {}
    for check in plan_for(name, target, convention="k3check", profile=profile):
        if check.operator == name and check.suite != "cache":
            found[check.id] = check.run()
            found |= {f.id: f for f in (check.amend() if check.amend else ())}
    return found


def failed(found):
    return {f.id: f for f in found.values() if f.outcome is Outcome.FAIL}


def unscaled(**given):
    return kda_recurrent(**{**given, "scale": 1.0})


class Races:
    """Another function's result; from some call on the same keys on, one token is lost or not."""

    def __init__(self, function, steady):
        self.function, self.steady = function, steady
        self.keys, self.calls = torch.empty(0), 0

    def __call__(self, **given):
        output, state = self.function(**given)
        self.calls = self.calls + 1 if torch.equal(self.keys, given["k"]) else 1
        self.keys = given["k"].clone()
        if self.calls > self.steady and output.shape[1] > 6:
            output = output.clone()
            output[:, 6] = 0
        return output, state


def test_a_race_that_the_cases_show_makes_every_cause_a_lead():
    """Quick has no check of its own for it: failing cases are called again."""
    found = failed(run_all(Races(unscaled, 1), "quick"))
    assert found
    for finding in found.values():
        assert finding.diagnoses[0].code == FIRST
        assert finding.hint.code == FIRST
        assert {d.confidence for d in finding.diagnoses} == {Confidence.LOW}


def test_a_race_that_the_last_check_shows_takes_back_what_was_named():
    """Two calls in a row agree, so that nothing shows before the check that makes five."""
    racing = Races(unscaled, 2)
    found = failed(run_all(racing))
    repeat = found.pop("kda_recurrent/repeat")
    assert repeat.hint.code == "K3O-706"
    assert repeat.diagnoses == ()
    named = found["kda_recurrent/fast-gates"]
    assert [d.code for d in named.diagnoses[:2]] == [FIRST, "K3O-155"]
    for finding in found.values():
        assert finding.hint.code == FIRST
        assert {d.confidence for d in finding.diagnoses} == {Confidence.LOW}


def test_atomics_leave_a_named_mistake_alone():
    def atomics(**given):
        output, state = unscaled(**given)
        atomics.calls += 1
        return output * (1 + atomics.calls % 2 * 2e-7), state

    atomics.calls = 0
    found = run_all(atomics)
    assert found["kda_recurrent/repeat"].outcome is Outcome.ACCEPTABLE
    cases = {f"kda_recurrent/{case.name}" for case in operator_of("kda_recurrent").cases}
    named = [f for f in failed(found).values() if f.id in cases]
    assert named
    for finding in named:
        assert [(d.code, d.confidence) for d in finding.diagnoses] == [("K3O-155", Confidence.HIGH)]


def test_a_second_call_that_raises_is_no_crash_of_the_case():
    """The finding of the first call stands; that the second one raised is told."""
    from k3check.nouns.candidate_error import guarded

    calls = []

    def breaks(**given):
        calls.append(1)
        if len(calls) == 2:
            raise RuntimeError("buffer in use")
        return unscaled(**given)

    found = failed(run_all(guarded(breaks), "quick"))
    assert found["kda_recurrent/fast-gates"].hint.code == FIRST


def test_a_right_operator_is_called_once_a_case():
    """What passes is never called again."""
    calls = []

    def counted(**given):
        calls.append(given["k"].shape)
        return kda_recurrent(**given)

    checks = plan_for("kda_recurrent", counted, convention="k3check", profile="quick")
    names = {case.name for case in operator_of("kda_recurrent").cases}
    ran = [check.run() for check in checks if check.case in names]
    assert all(f.outcome is Outcome.PASS for f in ran)
    assert len(calls) == len(ran)
    assert torch.is_grad_enabled()
