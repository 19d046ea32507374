"""A state that is kept in bfloat16: handing it over costs a rounding, and that is no mistake."""

from __future__ import annotations

import pytest
import torch

from k3check.model import Outcome
from k3check.operators.kda.candidate import kda_chunk, kda_recurrent
from tests.operators.harness import plan_for

TARGETS = {"kda_recurrent": kda_recurrent, "kda_chunk": kda_chunk}


def keeping(name, dtype, *, also_without=False):
    """The right operator; its state has the dtype of the initial one, or of its own choice."""

    def target(**given):
        output, state = TARGETS[name](**given)
        told = given.get("initial_state") is not None
        return output, state.to(dtype if told or also_without else torch.float32)

    return target


def findings(name, target, dtype="float32", only=None, **spec):
    planned = plan_for(
        name, target, convention="k3check", dtype=dtype, state_dtype="bfloat16", **spec
    )
    return {c.id: c.run() for c in planned if only is None or c.case in only}


@pytest.mark.parametrize("also_without", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", TARGETS)
def test_a_right_operator_is_left_alone(name, dtype, also_without):
    """With no initial state it may not know that its state is to be bfloat16."""
    target = keeping(name, torch.bfloat16, also_without=also_without)
    for seed in (0, 1):
        found = findings(name, target, dtype, seed=seed)
        bad = {i: (f.hint, f.metrics, f.limits) for i, f in found.items() if f.outcome.is_failure}
        assert not bad


@pytest.mark.parametrize("name", TARGETS)
def test_a_state_of_another_dtype_is_still_told(name):
    found = findings(name, keeping(name, torch.float32), only={"fast-gates", "fast-zero-state"})
    assert found[f"{name}/fast-gates"].hint.code == "K3O-003"
    assert found[f"{name}/fast-zero-state"].outcome is Outcome.PASS
    halves = findings(
        name, keeping(name, torch.float16, also_without=True), only={"fast-zero-state"}
    )
    assert halves[f"{name}/fast-zero-state"].hint.code == "K3O-003"


@pytest.mark.parametrize("name", TARGETS)
def test_a_state_that_is_wrong_by_more_than_its_rounding_is_caught(name):
    def one_token_early(**given):
        output, state = TARGETS[name](**given)
        if given.get("cu_seqlens") is None and given["k"].shape[1] > 1:
            short = {n: x[:, :-1] if n in ("q", "k", "v", "gate", "beta") else x
                     for n, x in given.items()}  # fmt: skip
            state = TARGETS[name](**short)[1]
        return output, state.bfloat16()

    found = findings(name, one_token_early, only={"split", name})
    assert found[f"{name}/split"].outcome is Outcome.FAIL
    assert found[f"cache/{name}"].outcome is Outcome.FAIL
