"""The short convolution: by hand, cases, conventions."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from k3check.nouns.recipe import Recipe
from k3check.operators.conv.reference import evaluate
from k3check.operators.conv.semantics import K3, ConvInterface
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


def silu(x: float) -> float:
    return x / (1 + math.exp(-x))


def t(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_the_reference_is_the_formula():
    # one channel, weights 1, 2, 3, 4 from the oldest to the current; before: 10, 20, 30
    inputs = {
        "x": t([1.0], [2.0]).unsqueeze(0),
        "weight": t([0.01, 0.02, 0.03, 0.04]),
        "initial_state": t([10.0, 20.0, 30.0]).unsqueeze(0),
    }
    got = evaluate(K3, ConvInterface(), inputs)
    expected = [silu(0.1 + 0.4 + 0.9 + 0.04), silu(0.2 + 0.6 + 0.03 + 0.08)]
    assert got["output"].flatten().tolist() == pytest.approx(expected, rel=1e-14)
    assert got["final_state"].tolist() == [[[30.0, 1.0, 2.0]]]


def test_the_wide_state_has_one_column_more():
    inputs = {
        "x": t([1.0]).unsqueeze(0),
        "weight": t([0.01, 0.02, 0.03, 0.04]),
        "initial_state": t([5.0, 10.0, 20.0, 30.0]).unsqueeze(0),
    }
    got = evaluate(K3, ConvInterface(extra_column=True), inputs)
    assert got["output"].item() == pytest.approx(silu(0.1 + 0.4 + 0.9 + 0.04), rel=1e-14)
    assert got["final_state"].tolist() == [[[10.0, 20.0, 30.0, 1.0]]]


def test_packed_equals_separate():
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(1, 9, 2, generator=draw, dtype=torch.float64)
    weight = torch.randn(2, 4, generator=draw, dtype=torch.float64)
    state = torch.randn(3, 2, 3, generator=draw, dtype=torch.float64)
    packed = {"x": x, "weight": weight, "initial_state": state,
              "cu_seqlens": torch.tensor([0, 2, 2, 9])}  # fmt: skip
    got = evaluate(K3, ConvInterface(), packed)
    for n, (a, b) in enumerate([(0, 2), (2, 2), (2, 9)]):
        one = {"x": x[:, a:b], "weight": weight, "initial_state": state[n : n + 1]}
        alone = evaluate(K3, ConvInterface(), one)
        assert torch.equal(got["output"][:, a:b], alone["output"])
        assert torch.equal(got["final_state"][n : n + 1], alone["final_state"])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_builtin_passes(dtype, seed):
    assert_passes("short_conv", dtype=dtype, seed=seed)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("case", "slug"), claims("short_conv"))
def test_what_a_case_claims_to_see_is_visible(case, slug, dtype):
    assert seen_by("short_conv", case, slug, dtype) >= VISIBLE


def test_every_fault_is_seen_by_a_case():
    slugs = {f.slug for f in operator_of("short_conv").faults(K3, ConvInterface(), Recipe())}
    assert slugs == {slug for _, slug in claims("short_conv")}


def convolve(line, weight):
    y = F.conv1d(line.float(), weight.float().unsqueeze(1), groups=len(weight))
    return F.silu(y).to(line.dtype)


def causal_conv1d_fn(
    x, weight, bias=None, seq_idx=None, initial_states=None, return_final_states=False,
    final_states_out=None, activation=None,
):  # fmt: skip
    assert activation == "silu"
    if initial_states is None:
        initial_states = x.new_zeros(*x.shape[:2], weight.shape[1] - 1)
    line = torch.cat([initial_states, x], -1)
    y = convolve(line, weight)
    return (y, line[..., -(weight.shape[1] - 1) :]) if return_final_states else y


def stateless(x, weight, activation):
    return causal_conv1d_fn(x, weight, activation=activation)


def causal_conv1d_update(x, conv_state, weight, bias=None, activation=None):
    line = torch.cat([conv_state, x.unsqueeze(-1)], -1)
    conv_state.copy_(line[..., 1:])
    return convolve(line, weight).squeeze(-1)


def fla_causal_conv1d(
    x, weight=None, bias=None, residual=None, initial_state=None, output_final_state=False,
    activation=None, cu_seqlens=None,
):  # fmt: skip
    W = weight.shape[1]
    ends = [0, x.shape[1]] if cu_seqlens is None else cu_seqlens.tolist()
    pieces = list(x) if cu_seqlens is None else list(x[0].tensor_split(ends[1:-1]))
    out, states = [], []
    for n, piece in enumerate(pieces):
        old = x.new_zeros(len(weight), W) if initial_state is None else initial_state[n]
        line = torch.cat([old, piece.T], -1)
        if len(piece):
            out.append(convolve(line[None, :, 1:], weight)[0].T)
        states.append(line[:, -W:])
    y = torch.stack(out) if cu_seqlens is None else torch.cat(out)[None]
    return y, torch.stack(states) if output_final_state else None


RIGHT = {
    "fla": fla_causal_conv1d,
    "causal-conv1d": causal_conv1d_fn,
    "causal-conv1d-update": causal_conv1d_update,
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("convention", [*RIGHT, "auto"])
def test_a_right_callable_passes(convention, dtype):
    targets = RIGHT.values() if convention == "auto" else [RIGHT[convention]]
    for target in targets:
        assert_passes("short_conv", target, convention=convention, dtype=dtype)


def test_without_a_state_only_its_cases_are_skipped():
    found = findings_for("short_conv", stateless, convention="causal-conv1d")
    assert {c for c, f in found.items() if str(f.outcome) == "skipped"} == {
        "packed", "packed-without-state", "two-tokens", "one-token", "split", "packed-separate",
        "strided",  # the form hands on channels before tokens: a copy
    }  # fmt: skip


def test_a_state_with_three_columns_for_four_is_said():
    def three(x, weight, initial_state=None, output_final_state=False, activation=None,
              cu_seqlens=None):  # fmt: skip
        y, state = fla_causal_conv1d(
            x, weight, initial_state=initial_state, output_final_state=True, cu_seqlens=cu_seqlens
        )
        return y, state[..., 1:]

    found = findings_for("short_conv", three, convention="fla", only={"sequence"})
    assert found["sequence"].hint.code == "K3O-002"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_leak_between_packed_sequences_fails(dtype):
    def leaking(x, weight, initial_state=None, cu_seqlens=None):
        y, _ = causal_conv1d_fn(x.mT, weight, return_final_states=True, activation="silu")
        n = 1 if cu_seqlens is None else len(cu_seqlens) - 1
        return y.mT, x.new_zeros(n, len(weight), weight.shape[1] - 1)

    assert "fail" in outcomes("short_conv", leaking, dtype=dtype)
