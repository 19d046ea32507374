"""Nineteen wrong operators at two sizes of values: none survives, and the right one passes.

The experiment behind the rule (see the design's section on comparing): KDA in the articles' form,
gates open, nearly shut and near one; a bfloat16 operator with a float32 state. Fixed tolerances
let up to eighteen of these pass when values are small; the derived limits must not.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
import torch

from k3check.compare.verdict import judge
from k3check.model import Outcome
from k3check.nouns.recipe import EXACT, Recipe, rounding
from k3check.operators.kda.family import OUTPUT, STATE
from k3check.operators.kda.reference import evaluate
from k3check.operators.kda.semantics import ARTICLE, KdaInterface

#: raw gate (mean, standard deviation) of alpha = sigmoid(x) * 0.99 + 0.01
REGIMES = {"open": (3.0, 2.0), "nearly-shut": (-6.0, 0.5), "near-one": (8.0, 0.5)}
SIZES = (1.0, 0.02)
T, H, D, CHUNK = 160, 3, 64, 64
RECIPE = Recipe(io=torch.bfloat16)
LOW = rounding(RECIPE)
FORM = KdaInterface(norm="caller", beta="prob")

MATHEMATICAL = {
    "alpha-floor-missing": {"floor": 0.0},
    "alpha-of-previous-token": {"gate_token": "previous"},
    "boundary-loses-last-token": {"chunk": CHUNK, "handed_state": "loses_last"},
    "reset-at-chunk": {"chunk": CHUNK, "handed_state": "reset"},
    "correction-of-undecayed-state": {"prediction": "undecayed"},
    "beta-missing-in-correction": {"beta_on": "value"},
    "delta-missing": {"prediction": "none"},
    "read-before-write": {"readout": "before_write"},
    "decay-after-write": {"decay": "after"},
}


def _with(change):
    def changed(x):
        x = x.clone()
        change(x)
        return x

    return changed


def _swap_heads(x):
    x[:, :, [0, 1]] = x[:, :, [1, 0]]


def _nan(x):
    x[0, 7, 1, 5] = float("nan")


OUTPUTS = {
    "zeros": lambda x, size: torch.zeros_like(x),
    "x1.01": lambda x, size: x * 1.01,
    "x1.05": lambda x, size: x * 1.05,
    "one-token-late": lambda x, size: x.roll(1, 1),
    "heads-swapped": lambda x, size: _with(_swap_heads)(x),
    "one-nan": lambda x, size: _with(_nan)(x),
    "tail-of-8-zero": lambda x, size: _with(lambda y: y[:, -8:].zero_())(x),
    "last-channel-zero": lambda x, size: _with(lambda y: y[..., -1].zero_())(x),
    "negated": lambda x, size: -x,
    "bias": lambda x, size: x + 0.002 * size,
}


@cache
def inputs_of(regime, size):
    draw = torch.Generator().manual_seed(11)

    def normal(*shape):
        return torch.randn(*shape, generator=draw, dtype=torch.float64)

    centre, spread = REGIMES[regime]
    q, k = (torch.nn.functional.normalize(normal(1, T, H, D), dim=-1) for _ in range(2))
    inputs = {
        "q": q,
        "k": k,
        "v": size * normal(1, T, H, D),
        "gate": centre + spread * normal(1, T, H, D),
        "beta": torch.sigmoid(normal(1, T, H)),
    }
    return {name: x.bfloat16() for name, x in inputs.items()}


@cache
def right(regime, size, arithmetic):
    return evaluate(ARTICLE, FORM, inputs_of(regime, size), arithmetic)


def verdict(actual, regime, size, outputs=(OUTPUT, STATE)):
    return judge(
        outputs,
        actual,
        right(regime, size, EXACT),
        right(regime, size, LOW),
        inputs_of(regime, size),
        RECIPE,
    ).outcome


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("slug", MATHEMATICAL)
def test_a_wrong_formula_fails_in_some_regime(slug, size):
    wrong = replace(ARTICLE, **MATHEMATICAL[slug])
    seen = {
        regime: verdict(evaluate(wrong, FORM, inputs_of(regime, size), LOW), regime, size)
        for regime in REGIMES
    }
    assert Outcome.FAIL in seen.values(), seen


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("slug", OUTPUTS)
def test_a_wrong_output_fails_in_every_regime(slug, regime, size):
    actual = dict(right(regime, size, LOW))
    actual["output"] = OUTPUTS[slug](actual["output"].double(), size).bfloat16()
    assert verdict(actual, regime, size) is Outcome.FAIL


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("regime", REGIMES)
def test_correct_operators_pass(regime, size):
    """The baseline itself, and the same in another order of summation: chunks of 16 and 64."""
    assert verdict(right(regime, size, LOW), regime, size) is Outcome.PASS
    for chunk in (16, 64):
        other = replace(ARTICLE, chunk=chunk)
        actual = evaluate(other, FORM, inputs_of(regime, size), LOW)
        assert verdict(actual, regime, size) is Outcome.PASS


def test_no_single_regime_would_do():
    """The outputs of each regime hide a mistake that another one's show."""
    hidden = {
        regime: {
            slug
            for slug, changes in MATHEMATICAL.items()
            if verdict(
                evaluate(replace(ARTICLE, **changes), FORM, inputs_of(regime, 1.0), LOW),
                regime,
                1.0,
                (OUTPUT,),
            )
            is not Outcome.FAIL
        }
        for regime in REGIMES
    }
    assert hidden["near-one"] >= {"alpha-floor-missing"}
    assert hidden["nearly-shut"] >= {"reset-at-chunk", "delta-missing"}
