"""Limits hold for any order of summation, and for nothing else."""

from __future__ import annotations

import math

import pytest
import torch

from k3check.compare.orders import AnyOrder, any_order
from k3check.nouns.tensors import generator
from tests.limits.summing import ORDERS, summed
from tests.operators.harness import findings_for, operator_of


def off(terms: torch.Tensor, compute) -> float:
    """RMS of what the sums of rows may be off by, in units of the half epsilon."""
    plain = {"output": compute(terms)}
    exact = {"output": compute(terms.double())}
    found = any_order(lambda: {"output": compute(terms)}, plain, exact, terms.dtype)
    return (found["output"] - exact["output"]).square().mean().sqrt().item() * 2**24


@pytest.mark.parametrize("length", [16, 256, 4096])
def test_a_sum_costs_what_its_length_and_its_terms_say(length):
    terms = torch.rand(64, length, generator=generator(0, "terms")).float()
    Q, S = terms.double().square().sum(-1), terms.double().sum(-1)
    expected = (length * (Q + 2 * S.square()) / 6).sqrt().square().mean().sqrt().item()
    assert off(terms, lambda x: x.sum(-1)) == pytest.approx(expected, rel=0.3)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("signs", [False, True])
def test_no_order_of_a_sum_costs_more(order, signs):
    terms = torch.rand(64, 2048, generator=generator(1, "terms")).float() - 0.5 * signs
    found = summed(lambda x: x.sum(-1), order)(terms).double() - terms.double().sum(-1)
    assert found.square().mean().sqrt().item() * 2**24 <= off(terms, lambda x: x.sum(-1))


def test_products_softmaxes_and_running_sums_are_moved_too():
    x = torch.rand(8, 64, 64, generator=generator(2, "x"), dtype=torch.float64) + 0.1
    for compute in (
        lambda x: x @ x,
        lambda x: x.softmax(-1),
        lambda x: x.cumsum(-1),
        lambda x: x.cumprod(-1),
        lambda x: x.mean((0, 1)),
        torch.exp,
    ):
        with AnyOrder(torch.float64, generator(0, "any")):
            moved = compute(x)
        error = ((moved - compute(x)).abs() / compute(x).abs()).max().item()
        assert 0 < error < 64 * 64 * 2**-52


def test_infinities_ids_and_other_precisions_stay():
    x = torch.tensor([1.0, -math.inf, math.nan, 3.0])
    with AnyOrder(torch.float32, generator(0, "any")):
        assert torch.equal((x + 1).isfinite(), x.isfinite())
        assert torch.equal(x.topk(1).indices, torch.topk(x, 1).indices)
        low = (x.bfloat16() + 1).float()
    assert torch.equal(low.nan_to_num(), (x.bfloat16() + 1).float().nan_to_num())


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_order_passes_where_a_machine_failed(dtype, order):
    """Nine sources of 7168 channels: one machine's order was refused in float64."""
    target = summed(operator_of("attn_res").builtin({}), order)
    for seed in (2, 7):
        found = findings_for("attn_res", target, dtype=dtype, seed=seed, only=("released-width",))
        assert str(found["released-width"].outcome) == "pass"


def test_a_mistake_near_rounding_is_still_one():
    """Eps 1e-6 for 1e-5, and one lane of 7168 left out: no order of summation does that."""
    mix = operator_of("attn_res").builtin({})

    def other_eps(sources, query, gain, eps=1e-5):
        return mix(sources, query, gain, eps=1.0001 * eps)

    def without_a_channel(sources, query, gain, eps=1e-5):
        gain = gain.clone()
        gain[-1] = 0
        return mix(sources, query, gain, eps)

    found = findings_for("attn_res", other_eps, dtype="float64", only=("tiny",))
    assert str(found["tiny"].outcome) == "fail"
    found = findings_for("attn_res", without_a_channel, dtype="float32", only=("released-width",))
    assert str(found["released-width"].outcome) == "fail"
