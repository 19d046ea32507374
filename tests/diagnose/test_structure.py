"""What the pattern of a failure says: each lead has an operator that shows it, and others."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from k3check.checking.candidates import build_candidate
from k3check.diagnose.record import record
from k3check.diagnose.structure import EXACT_UNITS, certain, granularity, units
from k3check.model import Confidence
from k3check.nouns.call import baseline_of
from k3check.nouns.recipe import EXACT, rounding
from k3check.nouns.request import CandidateSpec, OpsRequest
from k3check.operators.kda.candidate import kda_recurrent
from tests.operators.harness import operator_of

CASES = ("fast-gates", "value-dim", "packed", "head-128", "saturated")


def records(target, cases=CASES):
    """Records of some cases of kda_recurrent, as a run would make them."""
    operator = operator_of("kda_recurrent")
    spec = CandidateSpec(operator.name, "given", origin="test", convention="k3check")
    request = OpsRequest(candidates={operator.name: spec})
    candidate = build_candidate(operator, request, lambda _spec, _directory: target)
    found = []
    for case in (c for c in operator.cases if c.name in cases):
        raw = operator.raw(case, candidate.semantics, 0)
        inputs = operator.present(raw, candidate.semantics, candidate.interface, candidate.recipe)
        reference = operator.evaluate(candidate.semantics, candidate.interface, inputs, EXACT)
        baseline = baseline_of(candidate, inputs, rounding(candidate.recipe))
        actual = candidate.call(inputs)
        seen = record(candidate, case.name, inputs, actual, reference, baseline, failed=True)
        failed = any(units(seen, name) > EXACT_UNITS for name in seen.unit)
        found.append(
            record(candidate, case.name, inputs, actual, reference, baseline, failed=failed)
        )
    return candidate, found


def leads(target, **how):
    """code -> values of every lead."""
    candidate, seen = records(target, **how)
    assert any(one.failed for one in seen)
    told, facts = certain(candidate, seen)
    assert all(lead.confidence is Confidence.LOW for lead in told)
    return {lead.code: dict(lead.values) for lead in told}, facts


def changed(output=lambda o, _given: o, state=lambda s, _given: s):
    """The right operator, with something done to what it returns."""

    def target(**given):
        o, s = kda_recurrent(**given)
        return output(o, given), state(s, given)

    return target


def halves_of_64(o, given):
    """Wrong from token 64 on, where tokens are in one sequence."""
    if given.get("cu_seqlens") is not None:
        return o
    o = o.clone()
    o[:, 64:] *= 1.7
    return o


def tail_decays(s, given):
    """Wrong where the tokens are no multiple of 64."""
    whole = given.get("cu_seqlens") is not None or given["q"].shape[1] % 64 == 0
    return s if whole else s * 1.3


def test_one_number_in_every_case():
    found, facts = leads(changed(lambda o, _: 3 * o))
    assert found["K3O-081"] == {
        "tensor": "output", "factor": "3", "meaning": "no known constant"
    }  # fmt: skip
    assert found["K3O-084"] == {"wrong": "output", "right": "final_state"}
    assert facts["wrong_tensors"] == "output"


@pytest.mark.parametrize(
    ("power", "expression", "range_"),
    [(0.5, "sqrt(K)", "8 ... 11.314"), (-0.5, "1/sqrt(K)", "0.088388 ... 0.125"),
     (1.0, "K", "64 ... 128")],
)  # fmt: skip
def test_one_expression_of_the_head_size(power, expression, range_):
    """K is 64 in most cases and 128 in one."""
    found, _ = leads(changed(lambda o, given: o * given["q"].shape[-1] ** power))
    assert found["K3O-081"] == {"tensor": "output", "factor": expression, "meaning": range_}


def test_a_factor_with_a_name():
    found, _ = leads(changed(state=lambda s, _: -s))
    assert found["K3O-081"] == {"tensor": "final_state", "factor": "-1", "meaning": "-1"}
    assert "K3O-085" in found


def test_no_factor_where_each_case_has_another():
    found, _ = leads(changed(lambda o, given: o * given["q"].shape[1]))
    assert "K3O-081" not in found


def test_no_factor_where_the_direction_is_another():
    found, _ = leads(changed(lambda o, _: 3 * o.roll(1, -1)))
    assert "K3O-081" not in found


def test_a_factor_of_one_is_none():
    found, _ = leads(changed(lambda o, _: o * (1 + 1e-4 * torch.sin(o))))
    assert "K3O-081" not in found


def test_a_few_values_say_nothing_of_their_precision():
    """Four channels of one token and head: no tensor has more than eight values."""
    candidate, seen = records(changed(lambda o, _: 3 * o), cases=("fast-gates",))
    few = {"output": torch.ones(1, 1, 1, 4), "final_state": torch.ones(1, 1, 2, 2)}
    small = [replace(one, actual=few, reference=few) for one in seen]
    assert granularity(candidate, small) is None


def test_values_that_were_rounded_on_the_way():
    found, _ = leads(changed(state=lambda s, _: s.bfloat16().float()))
    assert found["K3O-080"] == {"tensor": "final_state", "dtype": "bfloat16"}
    assert "K3O-080" not in leads(changed(state=lambda s, _: 1.01 * s))[0]


def test_wrong_from_a_boundary():
    found, _ = leads(changed(halves_of_64))
    assert found["K3O-082"] == {"token": 64, "chunk": 64}
    assert "K3O-082" not in leads(changed(lambda o, _: 1.7 * o))[0]


def test_wrong_only_behind_the_last_whole_chunk():
    # fast-gates has 130 tokens, bursts 96, huge-state 64, identical-keys 128
    cases = ("fast-gates", "huge-state", "identical-keys", "value-dim")
    found, _ = leads(changed(state=tail_decays), cases=cases)
    assert found["K3O-083"] == {"chunk": 16}  # the least that tells them apart
    assert "K3O-083" not in leads(changed(state=lambda s, _: 1.3 * s), cases=cases)[0]


def test_a_right_operator_gives_nothing_to_look_at():
    _, seen = records(kda_recurrent)
    assert not any(one.failed for one in seen)


def test_cases_that_agree_are_told():
    def big_heads(o, _given):
        return o if o.shape[-1] < 128 else o.flip(-1)

    _, facts = leads(changed(big_heads))
    assert set(facts["cases_that_agree"].split(", ")) == set(CASES) - {"head-128"}


def test_only_one_of_both_right_is_told_by_its_name():
    assert (
        "K3O-085" in leads(changed(state=lambda s, _: s.mT.contiguous()), cases=("fast-gates",))[0]
    )
    both = changed(lambda o, _: o.flip(-1), lambda s, _: s * 1.5)
    assert not {"K3O-084", "K3O-085"} & set(leads(both)[0])


def test_what_is_not_finite_has_no_factor():
    found, _ = leads(changed(lambda o, _: torch.full_like(o, torch.nan)))
    assert "K3O-081" not in found
