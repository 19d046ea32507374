"""SiTU-GLU: known values, cases, conventions."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from k3check.nouns.recipe import Recipe
from k3check.operators.moe.semantics import SITU, SituInterface
from k3check.operators.moe.situ import evaluate
from tests.operators.harness import (
    DTYPES,
    VISIBLE,
    assert_passes,
    claims,
    findings_for,
    operator_of,
    outcomes,
    seen_by,
)

#: (gate, up, out), computed apart from this package: k3_ops, section B4
KNOWN = (
    (1, 1, 0.715818),
    (2, 3, 4.861067),
    (6, 40, 83.218390),
    (-3, 10, -1.144501),
    (20, 200, 99.990898),
)


def value(gate, up, semantics=SITU, beta=4.0, linear_beta=25.0):
    inputs = {
        "x": torch.tensor([[gate, up]], dtype=torch.float64),
        "beta": beta,
        "linear_beta": linear_beta,
    }
    return evaluate(semantics, SituInterface(), inputs)["output"].item()


@pytest.mark.parametrize(("gate", "up", "out"), KNOWN)
def test_known_values(gate, up, out):
    assert value(gate, up) == pytest.approx(out, abs=5e-7)


def test_a_gate_far_below_zero_lets_nothing_through():
    assert abs(value(-20, -200)) < 1e-6


@pytest.mark.parametrize(
    ("changes", "at_one", "at_large"),
    [
        ({"gate": "silu", "up": "uncapped"}, 0.731059, 239.41),
        ({"gate": "clamped", "up": "uncapped"}, 0.731059, None),
        ({"up": "uncapped"}, 0.716200, 144.47),
        ({"gate": "capped_sigmoid"}, 0.711887, 81.25),
        ({"halves": "swapped"}, 0.715818, 23.55),
        ({"betas": "one_uncapped"}, 0.556770, 39.90),
    ],
)
def test_known_wrong_values(changes, at_one, at_large):
    wrong = replace(SITU, **changes)
    assert value(1, 1, wrong) == pytest.approx(at_one, abs=2e-5)
    if at_large is not None:
        assert value(6, 40, wrong) == pytest.approx(at_large, rel=1e-3)


def test_no_bound_leaves_the_up_branch_alone():
    assert value(1, 1000, linear_beta=None) == pytest.approx(
        4 * math.tanh(0.25) / (1 + math.exp(-1)) * 1000, rel=1e-14
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_builtin_passes(dtype, seed):
    assert_passes("situ_glu", dtype=dtype, seed=seed)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("case", "slug"), claims("situ_glu"))
def test_what_a_case_claims_to_see_is_visible(case, slug, dtype):
    assert seen_by("situ_glu", case, slug, dtype) >= VISIBLE


def test_every_fault_is_seen_by_a_case():
    slugs = {f.slug for f in operator_of("situ_glu").faults(SITU, SituInterface(), Recipe())}
    assert slugs == {slug for _, slug in claims("situ_glu")}


def right(gate, up, beta=4.0, linear_beta=25.0):
    g, u = gate.float(), up.float()
    if linear_beta is not None:
        u = linear_beta * torch.tanh(u / linear_beta)
    return (beta * torch.tanh(g / beta) * torch.sigmoid(g) * u).to(gate.dtype)


def situ_and_mul(inputs, beta=4.0, linear_beta=25.0):
    return right(*inputs.chunk(2, -1), beta, linear_beta)


def released_bounds_only(x):
    return right(*x.chunk(2, -1))


def pair(gate, up):
    return right(gate, up)


def up_first(up_gate, beta, linear_beta):
    up, gate = up_gate.chunk(2, -1)
    return right(gate, up, beta, linear_beta)


class SituAndMul:
    def __init__(self, beta, linear_beta):
        self.bounds = beta, linear_beta

    def __call__(self, x):
        return right(*x.chunk(2, -1), *self.bounds)


def k3_situ_glu(y, x, n, b1, b2):
    y.copy_(right(x[:n], x[n:], b1, b2))


RIGHT = {
    "k3check": released_bounds_only,
    "megatron": situ_and_mul,
    "pair": pair,
    "up-first": up_first,
    "module": SituAndMul,
    "out": k3_situ_glu,
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("convention", [*RIGHT, "auto"])
def test_a_right_callable_passes(convention, dtype):
    targets = RIGHT.values() if convention == "auto" else [RIGHT[convention]]
    for target in targets:
        assert_passes("situ_glu", target, convention=convention, dtype=dtype)


def test_what_a_callable_does_not_take_is_skipped():
    found = findings_for("situ_glu", pair)
    assert str(found["uncapped"].outcome) == "skipped"
    assert str(found["other-bounds"].outcome) == "skipped"


def unsafe(x, beta=4.0, linear_beta=25.0):
    def tanh(z):
        e = torch.exp(2 * z)
        return (e - 1) / (e + 1)

    g, u = x.float().chunk(2, -1)
    up = u if linear_beta is None else linear_beta * tanh(u / linear_beta)
    return (beta * tanh(g / beta) * torch.sigmoid(g) * up).to(x.dtype)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_an_overflowing_tanh_is_found_where_it_overflows(dtype):
    found = findings_for("situ_glu", unsafe, dtype=dtype)
    assert str(found["unit"].outcome) == "pass"
    assert found["huge"].hint.code == "K3O-004"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_swiglu_fails(dtype):
    def swiglu(x):
        g, u = x.chunk(2, -1)
        return F.silu(g) * u

    assert "fail" in outcomes("situ_glu", swiglu, dtype=dtype)
