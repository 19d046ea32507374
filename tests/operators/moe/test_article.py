"""The article's rows on experts: each with the wrong variant that it must catch."""

from __future__ import annotations

import math

import pytest
import torch

from k3check.model import Finding, Outcome
from k3check.operators.moe import article
from k3check.operators.moe.conventions.router import routing
from tests.operators.harness import findings_for

BLANK = Finding("moe_router/article", "moe", "moe_router", "article", Outcome.PASS, "")


def route(x, weight, bias, k, sign=1):
    scores = (x @ weight.T).sigmoid()
    ids = (scores + sign * bias).topk(k).indices
    return routing((ids, scores.gather(1, ids)), {"bias": bias})


def everything(x, weight, bias, k):
    return route(x, weight, bias, len(weight))


def test_sixteen_and_two_make_eighteen():
    found = article.activation_check(route, {}, 0, BLANK)
    assert found.outcome is Outcome.PASS
    assert found.metrics["active_experts"] == 18


def test_shared_experts_left_out():
    def layer(x, ids, weights, routed, shared):
        return article.expert_layer(x, ids, weights, routed, ())

    found = article.activation_check(route, {}, 0, BLANK, layer)
    assert found.hint.code == "K3O-390"
    assert found.hint.values["found"] == 16


def test_top_k_not_applied():
    found = article.activation_check(everything, {}, 0, BLANK)
    assert found.hint.code == "K3O-391"
    assert found.hint.values["found"] == 898


def test_an_expert_that_runs_twice():
    def layer(x, ids, weights, routed, shared):
        routed[0](x)
        return article.expert_layer(x, ids, weights, routed, shared)

    assert article.activation_check(route, {}, 0, BLANK, layer).hint.code == "K3O-392"


def test_the_configured_numbers_count():
    moe = {"num_routed_experts": 32, "top_k": 3, "num_shared_experts": 0}
    found = article.activation_check(route, moe, 0, BLANK)
    assert found.outcome is Outcome.PASS
    assert found.metrics["active_experts"] == 3


def test_the_layer_is_the_weighted_sum():
    x = torch.tensor([[1.0], [2.0]], dtype=torch.float64)
    ids = torch.tensor([[0, 2], [1, 2]])
    weights = torch.tensor([[0.5, 0, 0.25], [0, 0.5, 0.25]], dtype=torch.float64)
    routed = [lambda r, n=n: (n + 1) * r for n in range(3)]
    got = article.expert_layer(x, ids, weights, routed, [lambda r: 10 * r])
    assert got.flatten().tolist() == [10 + 0.5 + 0.75, 20 + 2.0 + 1.5]


UPS = torch.tensor([0.5, 1.0, 10.0, 25.0, 100.0, 1e3, 1e4])


@pytest.mark.parametrize(
    ("branch", "code"),
    [
        (UPS.double(), "K3O-393"),
        (24.0 * (UPS / 24).double().tanh(), "K3O-394"),
        (25.0 * UPS.double().tanh(), "K3O-395"),
        ((UPS / 25).double().tanh(), "K3O-394"),
        (UPS.double() * math.nan, "K3O-393"),
    ],
    ids=["no bound", "another bound", "no division", "not scaled back", "nan"],
)
def test_a_wrong_bound(branch, code):
    assert article.judge_bound(branch, UPS, 25.0, torch.float32, BLANK).hint.code == code


def test_the_right_bound():
    branch = 25.0 * (UPS / 25).double().tanh()
    assert article.judge_bound(branch, UPS, 25.0, torch.float32, BLANK).outcome is Outcome.PASS


def test_balancing_balances():
    found = article.balance_check(route, 0, BLANK)
    assert found.outcome is Outcome.PASS
    assert found.metrics["load_before"] > 2.5
    assert found.metrics["load_after"] < 1.5


@pytest.mark.parametrize("sign", [0, -1], ids=["bias ignored", "bias subtracted"])
def test_a_router_that_does_not_use_the_bias_stays_unbalanced(sign):
    def wrong(x, weight, bias, k):
        return route(x, weight, bias, k, sign)

    assert article.balance_check(wrong, 0, BLANK).hint.code == "K3O-396"


def test_a_balancing_step_by_hand():
    # Two experts, one chosen. Thresholds are the smaller scores; expert 0 is ahead by 0.4, 0.2.
    scores = torch.tensor([[0.9, 0.5], [0.7, 0.5]], dtype=torch.float64)
    # threshold - s: expert 0: -0.4, -0.2; expert 1: 0, 0; medians -0.3 and 0; mean removed
    got = article.balance_step(scores, torch.zeros(2, dtype=torch.float64), 1)
    assert got.tolist() == pytest.approx([-0.15, 0.15], abs=1e-15)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
def test_the_builtins_pass(dtype):
    settings = {"moe": {"num_routed_experts": 896, "num_shared_experts": 2, "top_k": 16,
                        "situ_tanh_clip": 25.0, "quantile_balancing": True}}  # fmt: skip
    for name, cases in (
        ("moe_router", {"article-activation", "article-balance"}),
        ("situ_glu", {"article-bound"}),
    ):
        found = findings_for(name, dtype=dtype, settings=settings, only=cases)
        assert set(found) == cases
        assert all(str(f.outcome) == "pass" for f in found.values()), found


def test_another_clip_is_used():
    found = findings_for(
        "situ_glu", settings={"moe": {"situ_tanh_clip": 7.0}}, only={"article-bound"}
    )
    assert found["article-bound"].metrics["largest"] == pytest.approx(7, rel=1e-5)


def test_balancing_off_is_skipped():
    settings = {"moe": {"quantile_balancing": False}}
    found = findings_for("moe_router", settings=settings, only={"article-balance"})
    assert str(found["article-balance"].outcome) == "skipped"
