"""The reference: by hand, by facts of algebra, and the token loop against the chunkwise form."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from k3check.compare.distance import relative_l2
from k3check.nouns.case import Case
from k3check.operators.kda import cases
from k3check.operators.kda.cases import KdaSpec
from k3check.operators.kda.present import present
from k3check.operators.kda.reference import evaluate
from k3check.operators.kda.semantics import ARTICLE, K3, KIMI_LINEAR, KdaInterface
from k3check.operators.kda.semantics import SEMANTICS as NAMED
from tests.operators.kda.exactly import DOUBLE

#: activated inputs: g, beta and normalised keys as they are
GIVEN = KdaInterface(gate="ln", beta="prob", norm="caller")
FAMILIES = ("fast", "slow", "saturated", "mixed", "very_fast", "medium")


def f64(*values):
    return torch.tensor(values, dtype=torch.float64)


def tiny(q, k, v, alpha, beta, state=None):
    """One head, K = V = 1, from lists over tokens."""
    T = len(k)
    inputs = {
        "q": f64(*q).reshape(1, T, 1, 1),
        "k": f64(*k).reshape(1, T, 1, 1),
        "v": f64(*v).reshape(1, T, 1, 1),
        "gate": f64(*alpha).log().reshape(1, T, 1, 1),
        "beta": f64(*beta).reshape(1, T, 1),
    }
    if state is not None:
        inputs["initial_state"] = f64(state).reshape(1, 1, 1, 1)
    return inputs


# --- by hand --------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [0, 1, 2, 16])
def test_two_tokens_of_one_channel_by_hand(chunk):
    # S = 8. Token 0: decay 1/2 -> 4; p = 1 * 4; d = 1/2 (6 - 4) = 1; S = 4 + 1 = 5; o = 2 * 5.
    # Token 1: decay 1/5 -> 1; p = -1 * 1; d = 1/4 (3 + 1) = 1; S = 1 - 1 = 0; then o = 7 * 0.
    inputs = tiny([2, 7], [1, -1], [6, 3], [0.5, 0.2], [0.5, 0.25], state=8.0)
    got = evaluate(replace(K3, chunk=chunk), GIVEN, inputs)
    assert got["output"].flatten().tolist() == pytest.approx([10.0, 0.0], abs=1e-14)
    assert got["final_state"].item() == pytest.approx(0.0, abs=1e-14)


def two_channels():
    """K = V = 2, one token: S = [[1, 2], [3, 4]], k = (0.6, 0.8), v = (5, -5), q = (1, 2)."""
    return {
        "q": f64(1, 2).reshape(1, 1, 1, 2),
        "k": f64(0.6, 0.8).reshape(1, 1, 1, 2),
        "v": f64(5, -5).reshape(1, 1, 1, 2),
        "gate": f64(0.5, 0.25).log().reshape(1, 1, 1, 2),
        "beta": f64(0.5).reshape(1, 1, 1),
        "initial_state": f64(1, 2, 3, 4).reshape(1, 1, 2, 2),
    }


@pytest.mark.parametrize("chunk", [0, 1, 16])
def test_one_token_of_two_channels_by_hand(chunk):
    # decayed rows: [0.5, 1], [0.75, 1]; p = 0.6 * row 0 + 0.8 * row 1 = (0.9, 1.4)
    # d = (5 - 0.9, -5 - 1.4) / 2 = (2.05, -3.2); S = decayed + k d^T
    state = [0.5 + 0.6 * 2.05, 1 - 0.6 * 3.2, 0.75 + 0.8 * 2.05, 1 - 0.8 * 3.2]
    scale = 1 / math.sqrt(2)
    output = [scale * (state[0] + 2 * state[2]), scale * (state[1] + 2 * state[3])]
    got = evaluate(replace(K3, chunk=chunk), GIVEN, two_channels())
    assert got["final_state"].flatten().tolist() == pytest.approx(state, rel=1e-14)
    assert got["output"].flatten().tolist() == pytest.approx(output, rel=1e-14)


def test_the_scale_is_on_the_readout_alone():
    usual, given = (
        evaluate(K3, GIVEN, {**two_channels(), "scale": scale}) for scale in (None, 3.0)
    )
    assert torch.equal(usual["final_state"], given["final_state"])
    assert torch.allclose(given["output"], usual["output"] * 3 * math.sqrt(2), rtol=1e-14)


def test_from_raw_inputs_by_hand():
    """Norm, gate, beta and scale of K3, worked out with ``math`` alone. K = V = 1."""
    q, k, v, x, b, rate, bias, state = 0.003, -0.002, 1.5, 0.4, -0.3, 0.7, 0.1, 2.0
    inputs = {
        "q": f64(q).reshape(1, 1, 1, 1),
        "k": f64(k).reshape(1, 1, 1, 1),
        "v": f64(v).reshape(1, 1, 1, 1),
        "gate": f64(x).reshape(1, 1, 1, 1),
        "beta": f64(b).reshape(1, 1, 1),
        "A_log": f64(rate),
        "dt_bias": f64(bias).reshape(1, 1),
        "initial_state": f64(state).reshape(1, 1, 1, 1),
    }
    qn, kn = q / math.sqrt(q * q + 1e-6), k / math.sqrt(k * k + 1e-6)
    beta = 1 / (1 + math.exp(-b))
    z = math.exp(rate) * (x + bias)
    for semantics, g in (
        (K3, -5 / (1 + math.exp(-z))),
        (KIMI_LINEAR, -math.exp(rate) * math.log1p(math.exp(x + bias))),
    ):
        decayed = math.exp(g) * state
        new = decayed + kn * beta * (v - kn * decayed)
        got = evaluate(semantics, KdaInterface(), inputs)
        assert got["final_state"].item() == pytest.approx(new, rel=1e-14)
        assert got["output"].item() == pytest.approx(qn * new, rel=1e-14)


# --- facts of algebra -----------------------------------------------------------------------------


def drawn(spec, semantics=K3, interface=GIVEN, seed=0):
    raw = cases.raw(Case("drawn", "", spec=spec), semantics, seed)
    return present(raw, semantics, interface, DOUBLE)


@pytest.mark.parametrize("chunk", [0, 16, 64])
def test_orthonormal_keys_without_decay_recall_exactly(chunk):
    """g = 0, beta = 1, S = 0: reading with key i returns v_i, however many were written since."""
    K, V = 24, 10
    basis = torch.linalg.qr(torch.randn(K, K, dtype=torch.float64, generator=gen(1))).Q
    values = torch.randn(1, K, 1, V, dtype=torch.float64, generator=gen(2))
    for reader in (0, 7, K - 1):
        inputs = {
            "q": basis[reader].expand(1, K, 1, K),
            "k": basis.reshape(1, K, 1, K),
            "v": values,
            "gate": torch.zeros(1, K, 1, K, dtype=torch.float64),
            "beta": torch.ones(1, K, 1, dtype=torch.float64),
            "scale": 1.0,
        }
        output = evaluate(replace(K3, chunk=chunk), GIVEN, inputs)["output"][0, :, 0]
        assert torch.allclose(output[:reader], torch.zeros(reader, V).double(), atol=1e-14)
        expected = values[0, reader, 0].expand(K - reader, V)
        assert torch.allclose(output[reader:], expected, atol=1e-14)


def gen(seed):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("chunk", [0, 16])
def test_beta_of_zero_is_pure_decay(chunk):
    inputs = drawn(KdaSpec(tokens=40, key_dim=8, value_dim=6, gate="medium"))
    inputs["beta"] = torch.zeros_like(inputs["beta"])
    got = evaluate(replace(K3, chunk=chunk), GIVEN, inputs)
    total = inputs["gate"].cumsum(1)  # [B, T, H, K]
    state = inputs["initial_state"]
    expected = torch.einsum("bthk,bthk,bhkv->bthv", inputs["q"], total.exp(), state) / math.sqrt(8)
    assert relative_l2(got["output"], expected) < 1e-14
    left = total[:, -1].exp().unsqueeze(-1) * state
    assert relative_l2(got["final_state"], left) < 1e-14


@pytest.mark.parametrize("chunk", [0, 16, 64])
def test_the_last_of_identical_keys_overwrites_the_others(chunk):
    """beta = 1 and no decay: what is stored under a key is the last value, whatever came before."""
    T, K, V = 37, 8, 5
    key = torch.nn.functional.normalize(
        torch.randn(K, dtype=torch.float64, generator=gen(3)), dim=0
    )
    values = torch.randn(1, T, 1, V, dtype=torch.float64, generator=gen(4))
    inputs = {
        "q": key.expand(1, T, 1, K),
        "k": key.expand(1, T, 1, K),
        "v": values,
        "gate": torch.zeros(1, T, 1, K, dtype=torch.float64),
        "beta": torch.ones(1, T, 1, dtype=torch.float64),
        "scale": 1.0,
        "initial_state": torch.randn(1, 1, K, V, dtype=torch.float64, generator=gen(5)),
    }
    got = evaluate(replace(K3, chunk=chunk), GIVEN, inputs)
    assert relative_l2(got["output"], values) < 1e-13
    assert relative_l2(key @ got["final_state"][0, 0], values[0, -1, 0]) < 1e-13


def test_a_decay_of_zero_forgets_everything():
    """alpha = 0, a log decay of minus infinity, in the token loop."""
    inputs = drawn(KdaSpec(tokens=5, key_dim=4, value_dim=4))
    inputs["gate"][:, 2] = -math.inf
    after = {n: x[:, 2:] for n, x in inputs.items() if n != "initial_state"}
    whole, rest = evaluate(K3, GIVEN, inputs), evaluate(K3, GIVEN, after)
    assert torch.equal(whole["output"][:, 2:], rest["output"])
    assert torch.equal(whole["final_state"], rest["final_state"])


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), factor=st.floats(-3, 3), chunk=st.sampled_from([0, 16]))
def test_outputs_are_linear_in_values_and_state_together(seed, factor, chunk):
    spec = KdaSpec(tokens=21, key_dim=6, value_dim=4, gate="medium")
    one, other = (drawn(spec, seed=s) for s in (seed, seed + 1))
    two = {**one, "v": other["v"], "initial_state": other["initial_state"]}
    mixed = {**one, **{n: one[n] + factor * two[n] for n in ("v", "initial_state")}}
    semantics = replace(K3, chunk=chunk)
    a, b, c = (evaluate(semantics, GIVEN, x) for x in (one, two, mixed))
    for name in a:
        assert torch.allclose(c[name], a[name] + factor * b[name], atol=1e-12)


def test_columns_of_the_state_are_independent():
    inputs = drawn(KdaSpec(tokens=33, key_dim=8, value_dim=6, gate="medium"))
    some = [4, 1]
    part = {**inputs, "v": inputs["v"][..., some]}
    part["initial_state"] = inputs["initial_state"][..., some]
    whole, few = (evaluate(K3, GIVEN, x) for x in (inputs, part))
    assert torch.allclose(whole["output"][..., some], few["output"], atol=1e-14)
    assert torch.allclose(whole["final_state"][..., some], few["final_state"], atol=1e-14)


def test_value_heads_read_the_query_head_of_their_group():
    inputs = drawn(KdaSpec(tokens=9, heads=2, value_heads=6, key_dim=8, value_dim=4))
    whole = evaluate(K3, GIVEN, inputs)["output"]
    for j in range(6):
        one = {
            "q": inputs["q"][:, :, j // 3, None],
            "k": inputs["k"][:, :, j // 3, None],
            "v": inputs["v"][:, :, j, None],
            "gate": inputs["gate"][:, :, j, None],
            "beta": inputs["beta"][:, :, j, None],
            "initial_state": inputs["initial_state"][:, j, None],
        }
        assert torch.allclose(evaluate(K3, GIVEN, one)["output"][:, :, 0], whole[:, :, j])


# --- token loop against chunks --------------------------------------------------------------------


def assert_same(semantics, inputs, chunk, interface=GIVEN):
    loop, chunks = (evaluate(replace(semantics, chunk=c), interface, inputs) for c in (0, chunk))
    for name in loop:
        assert torch.isfinite(loop[name]).all()
        assert relative_l2(chunks[name], loop[name]) < 1e-12, name


@pytest.mark.parametrize("chunk", [16, 32, 64, 128])
@pytest.mark.parametrize("gate", FAMILIES)
@pytest.mark.parametrize("keys", ["iid", "correlated", "identical"])
def test_chunks_equal_the_token_loop(gate, keys, chunk):
    spec = KdaSpec(
        tokens=150, value_heads=4, key_dim=24, value_dim=16, gate=gate, keys=keys, beta="high"
    )
    assert_same(K3, drawn(spec), chunk)


@pytest.mark.parametrize("chunk", [16, 32, 64, 128])
@pytest.mark.parametrize("edge", [-1, 0, 1])
@pytest.mark.parametrize("times", [1, 2])
def test_chunks_equal_the_token_loop_around_their_edges(chunk, edge, times):
    spec = KdaSpec(tokens=times * chunk + edge, key_dim=8, value_dim=12, gate="slow")
    assert_same(K3, drawn(spec), chunk)


@pytest.mark.parametrize("chunk", [16, 64])
@pytest.mark.parametrize("name", list(NAMED))
def test_chunks_equal_the_token_loop_from_raw_inputs(name, chunk):
    """Softplus gates with rates of exp(3) forget by hundreds of nats within a chunk."""
    semantics = NAMED[name]
    spec = KdaSpec(tokens=2 * chunk + 5, key_dim=16, value_dim=8, gate="very_fast")
    raw = KdaInterface()
    assert_same(semantics, drawn(spec, semantics, raw), chunk, raw)


@pytest.mark.parametrize("chunk", [16, 32, 64])
def test_packed_chunks_equal_the_token_loop(chunk):
    lengths = (3, 0, 1, chunk - 1, chunk, chunk + 1, 0)
    spec = KdaSpec(lengths=lengths, key_dim=8, value_dim=6, gate="medium")
    assert_same(K3, drawn(spec), chunk)


@pytest.mark.parametrize("chunk", [0, 16])
def test_packed_sequences_are_what_each_is_alone(chunk):
    lengths = (5, 0, 1, 15, 16, 17)
    inputs = drawn(KdaSpec(lengths=lengths, key_dim=8, value_dim=6, gate="medium"))
    semantics = replace(K3, chunk=chunk)
    whole = evaluate(semantics, GIVEN, inputs)
    end = 0
    for n, length in enumerate(lengths):
        rows = slice(end, end + length)
        end += length
        state = inputs["initial_state"][n : n + 1]
        if not length:
            assert torch.equal(whole["final_state"][n : n + 1], state)
            continue
        alone = {x: inputs[x][:, rows] for x in ("q", "k", "v", "gate", "beta")}
        one = evaluate(semantics, GIVEN, {**alone, "initial_state": state})
        assert torch.allclose(whole["output"][:, rows], one["output"], atol=1e-14)
        assert torch.allclose(whole["final_state"][n : n + 1], one["final_state"], atol=1e-14)


@settings(max_examples=25, deadline=None)
@given(
    tokens=st.integers(1, 70),
    chunk=st.integers(1, 40),
    K=st.integers(1, 9),
    V=st.integers(1, 9),
    times=st.integers(1, 3),
    gate=st.sampled_from(FAMILIES),
    seed=st.integers(0, 10**6),
)
def test_chunks_of_any_size_equal_the_token_loop(tokens, chunk, K, V, times, gate, seed):
    spec = KdaSpec(tokens=tokens, batch=2, value_heads=2 * times, key_dim=K, value_dim=V, gate=gate)
    assert_same(K3, drawn(spec, seed=seed), chunk)


@pytest.mark.parametrize("cut", [1, 15, 16, 17, 40])
@pytest.mark.parametrize("chunk", [0, 16])
def test_a_sequence_can_be_cut_anywhere(cut, chunk):
    inputs = drawn(KdaSpec(tokens=41, key_dim=8, value_dim=6, gate="medium"))
    semantics = replace(K3, chunk=chunk)
    whole = evaluate(semantics, GIVEN, inputs)
    state, parts = inputs["initial_state"], []
    for rows in (slice(0, cut), slice(cut, 41)):
        part = {x: inputs[x][:, rows] for x in ("q", "k", "v", "gate", "beta")}
        got = evaluate(semantics, GIVEN, {**part, "initial_state": state})
        state = got["final_state"]
        parts.append(got["output"])
    assert relative_l2(torch.cat(parts, 1), whole["output"]) < 1e-13
    assert relative_l2(state, whole["final_state"]) < 1e-13


# --- forms of the gate ----------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["raw", "ln", "log2", "alpha", "cumulative_log2"])
@pytest.mark.parametrize("semantics", [K3, KIMI_LINEAR, ARTICLE])
def test_every_form_of_the_gate_gives_one_result(form, semantics):
    spec = KdaSpec(tokens=50, key_dim=8, value_dim=8, gate="medium")
    raw = KdaInterface()
    other = replace(raw, gate=form, chunk=16 if form == "cumulative_log2" else 0)
    one, two = (evaluate(semantics, i, drawn(spec, semantics, i))["output"] for i in (raw, other))
    assert relative_l2(two, one) < 1e-12
