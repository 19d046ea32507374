"""What a ``high`` verdict owes: every failed case and every output, and no NaN for an infinity."""

from __future__ import annotations

import math

import pytest
import torch

from k3check.checking.candidates import build_candidate
from k3check.diagnose.conclude import diagnoses, margin_of, rank
from k3check.diagnose.nearest import nearest
from k3check.diagnose.outcome import Nearest
from k3check.diagnose.prediction import unspoken
from k3check.diagnose.record import record
from k3check.diagnose.trial import Match
from k3check.model import Confidence, Outcome
from k3check.nouns.fault import Fault
from k3check.nouns.recipe import EXACT
from k3check.nouns.request import OpsRequest
from k3check.operators.kda.candidate import kda_recurrent
from tests.operators.harness import operator_of, plan_for


def run_all(name, target, **spec):
    """Every finding of the cases, as it stands when all of them have run."""
    found = {}
    for check in plan_for(name, target, convention="k3check", **spec):
        if check.case in {case.name for case in operator_of(name).cases}:
            found[check.id] = check.run()
            found |= {f.id: f for f in (check.amend() if check.amend else ())}
    return {f.case: f for f in found.values() if f.outcome is Outcome.FAIL}


VALUES = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def shifted(packed, scale, dtype=torch.bfloat16):
    """The scale byte shifted into float32's exponent: 0 becomes 0, and 255 an infinity."""
    code = torch.stack([packed & 15, packed >> 4], -1).flatten(1)
    factor = (scale.int() << 23).view(torch.float32)
    return (VALUES[code.long()] * factor.repeat_interleave(32, 1)).to(dtype)


def test_a_mistake_that_explains_one_of_two_symptoms_is_not_named():
    """K3O-472 says that 0 is read as zero; of the infinity at 255 it knows nothing."""
    found = run_all("mxfp4_dequant", shifted)
    assert set(found) == {"exhaustive", "least-scales", "no-number"}
    for finding in found.values():
        assert [(d.code, d.confidence) for d in finding.diagnoses] == [("K3O-477", "high")]


def test_nor_where_no_known_mistake_explains_both():
    def one_at_255(packed, scale, dtype=torch.bfloat16):
        wide = shifted(packed, scale, torch.float64)
        lost = (scale == 255).repeat_interleave(32, 1)
        return torch.where(lost, torch.inf, wide).to(dtype)

    found = run_all("mxfp4_dequant", one_at_255)
    assert set(found) == {"exhaustive", "least-scales", "no-number"}
    for finding in found.values():
        assert all(d.confidence is Confidence.LOW for d in finding.diagnoses)


def test_the_mistake_alone_is_named_still():
    def least_is_zero(packed, scale, dtype=torch.bfloat16):
        right = shifted(packed, scale, torch.float64)
        lost = (scale == 255).repeat_interleave(32, 1)
        return torch.where(lost, torch.nan, right).to(dtype)

    found = run_all("mxfp4_dequant", least_is_zero)
    assert set(found) == {"exhaustive", "least-scales"}
    for finding in found.values():
        assert [(d.code, d.confidence) for d in finding.diagnoses] == [("K3O-472", "high")]


def recorded(name, wrong, *cases):
    """A candidate, and records of some cases in which it returned what ``wrong`` makes of them."""
    candidate = build_candidate(operator_of(name), OpsRequest(), lambda _spec, _directory: None)
    seen = []
    for case in (c for c in operator_of(name).cases if c.name in cases):
        raw = candidate.operator.raw(case, candidate.semantics, 0)
        inputs = candidate.operator.present(
            raw, candidate.semantics, candidate.interface, candidate.recipe
        )
        right = candidate.operator.evaluate(candidate.semantics, candidate.interface, inputs, EXACT)
        actual = wrong(case.name, right)
        seen.append(record(candidate, case.name, inputs, actual, right, right, failed=True))
    return candidate, seen


def fault_of(candidate, code):
    known = candidate.operator.faults(candidate.semantics, candidate.interface, candidate.recipe)
    return next(fault for fault in known if fault.code == code)


def test_an_infinity_where_nan_is_right_is_not_explained_by_nan():
    """Both are not finite, and they are not the same answer."""

    def wrong(name, right):
        output = right["output"].clone()
        if name == "no-number":
            output[output.isnan()] = torch.inf
        else:
            output[output.abs() < 7 * 2.0**-127] = 0
        return {"output": output}

    candidate, seen = recorded("mxfp4_dequant", wrong, "no-number", "least-scales")
    fault = fault_of(candidate, "K3O-472")
    assert "no-number" in unspoken(candidate, (fault,), seen)
    assert all(match.faults != (fault,) for match in nearest(candidate, seen).group)


def test_wrong_ids_are_an_output_too():
    """Weights that a mistake explains beside ids that it does not."""
    name = "moe_router"

    def right(_name, found):
        return {"ids": found["ids"], "weights": 2 * found["weights"]}

    def other_ids(case, found):
        return right(case, found) | {"ids": (found["ids"] + 1) % found["choice"].shape[-1]}

    def transform(found, _inputs):
        return {**found, "weights": 2 * found["weights"]}

    case = operator_of(name).cases[0].name
    doubled = Fault("K3O-999", "test", transform=transform)
    for wrong, silent in ((right, []), (other_ids, [case])):
        candidate, seen = recorded(name, wrong, case)
        assert list(unspoken(candidate, (doubled,), seen)) == silent


def test_impossible_ids_that_a_mistake_predicts_are_explained():
    """Ids that count from one: the last expert's is none."""
    name, case = "moe_router", "biased"

    def from_one(_case, found):
        ids = found["ids"] + 1
        dense = found["weights"].roll(1, -1)
        dense[:, 0] = 0
        return {"ids": ids, "weights": dense}

    candidate, seen = recorded(name, from_one, case)
    assert int(seen[0].sets["ids"].max()) == seen[0].reference["choice"].shape[-1]
    assert list(unspoken(candidate, (fault_of(candidate, "K3O-334"),), seen)) == []


@pytest.mark.parametrize(("silent", "expected"), [((), "high"), (("packed",), "medium")])
def test_a_silent_failed_case_costs_the_high_verdict(silent, expected):
    match = Match((Fault("K3O-155", "scale.missing"),), 0.5)
    (found,) = diagnoses(Nearest((match,), (), 10.0, True, silent))
    assert found.confidence == expected


def test_a_wrong_dtype_is_not_blamed_on_the_formula():
    """It fails beside a formula's mistake, and says by itself what is wrong."""

    def unscaled_and_wide(**given):
        output, state = kda_recurrent(**{**given, "scale": 1.0})
        return (output.double() if given["k"].shape[1] == 1 else output), state

    found = run_all("kda_recurrent", unscaled_and_wide, profile="quick")
    assert found["one-token"].hint.code == "K3O-003"
    assert found["one-token"].diagnoses == ()
    assert found["fast-gates"].diagnoses[0].code == "K3O-155"


def test_zeros_in_one_case_must_be_explained_as_well():
    """A scale is no reason for an output of zeros."""

    def unscaled_or_zero(**given):
        output, state = kda_recurrent(**{**given, "scale": 1.0})
        return (torch.zeros_like(output) if given["k"].shape[1] == 1 else output), state

    found = run_all("kda_recurrent", unscaled_or_zero, profile="quick")
    assert found["one-token"].hint.code == "K3O-005"
    sure = {d.code for f in found.values() for d in f.diagnoses if d.confidence != Confidence.LOW}
    assert "K3O-155" not in sure


def test_high_needs_a_margin_wherever_it_is_said():
    """The walk over a stack ranks as every other search does."""
    assert rank(alone=True, margin=2.0) is Confidence.HIGH
    assert rank(alone=True, margin=1.9) is Confidence.MEDIUM
    assert rank(alone=False, margin=100.0) is Confidence.MEDIUM
    assert margin_of(0.1, [3.0, 5.0]) == 6.0
    assert margin_of(0.1, []) == math.inf
