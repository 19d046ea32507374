"""The latent expert layer: by hand, cases, conventions."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from k3check.nouns.recipe import Recipe
from k3check.operators.moe.latent import evaluate
from k3check.operators.moe.semantics import LATENT, LatentInterface
from tests.operators.harness import (
    DTYPES,
    VISIBLE,
    assert_passes,
    claims,
    operator_of,
    outcomes,
    seen_by,
)

#: what bfloat16 inputs and outputs hide: a sum rounded to bfloat16 costs what they cost anyway,
#: unless many large terms cancel
FLOAT32_ONLY = {"latent.combine-bfloat16"}


def situ(g: float, u: float) -> float:
    return 4 * math.tanh(g / 4) / (1 + math.exp(-g)) * 25 * math.tanh(u / 25)


def test_the_reference_is_the_formula():
    # one token, widths of one, two experts; every product is a plain number
    def t(*values):
        return torch.tensor(values, dtype=torch.float64)

    inputs = {
        "x": t([2.0]), "ids": torch.tensor([[0, 1]]), "weights": t([0.75, 0.5]),
        "w_down": t([0.5]), "w1": t([[1.0]], [[2.0]]), "w3": t([[3.0]], [[-1.0]]),
        "w2": t([[1.0]], [[0.5]]), "gain": t(1.5), "w_up": t([2.0]),
        "s1": t([1.0]), "s3": t([0.5]), "s2": t([3.0]),
    }  # fmt: skip
    total = 0.75 * situ(1, 3) + 0.5 * 0.5 * situ(2, -1)
    normed = total / math.sqrt(total**2 + 1e-5) * 1.5
    expected = 2 * normed + 3 * situ(2, 1)
    got = evaluate(LATENT, LatentInterface(), inputs)["output"].item()
    assert got == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_builtin_passes(dtype, seed):
    assert_passes("latent_moe", dtype=dtype, seed=seed)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("case", "slug"), claims("latent_moe"))
def test_what_a_case_claims_to_see_is_visible(case, slug, dtype):
    seen = seen_by("latent_moe", case, slug, dtype)
    if slug in FLOAT32_ONLY and dtype is torch.bfloat16:
        # If it ever becomes visible elsewhere, this list is wrong.
        assert (seen > 1.5) if case == "opposed" else (seen < 1)
    else:
        assert seen >= VISIBLE


def test_every_fault_is_seen_by_a_case():
    slugs = {f.slug for f in operator_of("latent_moe").faults(LATENT, LatentInterface(), Recipe())}
    assert slugs == {slug for _, slug in claims("latent_moe")}


def act(x):
    g, u = x.float().chunk(2, -1)
    return (4 * torch.tanh(g / 4) * g.sigmoid() * 25 * torch.tanh(u / 25)).to(x.dtype)


def released(x, ids, weights, w_down, w1, w3, w2, gain, w_up, s1, s3, s2, eps):
    """The released block's order of operations and roundings, written from its description."""
    z = F.linear(x, w_down)
    total = torch.zeros_like(z, dtype=torch.float32)
    for t in range(len(x)):
        for e, w in zip(ids[t].tolist(), weights[t], strict=True):
            hidden = act(torch.cat([F.linear(z[t], w1[e]), F.linear(z[t], w3[e])], -1))
            total[t] += F.linear(hidden, w2[e]).float() * w
    y = total.to(x.dtype)
    unit = y.float() * torch.rsqrt(y.float().pow(2).mean(-1, keepdim=True) + eps)
    routed = F.linear(gain * unit.to(x.dtype), w_up)
    shared = F.linear(act(torch.cat([F.linear(x, s1), F.linear(x, s3)], -1)), s2)
    return routed + shared


def fused_experts(hidden_states, w1, w2, topk_weights, topk_ids):
    out = torch.zeros_like(hidden_states, dtype=torch.float32)
    for e in range(len(w1)):
        w = (topk_weights * (topk_ids == e)).sum(-1, keepdim=True)
        out += w * F.linear(act(F.linear(hidden_states, w1[e])), w2[e]).float()
    return out.to(hidden_states.dtype)


def weights_before_down(x, w1, w2, w3, topk_ids, topk_weights):
    # the weight before the down projection: the same sum, rounded elsewhere
    out = torch.zeros_like(x, dtype=torch.float32)
    for e in range(len(w1)):
        w = (topk_weights * (topk_ids == e)).sum(-1, keepdim=True)
        hidden = act(torch.cat([F.linear(x, w1[e]), F.linear(x, w3[e])], -1))
        out += F.linear((w * hidden.float()).to(x.dtype), w2[e]).float()
    return out.to(x.dtype)


RIGHT = {
    "k3check": released,
    "fused-experts": fused_experts,
    "experts": weights_before_down,
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("convention", [*RIGHT, "auto"])
def test_a_right_callable_passes(convention, dtype):
    targets = RIGHT.values() if convention == "auto" else [RIGHT[convention]]
    for target in targets:
        assert_passes("latent_moe", target, convention=convention, dtype=dtype)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_wrong_experts_fail(dtype):
    def swapped(hidden_states, w1, w2, topk_weights, topk_ids):
        gate, up = w1.chunk(2, 1)
        return fused_experts(hidden_states, torch.cat([up, gate], 1), w2, topk_weights, topk_ids)

    found = outcomes("latent_moe", swapped, convention="fused-experts", dtype=dtype)
    assert "fail" in found
