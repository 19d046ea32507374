"""The router: reference by hand, cases, conventions, ids in every wrong form."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from k3check.nouns.recipe import Recipe
from k3check.operators.moe.conventions.router import routing
from k3check.operators.moe.router import evaluate
from k3check.operators.moe.semantics import ROUTER, RouterInterface
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


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_the_reference_is_the_formula():
    inputs = {
        "logits": torch.tensor([[0.0, 1.0, -1.0]], dtype=torch.float64),
        "bias": torch.tensor([0.5, -0.5, 0.1], dtype=torch.float64),
        "top_k": 2,
        "renormalize": True,
        "scaling": 2.0,
    }
    # choices: 0.5 + 0.5, 0.731 - 0.5, 0.269 + 0.1: experts 0 and 2
    got = evaluate(ROUTER, RouterInterface(logits=True), inputs)
    assert got["ids"].tolist() == [[0, 2]]
    total = 0.5 + sigmoid(-1)
    assert got["weights"][0].tolist() == pytest.approx(
        [2 * 0.5 / total, 0.0, 2 * sigmoid(-1) / total], rel=1e-14
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_builtin_passes(dtype, seed):
    assert_passes("moe_router", dtype=dtype, seed=seed)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("case", "slug"), claims("moe_router"))
def test_what_a_case_claims_to_see_is_visible(case, slug, dtype):
    assert seen_by("moe_router", case, slug, dtype) >= VISIBLE


def test_every_fault_is_seen_by_a_case():
    slugs = {f.slug for f in operator_of("moe_router").faults(ROUTER, RouterInterface(), Recipe())}
    assert slugs == {slug for _, slug in claims("moe_router")}


def choose(logits, bias, k, renormalize=True, scaling=1.0):
    s = logits.sigmoid()
    ids = (s + bias).topk(k, sorted=False).indices
    w = s.gather(1, ids)
    if renormalize:
        w = w / (w.sum(-1, keepdim=True) + 1e-20)
    return ids, w * scaling


def gate_forward(self, hidden_states):
    """KimiMoEGate.forward, written from its description."""
    h = hidden_states.reshape(-1, hidden_states.shape[-1])
    logits = F.linear(h.float(), self.weight.float())
    return choose(
        logits,
        self.e_score_correction_bias.unsqueeze(0),
        self.top_k,
        self.moe_renormalize,
        self.routed_scaling_factor,
    )


def fused_grouped_topk(
    hidden_states, gating_output, topk, renormalize, e_score_correction_bias,
    num_expert_group=0, topk_group=0, scoring_func="softmax", routed_scaling_factor=1.0,
):  # fmt: skip
    assert scoring_func == "sigmoid"
    ids, w = choose(
        gating_output, e_score_correction_bias, topk, renormalize, routed_scaling_factor
    )
    return w, ids.int()


def biased_grouped_topk(
    hidden_states, gating_output, correction_bias, topk, renormalize,
    num_expert_group=None, topk_group=None,
):  # fmt: skip
    ids, w = choose(gating_output, correction_bias, topk, renormalize)
    return w, ids.int()


def bare(logits, bias, top_k):
    return choose(logits, bias, top_k)


RIGHT = {
    "hf": gate_forward,
    "vllm": fused_grouped_topk,
    "sglang": biased_grouped_topk,
    "logits": bare,
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("convention", [*RIGHT, "auto"])
def test_a_right_callable_passes(convention, dtype):
    targets = RIGHT.values() if convention == "auto" else [RIGHT[convention]]
    for target in targets:
        assert_passes("moe_router", target, convention=convention, dtype=dtype)


def wrapped(change):
    def router(hidden, weight, bias, top_k, renormalize=True, scaling=1.0):
        logits = hidden.float() @ weight.float().T
        ids, w = choose(logits, bias, top_k, renormalize, scaling)
        return change(ids, w)

    return router


@pytest.mark.parametrize(
    "change",
    [
        lambda ids, w: (ids, w),
        lambda ids, w: (w, ids.int()),
        lambda ids, w: (w, ids, None),
        lambda ids, w: [ids.flip(1), w.flip(1)],
        lambda ids, w: (ids.to(torch.int16), w),
    ],
    ids=["ids first", "weights first", "three", "another order", "int16"],
)
def test_either_order_and_any_integer(change):
    assert_passes("moe_router", wrapped(change))


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda ids, w: (torch.cat([ids, ids[:, :2] * 0 + torch.tensor([900, 901])], 1),
                         torch.cat([w, w[:, :2]], 1)), "K3O-301"),
        (lambda ids, w: (torch.where(ids == ids[:, :1], -1, ids), w), "K3O-302"),
        (lambda ids, w: (ids + 10**4, w), "K3O-303"),
        (lambda ids, w: (torch.where(ids == ids[:, :1], ids[:, 1:2], ids), w), "K3O-304"),
        (lambda ids, w: (ids.float(), w), "K3O-300"),
        (lambda ids, w: ids, "K3O-019"),
        (lambda ids, w: (ids,), "K3O-019"),
        (lambda ids, w: (ids, None), "K3O-001"),
        (lambda ids, w: (ids, w[:, :-1]), "K3O-002"),
        (lambda ids, w: (ids, w * float("nan")), "K3O-004"),
        (lambda ids, w: (ids, w.roll(1, 1)), "K3O-009"),
    ],
    ids=["18 ids", "negative", "beyond", "twice", "float", "one tensor", "tuple of one",
         "no weights", "shape", "nan", "order"],
)  # fmt: skip
def test_every_wrong_form_has_its_own_finding(change, code):
    found = findings_for("moe_router", wrapped(change), only={"biased", "released-experts"})
    assert {f.hint.code for f in found.values()} == {code}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_bfloat16_logits_are_caught(dtype):
    def router(hidden, weight, bias, top_k, renormalize=True, scaling=1.0):
        logits = (hidden.bfloat16() @ weight.bfloat16().T).float()
        return choose(logits, bias, top_k, renormalize, scaling)

    assert "fail" in outcomes("moe_router", router, dtype=dtype)


def test_ids_outside_the_range_carry_no_weight():
    inputs = {"bias": torch.zeros(3)}
    got = routing((torch.tensor([[2, 7]]), torch.tensor([[0.25, 0.75]])), inputs)
    assert got["weights"].tolist() == [[0.0, 0.0, 0.25]]
    assert got["ids"].tolist() == [[2, 7]]
