"""The gate's forms against formulas written with ``math``, and ``kda_gate`` as an operator."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from k3check.operators.kda import candidate, gate
from k3check.operators.kda.gate_operator import evaluate
from k3check.operators.kda.semantics import ARTICLE, K3, KIMI_LINEAR, GateInterface
from tests.operators.harness import DTYPES, assert_passes, outcomes


def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def softplus(x):
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def one(x, rate, bias):
    """One head of one channel."""
    f = torch.float64
    return {
        "gate": torch.tensor(x, dtype=f).reshape(1, 1, 1, 1),
        "A_log": torch.tensor([rate], dtype=f),
        "dt_bias": torch.tensor([[bias]], dtype=f),
    }


def decay(semantics, x, rate=0.0, bias=0.0, form="ln"):
    return evaluate(semantics, GateInterface(output=form), one(x, rate, bias))["decay"].item()


VALUES = st.tuples(st.floats(-30, 30), st.floats(-2, 4), st.floats(-3, 3))


@settings(max_examples=60, deadline=None)
@given(VALUES)
def test_the_lower_bound_form(values):
    x, rate, bias = values
    expected = -5 * sigmoid(math.exp(rate) * (x + bias))
    assert decay(K3, x, rate, bias) == pytest.approx(expected, rel=1e-12, abs=1e-300)


@settings(max_examples=60, deadline=None)
@given(VALUES)
def test_the_softplus_form(values):
    x, rate, bias = values
    expected = -math.exp(rate) * softplus(x + bias)
    assert decay(KIMI_LINEAR, x, rate, bias) == pytest.approx(expected, rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.floats(-30, 30))
def test_the_articles_form_has_a_floor(x):
    alpha = math.exp(decay(ARTICLE, x, rate=1.0, bias=2.0))
    assert alpha == pytest.approx(sigmoid(x) * 0.99 + 0.01, rel=1e-12)
    assert 0.01 <= alpha <= 1


def test_softplus_stays_exact_far_out():
    """For a large x it is x; a branch-free log(1 + exp(x)) overflows from 710 on."""
    assert decay(KIMI_LINEAR, 900.0) == -900.0
    assert decay(KIMI_LINEAR, -800.0) == pytest.approx(0.0, abs=1e-300)
    far = torch.tensor([[[[900.0]]], [[[25.0]]]], dtype=torch.float64)
    assert candidate.kda_gate(far, lower_bound=None).flatten().tolist() == [
        -900.0,
        pytest.approx(-softplus(25.0), rel=1e-15),
    ]


def test_the_forms_of_the_result_are_one_number():
    g = decay(K3, 0.3, 0.2, -0.1)
    assert decay(K3, 0.3, 0.2, -0.1, "alpha") == pytest.approx(math.exp(g), rel=1e-14)
    assert decay(K3, 0.3, 0.2, -0.1, "log2") == pytest.approx(g / math.log(2), rel=1e-14)


def test_rates_are_per_head_and_biases_per_channel():
    raw = torch.zeros(1, 1, 2, 3, dtype=torch.float64)
    rates = torch.tensor([0.0, math.log(3.0), 9.0], dtype=torch.float64)  # one more than heads
    biases = torch.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], dtype=torch.float64) / 10
    got = gate.log_decay(K3, raw, rates, biases)[0, 0]
    expected = [
        [-5 * sigmoid(a * b / 10) for b in row] for a, row in ((1, (0, 1, 2)), (3, (3, 4, 5)))
    ]
    assert got.tolist() == [pytest.approx(row, rel=1e-14) for row in expected]
    flat = gate.log_decay(K3, raw, rates, biases.flatten())[0, 0]
    assert torch.equal(flat, got)


WRONG = {
    "softplus": lambda x, a, b: -a * softplus(x + b),
    "clamped_softplus": lambda x, a, b: max(-a * softplus(x + b), -5),
    "upper_bound": lambda x, a, b: -5 * (1 - sigmoid(a * (x + b))),
}
CHANGED = {
    "sign": ({"gate_sign": -1}, lambda x, r, b: -5 * sigmoid(math.exp(r) * (-x + b))),
    "plain rate": ({"rate": "plain"}, lambda x, r, b: -5 * sigmoid(r * (x + b))),
    "rate twice": (
        {"rate": "double_exp"}, lambda x, r, b: -5 * sigmoid(math.exp(math.exp(r)) * (x + b))
    ),
    "no rate": ({"rate": "one"}, lambda x, r, b: -5 * sigmoid(x + b)),
    "rate outside": ({"rate_place": "outside"}, lambda x, r, b: -5 * math.exp(r) * sigmoid(x + b)),
    "bias after": ({"bias": "after_rate"}, lambda x, r, b: -5 * sigmoid(math.exp(r) * x + b)),
    "bias dropped": ({"bias": "dropped"}, lambda x, r, b: -5 * sigmoid(math.exp(r) * x)),
    "bias twice": ({"bias": "twice"}, lambda x, r, b: -5 * sigmoid(math.exp(r) * (x + 2 * b))),
    "bound of one": ({"lower_bound": -1.0}, lambda x, r, b: -sigmoid(math.exp(r) * (x + b))),
}  # fmt: skip


@pytest.mark.parametrize("form", WRONG)
def test_wrong_forms_are_what_they_are_called(form):
    x, rate, bias = 0.7, 0.4, -0.2
    expected = WRONG[form](x, math.exp(rate), bias)
    assert decay(replace(K3, gate=form), x, rate, bias) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("name", CHANGED)
def test_wrong_parameters_are_what_they_are_called(name):
    changes, formula = CHANGED[name]
    x, rate, bias = 0.7, 0.4, -0.2
    got = decay(replace(K3, **changes), x, rate, bias)
    assert got == pytest.approx(formula(x, rate, bias), rel=1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("semantics", ["k3", "kimi-linear", "article"])
def test_the_builtin_passes(dtype, semantics):
    assert_passes("kda_gate", dtype=dtype, semantics=semantics)


def fla_form(g, A_log, dt_bias=None, lower_bound=None):
    bias = None if dt_bias is None else dt_bias.view(g.shape[-2:])
    return candidate.kda_gate(g, A_log, bias, lower_bound)


def fla_softplus(g, A_log, dt_bias=None):
    return fla_form(g, A_log, dt_bias)


def article(logits):
    return torch.sigmoid(logits.float()) * 0.99 + 0.01


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_conventions_of_the_field(dtype):
    for semantics in ("k3", "kimi-linear"):
        assert_passes("kda_gate", fla_form, convention="fla", semantics=semantics, dtype=dtype)
    assert_passes("kda_gate", fla_softplus, semantics="kimi-linear", dtype=dtype)
    assert_passes("kda_gate", article, semantics="article", dtype=dtype)
    # softplus is Kimi Linear's gate and wrong for K3
    assert "fail" in outcomes("kda_gate", fla_softplus, dtype=dtype)
