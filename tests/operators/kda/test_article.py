"""The first article's checks: each passes for a right operator and fails for a wrong one."""

from __future__ import annotations

import math

import pytest
import torch

from k3check.checking.candidates import build_candidate
from k3check.model import Finding, Outcome
from k3check.nouns.request import OpsRequest
from k3check.operators.kda import article, article_gate, candidate, family
from tests.operators.harness import findings_for

SETTINGS = {
    "kda": {"d_k": 64, "d_v": 64, "gate_bottleneck": 64, "alpha_floor": 0.01, "alpha_ceil": 0.99},
    "flashkda": {"chunk_size": 128},
    "logging": {"log_kda_state_norm": True, "log_chunk_boundary": True},
}
BLANK = Finding("x/y", "kda", "x", "y", Outcome.PASS, "title")


def one(operator, case, target=None, **spec):
    spec.setdefault("settings", SETTINGS)
    return findings_for(operator, target, only={case}, **spec)[case]


def step_with(change):
    """kda_step of the article, with the decay and the state in a wrong operator's hands."""

    def kda_step(S_prev, k, v, alpha, beta):
        return change(S_prev, k, v, alpha, beta)

    return kda_step


def right(S_prev, k, v, alpha, beta):
    return candidate.three_step(S_prev, k, v, alpha.to(S_prev.dtype), beta)


def wrong_step(name):
    """The mistakes that the article warns of, each as its kda_step."""
    return step_with(
        {
            "right": right,
            "no-correction": lambda S, k, v, a, b: a[:, None] * S + b * torch.outer(k, v),
            "growing": lambda S, k, v, a, b: right(1.2 * S, k, v, a, b),
            "forgetting": lambda S, k, v, a, b: 0.1 * right(S, 0 * k, v, a, b),
            "undecayed": lambda S, k, v, a, b: right(S, k, v, torch.ones_like(a), b),
        }[name]
    )


# --- one step -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_the_dense_formula_agrees_with_the_builtin(dtype):
    found = one("kda_step", "article-dense", dtype=dtype)
    assert found.outcome is Outcome.PASS
    assert found.metrics["final_state.relative_l2"] <= 1e-5


def test_the_dense_formula_agrees_with_the_articles_own_step():
    found = one("kda_step", "article-dense", wrong_step("right"), convention="article")
    assert found.outcome is Outcome.PASS


@pytest.mark.parametrize("name", ["no-correction", "growing", "undecayed"])
def test_the_dense_formula_catches_a_wrong_step(name):
    found = one("kda_step", "article-dense", wrong_step(name), convention="article")
    assert (found.outcome, found.hint.code) == (Outcome.FAIL, "K3O-040")


CHUNKED = ["article-512", "article-boundary"]


@pytest.mark.parametrize(
    ("operator", "case"),
    [("kda_step", "article-dense"), *(("kda_chunk", case) for case in CHUNKED)],
)
def test_an_operator_that_activates_the_gate_itself_is_checked_as_what_it_is(operator, case):
    found = one(operator, case, candidate.kda_recurrent, convention="k3check")
    assert found.outcome is Outcome.PASS


@pytest.mark.parametrize("case", CHUNKED)
def test_a_raw_gate_that_is_wrong_fails_in_the_articles_checks(case):
    def late(gate, **given):
        return candidate.kda_recurrent(gate=gate.roll(1, 1), **given)

    assert one("kda_chunk", case, late, convention="k3check").outcome is Outcome.FAIL


def configured(K, V):
    return {**SETTINGS, "kda": {**SETTINGS["kda"], "d_k": K, "d_v": V}}


def test_the_configured_size_of_4096_runs():
    found = one("kda_step", "article-configured-size", settings=configured(4096, 4096))
    assert found.outcome in (Outcome.PASS, Outcome.SKIPPED)
    if found.outcome is Outcome.SKIPPED:  # on a machine with little memory
        assert "available" in found.notes[0].values["reason"]
    assert "4096 x 4096" in found.title


def test_a_size_too_large_for_the_memory_is_skipped(monkeypatch):
    monkeypatch.setattr(article, "available_bytes", lambda: 300 * 2**20)
    found = one("kda_step", "article-configured-size", settings=configured(4096, 4096))
    assert found.outcome is Outcome.SKIPPED
    reason = found.notes[0].values["reason"]
    assert "4096 x 4096" in reason
    assert "300.0 MiB are available" in reason


def test_a_system_that_does_not_tell_its_memory_is_tried(monkeypatch):
    monkeypatch.setattr(article, "available_bytes", lambda: None)
    found = one("kda_step", "article-configured-size", settings=configured(96, 32))
    assert found.outcome is Outcome.PASS


# --- norm of the state ----------------------------------------------------------------------------


@pytest.mark.parametrize("target", [None, wrong_step("right")])
def test_a_healthy_norm(target):
    spec = {} if target is None else {"convention": "article"}
    found = one("kda_step", "article-state-norm", target, **spec)
    assert found.outcome is Outcome.PASS
    assert len(found.series["state_norm"]) == 256


@pytest.mark.parametrize(("name", "code"), [("growing", "K3O-042"), ("forgetting", "K3O-043")])
def test_a_norm_that_explodes_or_vanishes(name, code):
    found = one("kda_step", "article-state-norm", wrong_step(name), convention="article")
    assert (found.outcome, found.hint.code) == (Outcome.FAIL, code)
    assert found.series["state_norm"]


def test_a_norm_that_jumps_for_one_token():
    calls = []

    def spike(S_prev, k, v, alpha, beta):
        calls.append(1)
        state = right(S_prev, k, v, alpha, beta)
        if len(calls) == 101:
            return 1000 * state
        return state / 1000 if len(calls) == 102 else state

    found = one("kda_step", "article-state-norm", spike, convention="article")
    assert (found.outcome, found.hint.code) == (Outcome.FAIL, "K3O-044")
    assert found.hint.values["token"] == 100


@pytest.mark.parametrize(
    ("norms", "code"),
    [
        ([1.0] * 20, None),
        ([8 * 0.9**t + 1 for t in range(200)], None),
        ([1.0, 2.0, math.nan, 1.0], "K3O-042"),
        ([1.0, math.inf, 1.0], "K3O-042"),
        ([1.0] * 9 + [11.0] + [1.0] * 9, "K3O-044"),
        ([1.2**t for t in range(60)], "K3O-042"),
        ([0.9**t for t in range(60)], "K3O-043"),
        ([0.1**t for t in range(60)], "K3O-043"),
        ([1.0] * 9 + [50.0, 300.0, 50.0] + [1.0] * 9, "K3O-042"),
    ],
)
def test_what_is_wrong_with_a_series_of_norms(norms, code):
    found = article.norm_problem(norms)
    assert (found and found.code) == code


# --- window of the gate ---------------------------------------------------------------------------


def test_the_bottleneck_gate_uses_its_window():
    found = one("kda_gate", "article-window")
    assert found.outcome is Outcome.PASS
    assert found.metrics["smallest_alpha"] >= 0.01


def judged(alpha, **kda):
    return article_gate.judge_window(alpha, {**SETTINGS["kda"], **kda}, BLANK)


def test_a_missing_floor_is_caught():
    alpha = torch.sigmoid(torch.linspace(-8, 8, 1000))  # the floor was forgotten
    found = judged(alpha)
    assert (found.outcome, found.hint.code) == (Outcome.FAIL, "K3O-041")
    assert judged(alpha * 0.99 + 0.01).outcome is Outcome.PASS


def test_an_alpha_above_one_is_caught():
    assert judged(torch.linspace(0.2, 1.01, 100)).hint.code == "K3O-041"


def test_a_gate_that_lies_at_its_floor_is_caught():
    alpha = torch.sigmoid(torch.linspace(-12, -2, 1000)) * 0.99 + 0.01
    found = judged(alpha)
    assert (found.outcome, found.hint.code) == (Outcome.FAIL, "K3O-045")


# --- chunks ---------------------------------------------------------------------------------------


def activated(handed):
    """The built-in in chunks of 128 whose state is changed on its way to the next chunk."""

    def target(q, k, v, gate, beta, activated, initial_state=None, **given):
        size, out = 128, []
        state = initial_state
        for start in range(0, q.shape[1], size):
            rows = slice(start, start + size)
            parts = (x[:, rows] for x in (q, k, v, gate, beta))
            entering = handed(state) if start and state is not None else state
            o, state = candidate.kda_chunk(*parts, activated=True, initial_state=entering, **given)
            out.append(o)
        return torch.cat(out, 1), state

    return target


CHUNK_CHECKS = ["article-512", "article-boundary"]


@pytest.mark.parametrize("case", CHUNK_CHECKS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_chunks_agree_with_the_token_recurrence(case, dtype):
    assert one("kda_chunk", case, dtype=dtype).outcome is Outcome.PASS
    mine = one(
        "kda_chunk", case, activated(lambda s: s), convention="k3check-activated", dtype=dtype
    )
    assert mine.outcome is Outcome.PASS


@pytest.mark.parametrize("case", CHUNK_CHECKS)
@pytest.mark.parametrize(
    "handed", [torch.zeros_like, lambda s: s.mT.contiguous(), lambda s: 0.9 * s]
)
def test_a_state_lost_at_a_boundary_is_caught(case, handed):
    found = one("kda_chunk", case, activated(handed), convention="k3check-activated")
    assert found.outcome is Outcome.FAIL
    if case == "article-boundary":
        assert found.hint.code == "K3O-047"
        assert found.hint.values["boundary"] >= 2
        assert found.series["boundary_error"][0] < 1e-3 < found.series["boundary_error"][1]


def test_boundaries_are_recorded_on_request():
    found = one("kda_chunk", "article-boundary")
    assert len(found.series["boundary_norm"]) == 4
    quiet = one("kda_chunk", "article-boundary", settings={"flashkda": {"chunk_size": 128}})
    assert quiet.series == {}


def test_the_switches_agree_and_their_times_are_told():
    found = one("kda_chunk", "article-switches")
    assert found.outcome is Outcome.PASS
    assert [n.code for n in found.notes] == ["K3O-046"]
    assert found.metrics["prefill_ratio"] > 0


def test_a_switch_that_changes_the_result_is_caught(monkeypatch):
    usual = candidate.dplr_chunk

    def wrong(q, k, v, g, beta, state, ut=True):
        return usual(q, k, v, g, beta * (0.9 if ut else 1.0), state, ut)

    monkeypatch.setattr(candidate, "dplr_chunk", wrong)
    found = one("kda_chunk", "article-switches")
    assert (found.outcome, found.hint.code) == (Outcome.FAIL, "K3O-048")


def test_half_precision_decay_is_told_with_float32_sums_and_fails_with_float16():
    told = one("kda_chunk", "article-half-decay")
    assert told.outcome is Outcome.PASS
    assert [n.code for n in told.notes] == ["K3O-050"]
    assert told.metrics["half_underflows_at"] < 128
    lost = one("kda_chunk", "article-half-decay", dtype="float16", accumulate_dtype="float16")
    assert (lost.outcome, lost.hint.code) == (Outcome.FAIL, "K3O-049")
    small = {**SETTINGS, "flashkda": {"chunk_size": 8}}
    kept = one(
        "kda_chunk",
        "article-half-decay",
        dtype="float16",
        accumulate_dtype="float16",
        settings=small,
    )
    assert kept.outcome is Outcome.PASS


def test_the_running_product_is_rounded_at_every_token():
    # 0.5^t is exact in float16 down to 2^-24, half of which rounds to zero
    alpha = torch.full((30, 1), 0.5)
    product = article.cumulative_decay(alpha, torch.float16)
    assert product[23].item() == 2.0**-24
    assert article.first_position(product == 0) == 24
    assert article.first_position(product < 0) is None


def test_every_check_of_the_article_was_tried_here():
    names = {
        "article-dense",
        "article-configured-size",
        "article-state-norm",
        "article-window",
        "article-512",
        "article-boundary",
        "article-switches",
        "article-half-decay",
    }
    request = OpsRequest(settings=configured(96, 32))
    built = {op.name: build_candidate(op, request, None) for op in family.OPERATORS}
    assert {c.case for c in article.checks(request, built)} == names
