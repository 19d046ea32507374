"""The four functions of the first article, as its readers write them: right ones, wrong ones."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from k3check import hints
from k3check.checking.recognition import recognise
from k3check.model import Outcome
from k3check.nouns.request import CandidateSpec
from k3check.nouns.signature import parameters_of
from k3check.operators import families
from k3check.operators.attn_res import article_function
from tests.operators.harness import findings_for, plan_for


def kda_step(S_prev, k, v, alpha, beta):
    S = alpha[:, None] * S_prev
    S = S - beta * torch.outer(k, k @ S)
    return S + beta * torch.outer(k, v)


def swapped(S_prev, k, v, alpha, beta):
    S = S_prev - beta * torch.outer(k, k @ S_prev)
    return alpha[:, None] * S + beta * torch.outer(k, v)


def compute_fine_grained_gate(x, W_alpha, W_alpha_down):
    return torch.sigmoid(W_alpha_down @ F.silu(W_alpha @ x)) * 0.99 + 0.01


def without_floor(x, W_alpha, W_alpha_down):
    return torch.sigmoid(W_alpha_down @ F.silu(W_alpha @ x))


def without_silu(x, W_alpha, W_alpha_down):
    return torch.sigmoid(W_alpha_down @ (W_alpha @ x)) * 0.99 + 0.01


def by_steps(step, K_chunk, V_chunk, alpha_chunk, beta_chunk, S_prev):
    S, rows = S_prev, []
    for t in range(len(K_chunk)):
        S = step(S, K_chunk[t], V_chunk[t], alpha_chunk[t], beta_chunk[t])
        rows.append(K_chunk[t] @ S)
    return torch.stack(rows), S


def kda_chunkwise(K_chunk, V_chunk, alpha_chunk, beta_chunk, S_prev):
    return by_steps(kda_step, K_chunk, V_chunk, alpha_chunk, beta_chunk, S_prev)


def chunk_swapped(K_chunk, V_chunk, alpha_chunk, beta_chunk, S_prev):
    return by_steps(swapped, K_chunk, V_chunk, alpha_chunk, beta_chunk, S_prev)


def chunk_handing_its_start(K_chunk, V_chunk, alpha_chunk, beta_chunk, S_prev):
    return kda_chunkwise(K_chunk, V_chunk, alpha_chunk, beta_chunk, S_prev)[0], S_prev.clone()


def attention_with_residuals(q, k_self, v_self, k_residual_bank, v_residual_bank):
    d = q.shape[-1]
    own = (q @ k_self.mT / d**0.5).softmax(-1) @ v_self
    return own + (q @ k_residual_bank.mT / d**0.5).softmax(-1) @ v_residual_bank


FOUR = {
    "kda_step": kda_step,
    "kda_gate": compute_fine_grained_gate,
    "kda_chunk": kda_chunkwise,
    "attn_res": attention_with_residuals,
}


@pytest.mark.parametrize("name", FOUR)
def test_each_is_recognised_by_itself(name):
    operator = next(o for f in families() for o in f.operators if o.name == name)
    names, _ = parameters_of(FOUR[name])
    assert recognise(operator, CandidateSpec(name), names, FOUR[name]).name == "article"


@pytest.mark.parametrize("name", FOUR)
def test_a_right_one_passes(name):
    found = findings_for(name, FOUR[name], convention="article", profile="quick")
    assert not [f.id for f in found.values() if f.outcome.is_failure]
    assert any(f.outcome is Outcome.PASS for f in found.values())


def codes(name, target):
    """What the failing checks say, once all have run."""
    found = {}
    for check in plan_for(name, target, convention="article", profile="quick"):
        if check.operator == name and check.suite != "cache":
            found[check.id] = check.run()
            found |= {f.id: f for f in (check.amend() if check.amend else ())}
    failed = [f for f in found.values() if f.outcome.is_failure]
    hinted = {f.hint.code for f in failed if f.hint}
    return {d.code for f in failed for d in f.diagnoses[:1]} | hinted


def test_a_gate_without_floor_is_named_and_its_window_is_the_users():
    assert "K3O-980" in codes("kda_gate", without_floor)
    window = findings_for("kda_gate", without_floor, only={"article-window"}, convention="article")
    assert window["article-window"].metrics["smallest_alpha"] < 0.01
    assert window["article-window"].hint.code == "K3O-041"
    assert sum(window["article-window"].series["alpha_histogram"]) == pytest.approx(1)


def test_a_bottleneck_without_activation_is_named():
    assert "K3O-981" in codes("kda_gate", without_silu)


@pytest.mark.parametrize(("name", "target"), [("kda_step", swapped), ("kda_chunk", chunk_swapped)])
def test_steps_in_another_order_are_named(name, target):
    assert "K3O-983" in codes(name, target)


def test_a_state_handed_over_at_the_chunk_s_start_fails_first_at_the_first_boundary():
    found = findings_for(
        "kda_chunk", chunk_handing_its_start, only={"article-boundary"}, convention="article"
    )["article-boundary"]
    assert found.outcome is Outcome.FAIL


def of_form(form):
    def function(q, k_self, v_self, k_residual_bank, v_residual_bank):
        given = {"q": q, "k": k_self, "v": v_self, "bk": k_residual_bank, "bv": v_residual_bank}
        return article_function.evaluate(form, given)

    return function


@pytest.mark.parametrize("form", list(article_function.readings(article_function.Form())))
def test_every_reading_of_the_attention_passes(form):
    assert not codes("attn_res", of_form(form))


@pytest.mark.parametrize(("code", "form"), [(c, f) for c, _, f in article_function.WRONG])
def test_every_mistake_of_the_attention_is_named(code, form):
    assert hints.get(code).slug
    assert code in codes("attn_res", of_form(form))


def test_an_attention_that_needs_a_batch_and_heads_is_given_them():
    def function(q, k_self, v_self, k_residual_bank, v_residual_bank):
        _batch, _heads, _tokens, _d = q.shape
        return attention_with_residuals(q, k_self, v_self, k_residual_bank, v_residual_bank)

    assert not codes("attn_res", function)
