"""A check that fails because of the named mistake refers to it, and gives no advice of its own."""

from __future__ import annotations

import pytest
import torch

from k3check.diagnose import consequence
from k3check.model import Confidence, Outcome
from k3check.operators.kda.candidate import kda_chunk, kda_recurrent
from tests.diagnose.test_trust import failed, run_all
from tests.operators.harness import plan_for


def transposed_state(**given):
    """K3O-196: the state is returned as [V, K]."""
    output, state = kda_recurrent(**given)
    return output, state.mT.contiguous()


def test_splitting_a_sequence_follows_from_a_transposed_state():
    found = failed(run_all(transposed_state))
    split = found["kda_recurrent/split"]
    assert [(d.code, d.confidence) for d in split.diagnoses] == [("K3O-196", Confidence.HIGH)]
    assert split.hint.code == "K3O-196"
    assert split.evidence["follows_from"] == "K3O-196"
    assert split.evidence["fails_as"] == "K3O-700"
    beta_zero = found["kda_recurrent/beta-zero"]
    assert beta_zero.hint.code == "K3O-196"
    assert beta_zero.evidence["fails_as"] == "K3O-705"


def test_what_the_mistake_does_not_explain_keeps_its_own_advice():
    """A leak of the future that the cases do not show beside a state that they name."""

    def leaks_too(**given):
        output, state = transposed_state(**given)
        if output.shape[1] == 96:  # the length of the check
            output = output.clone()
            output[:, :-1] += 0.1 * given["v"][:, 1:]
        return output, state

    found = failed(run_all(leaks_too, "quick"))
    causal = found["kda_recurrent/causal"]
    assert causal.hint.code == "K3O-701"
    assert causal.diagnoses == ()
    assert found["kda_recurrent/split"].hint.code == "K3O-196"


def test_another_size_of_failure_is_another_failure():
    """The mistake alone fails the check too, but by far less."""

    def splits_worse(**given):
        output, state = transposed_state(**given)
        if output.shape[1] == 63:  # the second part of the check
            output = 5 * output
        return output, state

    found = failed(run_all(splits_worse))
    assert found["kda_recurrent/split"].hint.code == "K3O-700"


def test_without_time_it_may_follow(monkeypatch):
    monkeypatch.setitem(consequence.BUDGET_S, "full", -1.0)
    split = failed(run_all(transposed_state))["kda_recurrent/split"]
    assert split.hint.code == "K3O-714"
    assert split.hint.values["cause"] == "K3O-196"
    assert split.diagnoses == ()
    assert split.evidence["fails_as"] == "K3O-700"


def test_a_formula_that_cannot_be_asked_may_be_the_cause(monkeypatch):
    def cannot(*_):
        raise RuntimeError("shapes")

    monkeypatch.setattr(consequence, "predict", cannot)
    assert failed(run_all(transposed_state))["kda_recurrent/split"].hint.code == "K3O-714"


def test_nothing_is_asked_without_a_cause_or_a_failure(monkeypatch):
    monkeypatch.setattr(consequence, "linked", lambda *_: pytest.fail("asked"))
    found = run_all(kda_recurrent, "quick")
    assert not failed(found)

    def noise(**given):
        output, state = kda_recurrent(**given)
        draw = torch.Generator().manual_seed(output.shape[1])
        return output + torch.randn(output.shape, generator=draw), state

    assert failed(run_all(noise, "quick"))


def test_the_walk_of_a_stack_follows_from_its_mix():
    """attn_res with keys that are not normalised: the walk's own advice is about snapshots."""

    def unnormalised(sources, query, gain, eps):
        del eps
        wide = sources.float()
        weights = (wide * (query.float() * gain.float())).sum(-1).softmax(0)
        return (weights.unsqueeze(-1) * wide).sum(0).to(sources.dtype)

    found = failed(run_all(unnormalised, "quick", "attn_res"))
    causes = {f.diagnoses[0].code for f in found.values() if f.diagnoses}
    walk = found["attn_res/stack-walk"]
    assert walk.diagnoses[0].code in causes
    assert walk.evidence["fails_as"] == "K3O-286"
    assert len(causes) == 1


def test_the_articles_checks_follow_too():
    """On a user's operator of the article's form: alpha given, no norm, no scale."""

    def loses_the_state(q, k, v, g, beta, scale=None, initial_state=None, output_final_state=True):
        del output_final_state
        output, state = kda_chunk(
            q, k, v, g, beta, scale=scale, initial_state=initial_state, activated=True
        )
        return output, state.mT.contiguous()

    found = {}
    for check in plan_for("kda_chunk", loses_the_state, convention="fla", profile="full"):
        if check.operator == "kda_chunk" and check.suite == "flashkda":
            found[check.id] = check.run()
            found |= {f.id: f for f in (check.amend() if check.amend else ())}
    bad = failed(found)
    boundary = bad["kda_chunk/article-boundary"]
    assert boundary.hint.code == "K3O-196"
    assert boundary.evidence["fails_as"] == "K3O-047"
    assert found["kda_chunk/article-switches"].outcome is Outcome.PASS
