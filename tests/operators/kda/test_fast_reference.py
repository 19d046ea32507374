"""The fast exact form against the loop over tokens, to 1e-12, for any gate and any length."""

from __future__ import annotations

import time
from dataclasses import fields, replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from k3check.compare.distance import relative_l2
from k3check.nouns.recipe import EXACT
from k3check.operators.kda import exact, fast_reference, reference
from k3check.operators.kda.semantics import ARTICLE, K3, KIMI_LINEAR, KdaInterface, KdaSemantics

GIVEN = KdaInterface(gate="ln", beta="prob", norm="caller")
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]

#: log decays by family, of noise from a normal distribution
GATES = {
    "bounded": lambda x: -5 * torch.sigmoid(x),
    "saturated": lambda x: torch.full_like(x, -5.0),
    "softplus": lambda x: -(3 * x).exp().clamp(max=3000),
    "none": torch.zeros_like,
    "slow": lambda x: -1e-3 * x.abs(),
    "alpha 0 and 1": lambda x: torch.where(x > 0.5, -torch.inf, torch.zeros_like(x)),
    "3000 or hardly": lambda x: torch.where(x > 0, -3000.0, -1e-3),
    "range's end": lambda x: torch.full_like(x, -8.7),
    "growing": lambda x: 0.3 * torch.sigmoid(x),
}


def made(gate="bounded", tokens=130, batch=1, heads=2, K=16, V=12, ends=None, keys="iid", seed=0):
    draw = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=draw, dtype=torch.float64)

    shared = 3.0 if keys == "parallel" else 0.0
    N = batch if ends is None else len(ends) - 1
    k = normal(batch, tokens, heads, K) + shared * normal(batch, 1, heads, K)
    inputs = {
        "q": torch.nn.functional.normalize(normal(batch, tokens, heads, K), dim=-1),
        "k": torch.nn.functional.normalize(k, dim=-1),
        "v": normal(batch, tokens, heads, V),
        "gate": GATES[gate](normal(batch, tokens, heads, K)),
        "beta": normal(batch, tokens, heads).sigmoid(),
        "initial_state": normal(N, heads, K, V),
    }
    if ends is not None:
        inputs["cu_seqlens"] = torch.tensor(ends)
    return inputs


def agree(inputs, semantics=K3, width=None, interface=GIVEN, limit=1e-12):
    before = {name: value.clone() for name, value in inputs.items()}
    expected = reference.evaluate(semantics, interface, inputs, EXACT)
    found = exact.evaluate_fast(semantics, interface, inputs, width)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].shape == value.shape
        assert found[name].dtype == torch.float64
        assert relative_l2(found[name], value) < limit, name
    assert all(torch.equal(inputs[name], value) for name, value in before.items())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("ready", [False, True], ids=["substituted", "one product a step"])
@pytest.mark.parametrize("gate", GATES)
def test_the_token_loop_for_every_gate(gate, ready, device, monkeypatch):
    monkeypatch.setattr(fast_reference, "launches_cost", lambda device: ready)
    inputs = made(gate, keys="parallel" if gate == "slow" else "iid")
    agree({name: value.to(device) for name, value in inputs.items()})


@pytest.mark.parametrize("ready", [False, True])
@pytest.mark.parametrize("width", [1, 2, 3, None])
@pytest.mark.parametrize(
    "ends",
    [[0, 5, 5, 6, 23, 150, 300], [0, 64, 128, 300], [0, 300], [0, 0, 1, 129, 300, 300]],
    ids=str,
)
def test_packed_sequences_side_by_side(ends, width, ready, monkeypatch):
    monkeypatch.setattr(fast_reference, "launches_cost", lambda device: ready)
    agree(made(tokens=300, ends=ends), width=width)


@given(
    tokens=st.integers(1, 200),
    batch=st.integers(1, 3),
    width=st.sampled_from([1, 2, None]),
    gate=st.sampled_from(sorted(GATES)),
)
@settings(max_examples=25, deadline=None)
def test_any_length(tokens, batch, width, gate):
    agree(made(gate, tokens=tokens, batch=batch), width=width)


def test_both_ways_to_the_pairs_agree():
    x = made("bounded", tokens=128)
    q, k, g = (
        x[name][0].transpose(0, 1).reshape(2, 2, 64, 16).transpose(0, 1).contiguous()
        for name in ("q", "k", "gate")
    )
    alpha = g.exp()
    grown = alpha.cumprod(dim=2)
    divided = fast_reference._by_division(q, k, grown)
    tree = fast_reference._by_tree(q, k, alpha)
    scaled = (*divided[:4], divided[4] * grown[:, :, -1:])
    cuts = (-1, 0)
    for n, (one, other) in enumerate(zip(scaled, tree, strict=True)):
        if n < len(cuts):
            one, other = one.tril(cuts[n]), other.tril(cuts[n])
        assert relative_l2(one, other) < 1e-13


def test_the_way_without_division_is_taken_where_float64_ends(monkeypatch):
    seen = []
    tree = fast_reference._by_tree
    monkeypatch.setattr(fast_reference, "_by_tree", lambda *given: seen.append(1) or tree(*given))
    agree(made("saturated"))
    assert not seen
    agree(made("range's end"))  # 64 tokens: exp(-557)
    assert seen


@pytest.mark.parametrize("size", [1, 2, 16, 64])
def test_the_inverse_of_near_parallel_keys(size):
    k = torch.nn.functional.normalize(
        torch.randn(3, 2, 1, 8, dtype=torch.float64)
        + 1e-3 * torch.randn(3, 2, size, 8, dtype=torch.float64),
        dim=-1,
    )
    strict = 0.9997 * (k @ k.mT).tril(-1)
    right = torch.randn(3, 2, size, 5, dtype=torch.float64)
    eye = torch.eye(size, dtype=torch.float64)
    found = fast_reference.unit_lower_inverse(strict) @ right
    assert relative_l2((eye + strict) @ found, right) < 1e-13


@pytest.mark.parametrize("semantics", [K3, KIMI_LINEAR, ARTICLE], ids=["k3", "kimi", "article"])
@pytest.mark.parametrize("whole", [0, 1 << 24], ids=["prepared in pieces", "prepared whole"])
def test_raw_inputs_with_grouped_heads(semantics, whole, monkeypatch):
    monkeypatch.setattr(exact, "_WHOLE", whole)
    inputs = made(tokens=150, batch=2, heads=4)
    inputs |= {"gate": inputs["gate"] + 2, "A_log": torch.linspace(-1, 1, 4).double()}
    inputs |= {name: inputs[name][:, :, :2] for name in ("q", "k")}
    inputs |= {"dt_bias": torch.randn(4, 16, dtype=torch.float64)}
    agree(inputs, semantics, width=1, interface=KdaInterface())
    agree(
        {name: x.bfloat16() for name, x in inputs.items()},
        replace(semantics, value_token="previous", gate_token="previous"),
        width=1,
        interface=KdaInterface(),
    )


@pytest.mark.parametrize("final", ["last", "transposed", "initial"])
def test_what_is_done_with_states(final):
    agree(made(K=12), replace(K3, final_state=final, initial_state="transposed"))
    no_state = {n: x for n, x in made().items() if n != "initial_state"}
    agree(no_state, replace(K3, final_state=final))


def test_a_nan_stays_behind_the_token_that_has_it():
    inputs = made(tokens=100)
    inputs["v"][0, 40] = torch.nan
    found = exact.evaluate(K3, GIVEN, inputs)["output"]
    assert found[:, :40].isfinite().all()
    assert found[:, 40:].isnan().any()


def test_only_the_right_recurrence_is_evaluated_fast():
    """Of every other choice in the recurrence the plain forms are asked."""
    assert all(map(fast_reference.applies, (K3, KIMI_LINEAR, ARTICLE)))
    others = {
        "decay": "after", "prediction": "undecayed", "write": "by_query", "readout": "by_key",
        "beta_on": "value", "packing": "leak", "handed_state": "stale", "system": "no_solve",
        "intra": "strict", "inter": "exclusive", "tail": "dropped", "decay_rounding": "bfloat16",
        "sum_rounding": "bfloat16", "pair_form": "factored", "inverse": "half_doubling",
        "final_state": "previous", "initial_state": "decay_skipped",
    }  # fmt: skip
    named = {field.name for field in fields(KdaSemantics)}
    assert others.keys() | fast_reference._FRONT == named
    for name, value in others.items():
        assert not fast_reference.applies(replace(K3, **{name: value})), name


def test_a_mistake_in_the_recurrence_is_still_made():
    inputs = made(tokens=100)
    right = exact.evaluate(K3, GIVEN, inputs)
    wrong = exact.evaluate(replace(K3, prediction="undecayed"), GIVEN, inputs)
    assert relative_l2(wrong["output"], right["output"]) > 1e-3


def seconds(function):
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - began)
    return best


@pytest.mark.parametrize("tokens", [64, 256])
def test_not_slower_than_the_token_loop(tokens):
    inputs = made(tokens=tokens, heads=4, K=64, V=64)
    exact.evaluate_fast(K3, GIVEN, inputs)
    fast = seconds(lambda: exact.evaluate_fast(K3, GIVEN, inputs))
    assert fast < seconds(lambda: reference.evaluate(K3, GIVEN, inputs, EXACT))


def test_fla_agrees():
    naive = pytest.importorskip("fla.ops.kda.naive").naive_recurrent_kda
    x = made(tokens=100)
    names = ("q", "k", "v", "gate", "beta")
    output, state = naive(*(x[n] for n in names), 1.0, x["initial_state"], True)
    # With a scale of one; fla computes in float32 whatever it is given.
    found = exact.evaluate_fast(K3, GIVEN, {**x, "scale": 1.0})
    assert relative_l2(output.double(), found["output"]) < 1e-5
    assert relative_l2(state.double(), found["final_state"]) < 1e-5
