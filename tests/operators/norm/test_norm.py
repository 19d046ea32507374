"""The gated norm: by hand, cases, conventions."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from k3check.nouns.recipe import Recipe
from k3check.operators.norm.reference import evaluate
from k3check.operators.norm.semantics import K3, NormInterface
from tests.operators.harness import (
    DTYPES,
    VISIBLE,
    assert_passes,
    claims,
    operator_of,
    outcomes,
    seen_by,
)


def test_the_reference_is_the_formula():
    def t(*values):
        return torch.tensor(values, dtype=torch.float64).view(1, 1, 1, -1)

    inputs = {"x": t(3.0, 4.0), "gate": t(1.0, -2.0), "gain": t(2.0, 0.5).flatten()}
    root = math.sqrt(12.5 + 1e-5)
    expected = [3 / root * 2 / (1 + math.exp(-1)), 4 / root * 0.5 / (1 + math.exp(2))]
    got = evaluate(K3, NormInterface(), inputs)["output"].flatten().tolist()
    assert got == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_builtin_passes(dtype, seed):
    assert_passes("gated_rms_norm", dtype=dtype, seed=seed)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("case", "slug"), claims("gated_rms_norm"))
def test_what_a_case_claims_to_see_is_visible(case, slug, dtype):
    assert seen_by("gated_rms_norm", case, slug, dtype) >= VISIBLE


def test_every_fault_is_seen_by_a_case():
    slugs = {f.slug for f in operator_of("gated_rms_norm").faults(K3, NormInterface(), Recipe())}
    assert slugs == {slug for _, slug in claims("gated_rms_norm")}


def rms_norm_gated(x, g, weight, bias, activation="swish", residual=None, eps=1e-6):
    wide = x.float()
    y = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps) * weight.float()
    gate = g.float().sigmoid()
    return (y * (gate if activation == "sigmoid" else g.float() * gate)).to(x.dtype)


class FusedRMSNormGated(nn.Module):
    def __init__(self, hidden_size, elementwise_affine=True, eps=1e-5, activation="swish"):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.settings = {"eps": eps, "activation": activation}

    def forward(self, x, g):
        return rms_norm_gated(x, g, self.weight, None, **self.settings)


def llama_order(x, gate, gain, eps):
    # the normalised value is rounded before gain and gate, as the released RMSNorm does
    wide = x.float()
    unit = (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype)
    return ((gain * unit).float() * gate.float().sigmoid()).to(x.dtype)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize(
    ("convention", "target"),
    [
        ("fla", rms_norm_gated),
        ("module", FusedRMSNormGated),
        ("k3check", llama_order),
        ("auto", rms_norm_gated),
        ("auto", FusedRMSNormGated),
        ("auto", llama_order),
    ],
)
def test_a_right_callable_passes(convention, target, dtype):
    assert_passes("gated_rms_norm", target, convention=convention, dtype=dtype)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    "options", [{"activation": "swish"}, {"eps": 1e-3}], ids=["fla's default gate", "eps"]
)
def test_a_wrong_option_fails(options, dtype):
    found = outcomes("gated_rms_norm", rms_norm_gated, convention="fla", options=options,
                     dtype=dtype)  # fmt: skip
    assert "fail" in found
