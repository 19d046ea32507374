"""One mix: the reference against hand-written formulas, and what its cases see."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from k3check.nouns.recipe import Recipe
from k3check.operators.attn_res.reference import evaluate
from k3check.operators.attn_res.semantics import K3, AttnResInterface
from tests.operators.harness import DTYPES, VISIBLE, assert_passes, claims, operator_of, seen_by


def two_sources():
    """Two sources of two channels whose mix can be worked out by hand."""
    return {
        "sources": torch.tensor([[[3.0, 4.0]], [[1.0, 0.0]]], dtype=torch.float64),
        "query": torch.tensor([1.0, 0.5], dtype=torch.float64),
        "gain": torch.tensor([2.0, 1.0], dtype=torch.float64),
    }


def by_hand(eps: float) -> list[float]:
    # keys: v / sqrt(mean(v^2) + eps); scores: sum of key * gain * query
    a, b = math.sqrt(12.5 + eps), math.sqrt(0.5 + eps)
    s0, s1 = (3 * 2 + 4 * 0.5) / a, 2 / b
    w0 = 1 / (1 + math.exp(s1 - s0))
    return [3 * w0 + (1 - w0), 4 * w0]


@pytest.mark.parametrize("eps", [1e-5, 1e-6, 0.5])
def test_the_reference_is_the_formula(eps):
    got = evaluate(replace(K3, eps=eps), AttnResInterface(), two_sources())["output"]
    assert got[0].tolist() == pytest.approx(by_hand(eps), rel=1e-14)


def test_the_mix_of_one_source_is_that_source():
    inputs = two_sources()
    inputs["sources"] = inputs["sources"][1:]
    assert torch.equal(evaluate(K3, AttnResInterface(), inputs)["output"], inputs["sources"][0])


def test_zero_query_is_the_mean():
    inputs = two_sources() | {"query": torch.zeros(2, dtype=torch.float64)}
    assert evaluate(K3, AttnResInterface(), inputs)["output"][0].tolist() == [2.0, 2.0]


def test_the_delta_is_added_to_the_prefix():
    inputs = two_sources()
    moved = {**inputs, "delta": torch.tensor([[1.0, 2.0]], dtype=torch.float64)}
    moved["sources"] = inputs["sources"].clone()
    moved["sources"][1] -= moved["delta"]
    got = evaluate(K3, AttnResInterface(delta=True), moved)["output"]
    assert torch.equal(got, evaluate(K3, AttnResInterface(), inputs)["output"])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_builtin_passes(dtype, seed):
    assert_passes("attn_res", dtype=dtype, seed=seed)


def slugs_of(dtype):
    operator = operator_of("attn_res")
    interface = operator.conventions["k3check"].bind(None, {}).interface
    semantics = next(iter(operator.semantics.values()))
    return {f.slug for f in operator.faults(semantics, interface, Recipe(io=dtype))}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("case", "slug"), claims("attn_res"))
def test_what_a_case_claims_to_see_is_visible(case, slug, dtype):
    if (slug, dtype) == ("attnres.keys-bfloat16", torch.bfloat16):
        assert slug not in slugs_of(dtype)  # the recipe itself, and no mistake there
        return
    assert seen_by("attn_res", case, slug, dtype) >= VISIBLE


@pytest.mark.parametrize(
    "slug", ["output-norm-missing", "output-gain-dropped", "output-gain-one-plus"]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_mistakes_in_the_included_norm_are_visible(slug, dtype):
    assert seen_by("attn_res", "unit", f"attnres.{slug}", dtype, "fla-normed") >= VISIBLE


def test_every_fault_is_seen_by_a_case():
    operator = operator_of("attn_res")
    slugs = {f.slug for f in operator.faults(K3, AttnResInterface(), Recipe())}
    assert slugs == {slug for _, slug in claims("attn_res")}


def test_a_folded_gain_cannot_be_forgotten():
    folded = operator_of("attn_res").faults(K3, AttnResInterface(folded=True), Recipe())
    assert not [f.slug for f in folded if "gain" in f.slug]
