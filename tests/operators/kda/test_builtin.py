"""The built-in operators against the reference: switches, chunk sizes, layouts, recipes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
import torch

from k3check.compare.distance import relative_l2
from k3check.nouns.case import Case
from k3check.operators.kda import candidate, cases
from k3check.operators.kda.cases import KdaSpec
from k3check.operators.kda.present import present
from k3check.operators.kda.reference import evaluate
from k3check.operators.kda.semantics import ARTICLE, K3, KIMI_LINEAR, KdaInterface
from tests.operators.harness import DTYPES, assert_passes, findings_for
from tests.operators.kda.exactly import DOUBLE

SPECS = {
    "grouped": KdaSpec(tokens=70, value_heads=4, key_dim=16, value_dim=8, gate="mixed"),
    "slow": KdaSpec(tokens=130, key_dim=16, value_dim=16, gate="slow", keys="correlated"),
    "packed": KdaSpec(lengths=(3, 0, 1, 15, 16, 17, 64), key_dim=8, value_dim=8, gate="medium"),
    "no-state": KdaSpec(tokens=20, batch=2, key_dim=8, value_dim=8, state="zero", scale=0.3),
    "identical": KdaSpec(tokens=64, key_dim=16, value_dim=8, gate="slow", keys="identical"),
}


def both(target, spec, semantics):
    """(what the built-in returns, what the reference does), from raw inputs in float64."""
    interface = KdaInterface()
    raw = cases.raw(Case("drawn", "", spec=spec), semantics, 0)
    inputs = present(raw, semantics, interface, DOUBLE)
    right = evaluate(semantics, interface, inputs)
    given = {name: x for name, x in inputs.items() if x is not None or name == "lower_bound"}
    output, state = target(**given)
    return {"output": output, "final_state": state}, right


def assert_equal(target, spec, semantics=K3):
    got, right = both(target, spec, semantics)
    for name, x in right.items():
        assert got[name].dtype == torch.float64
        assert relative_l2(got[name], x) < 1e-12, name


@pytest.mark.parametrize("semantics", [K3, KIMI_LINEAR])
@pytest.mark.parametrize("name", SPECS)
def test_the_recurrent_builtin(name, semantics):
    assert_equal(candidate.kda_recurrent, SPECS[name], semantics)


@pytest.mark.parametrize("chunk_size", [16, 32, 64, 128])
@pytest.mark.parametrize("ut", [True, False])
@pytest.mark.parametrize("bound", [True, False])
@pytest.mark.parametrize("name", SPECS)
def test_the_chunkwise_builtin_with_both_switches(name, bound, ut, chunk_size):
    target = partial(
        candidate.kda_chunk, chunk_size=chunk_size, use_ut_transform=ut, bind_dplr_to_k=bound
    )
    assert_equal(target, SPECS[name])


def test_the_switches_change_the_computation(monkeypatch):
    """Each of them takes another way, not the same way under another name."""
    inputs = [torch.randn(1, 1, 8, 4), *(torch.randn(1, 1, 8, 4) for _ in range(2))]
    g, beta = -torch.rand(1, 1, 8, 4), torch.rand(1, 1, 8)
    state = torch.zeros(1, 1, 4, 4)
    solved = []
    usual = torch.linalg.solve_triangular

    def counting(*given, **named):
        solved.append(1)
        return usual(*given, **named)

    products = []
    einsum = torch.einsum

    def counted(equation, *given):
        products.append(equation)
        return einsum(equation, *given)

    monkeypatch.setattr(torch.linalg, "solve_triangular", counting)
    monkeypatch.setattr(torch, "einsum", counted)
    seen = {}
    for bound in (True, False):
        for ut in (True, False):
            solved.clear()
            products.clear()
            one = candidate.bound_chunk if bound else candidate.dplr_chunk
            one(*inputs, g, beta, state, ut)
            seen[bound, ut] = (len(solved), len(products))
    assert seen == {
        (True, True): (1, 0),  # both pairs come from one pass, which needs no einsum
        (True, False): (0, 0),
        (False, True): (1, 4),
        (False, False): (0, 4),
    }


def test_settings_reach_the_builtin():
    made = candidate.builtin("kda_chunk")({"flashkda": {"use_ut_transform": False}})
    assert isinstance(made, partial)
    assert made.keywords["use_ut_transform"] is False
    assert made.keywords["bind_dplr_to_k"] is True


def test_three_steps_are_the_recurrence_of_one_token():
    spec = KdaSpec(tokens=1, batch=2, key_dim=8, value_dim=6, gate="medium")
    interface = KdaInterface(gate="alpha", beta="prob", norm="caller")
    raw = cases.raw(Case("drawn", "", spec=spec), ARTICLE, 0)
    inputs = present(raw, ARTICLE, interface, DOUBLE)
    got = candidate.three_step(
        inputs["initial_state"],
        inputs["k"][:, 0],
        inputs["v"][:, 0],
        inputs["gate"][:, 0],
        inputs["beta"][:, 0],
    )
    assert relative_l2(got, evaluate(ARTICLE, interface, inputs)["final_state"]) < 1e-14


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["kda_step", "kda_recurrent"])
@pytest.mark.parametrize("semantics", ["k3", "kimi-linear", "article"])
def test_the_builtin_passes_its_checks(name, dtype, semantics):
    assert_passes(name, dtype=dtype, semantics=semantics, profile="quick")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("chunk_size", [16, 64])
def test_the_chunkwise_builtin_passes_its_checks(chunk_size, dtype):
    assert_passes("kda_chunk", dtype=dtype, options={"chunk_size": chunk_size}, profile="quick")


@pytest.mark.parametrize("ut", [True, False])
@pytest.mark.parametrize("bound", [True, False])
def test_the_switches_pass_the_checks(ut, bound):
    settings = {"flashkda": {"use_ut_transform": ut, "bind_dplr_to_k": bound}}
    assert_passes("kda_chunk", dtype="bfloat16", settings=settings, profile="quick")


def test_a_state_in_bfloat16_is_acceptable_and_named():
    """FlashKDA's own recipe: not the declared one, and no mistake in the formula."""

    def low_state(**given):
        output, state = candidate.kda_recurrent(**given)
        return output, state.bfloat16().float()

    cases_ = {case.name for case in cases.SEQUENCES}
    found = findings_for(
        "kda_recurrent", low_state, convention="k3check", dtype="bfloat16", only=cases_
    )
    outcomes = {str(f.outcome) for f in found.values()}
    assert outcomes <= {"pass", "acceptable", "skipped"}
    told = [n for f in found.values() for n in f.notes if n.code == "K3O-011"]
    assert told
    assert {n.values["recipe"] for n in told} <= {
        "bfloat16 state",
        "operands rounded before products",
    }
    # with float32 inputs and outputs nobody keeps such a state
    strict = findings_for("kda_recurrent", low_state, convention="k3check", profile="quick")
    assert "fail" in {str(f.outcome) for f in strict.values()}


def test_non_contiguous_inputs_are_no_matter():
    spec = replace(SPECS["grouped"], scale=None)

    def target(**given):
        strided = {
            n: x.transpose(-1, -2).contiguous().transpose(-1, -2)
            if isinstance(x, torch.Tensor) and x.dim() > 1
            else x
            for n, x in given.items()
        }
        return candidate.kda_chunk(**strided)

    assert_equal(target, spec)
