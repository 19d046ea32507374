"""Every check that needs no reference has a wrong operator that it catches.

The wrong ones are built around the built-in token recurrence; each makes one mistake that its
check is there for. The right operator passes all of them, in every recipe.
"""

from __future__ import annotations

import pytest
import torch

from k3check.operators.base import Arithmetic, Recipe
from k3check.operators.kda.candidate import kda_chunk, kda_recurrent
from k3check.operators.kda.properties import SEQUENCE_PROPERTIES
from k3check.report.model import Outcome
from tests.operators.harness import findings_for, operator_of

NAMES = [item.name for item in SEQUENCE_PROPERTIES]


def state_one_token_early(**given):
    """Returns the state before the last token."""
    output, state = kda_recurrent(**given)
    if given.get("cu_seqlens") is None and given["k"].shape[1] > 1:
        short = {n: x[:, :-1] if n in ("q", "k", "v", "gate", "beta") else x
                 for n, x in given.items()}  # fmt: skip
        state = kda_recurrent(**short)[1]
    return output, state


def sees_the_next_token(**given):
    """Adds a thousandth of the next token's value."""
    output, state = kda_recurrent(**given)
    output = output.clone()
    output[:, :-1] += 1e-3 * given["v"][:, 1:]
    return output, state


def packs_without_resets(**given):
    """One recurrence over all packed sequences, from the first one's state."""
    offsets = given.pop("cu_seqlens", None)
    if offsets is None:
        return kda_recurrent(**given)
    count = len(offsets) - 1
    given["initial_state"] = given["initial_state"][:1]
    output, state = kda_recurrent(**given)
    return output, state.expand(count, *state.shape[1:]).clone()


def uses_the_first_heads_beta(**given):
    """Reads beta of head 0 for every head."""
    return kda_recurrent(**{**given, "beta": given["beta"][..., :1].expand_as(given["beta"])})


def clamps_values(**given):
    """Cuts v at one."""
    return kda_recurrent(**{**given, "v": given["v"].clamp(-1, 1)})


def writes_without_beta(**given):
    """beta is one wherever its logit is very negative: an underflow taken for "not given"."""
    beta = torch.where(given["beta"] < -100, 20.0, given["beta"].double()).to(given["beta"].dtype)
    return kda_recurrent(**{**given, "beta": beta})


class Races:
    """Another rounding of one token at every other call."""

    def __init__(self):
        self.calls = 0

    def __call__(self, **given):
        output, state = kda_recurrent(**given)
        self.calls += 1
        if self.calls % 2 and output.shape[1] > 100:
            output = output.clone()
            output[:, 100] *= 1 + 2 * torch.finfo(output.dtype).eps
        return output, state


def ignores_strides(**given):
    """Reads q as if it were contiguous from where its memory begins."""
    q = given["q"]
    flat = torch.as_strided(q, (q.numel(),), (1,), q.storage_offset())
    return kda_recurrent(**{**given, "q": flat.reshape(q.shape)})


def leaves_empty_states_unwritten(**given):
    """A sequence without tokens returns early; its state is whatever stood there."""
    output, state = kda_recurrent(**given)
    if given.get("cu_seqlens") is not None:
        empty = given["cu_seqlens"].diff() == 0
        state = state.clone()
        state[empty] = 7.0
    return output, state


def forgets_the_row_after_a_chunk(**given):
    """The first row of a partial chunk is not computed."""
    output, state = kda_recurrent(**given)
    if output.shape[1] % 64 == 1 and output.shape[1] > 1:
        output = output.clone()
        output[:, -1] = 0
    return output, state


WRONG = {
    "split": state_one_token_early,
    "causal": sees_the_next_token,
    "packed-separate": packs_without_resets,
    "head-order": uses_the_first_heads_beta,
    "linear": clamps_values,
    "beta-zero": writes_without_beta,
    "repeat": Races(),
    "strided": ignores_strides,
    "empty": leaves_empty_states_unwritten,
    "chunk-edges": forgets_the_row_after_a_chunk,
}


def test_every_property_has_a_wrong_operator():
    assert set(WRONG) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_operator_is_caught(name):
    found = findings_for("kda_recurrent", WRONG[name], convention="k3check", only={name})[name]
    assert found.outcome is Outcome.FAIL
    code = next(f"K3O-{700 + i}" for i, item in enumerate(SEQUENCE_PROPERTIES) if item.name == name)
    assert found.hint.code == code


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
@pytest.mark.parametrize("target", [kda_recurrent, kda_chunk])
def test_a_right_operator_is_left_alone(target, dtype):
    operator = "kda_chunk" if target is kda_chunk else "kda_recurrent"
    found = findings_for(operator, target, convention="k3check", dtype=dtype, only=set(NAMES))
    assert {case: str(f.outcome) for case, f in found.items()} == dict.fromkeys(NAMES, "pass")


def test_tf32_is_legal_on_an_accelerator_alone():
    legal = operator_of("kda_chunk").legal
    assert list(legal(Recipe(device=torch.device("cuda")))) == ["TF32 products"]
    assert legal(Recipe()) == {}


def test_a_small_factor_is_no_rounding_of_a_cpu():
    def grown(**given):
        output, state = kda_chunk(**given)
        return output * 1.0003, state

    found = findings_for("kda_chunk", grown, convention="k3check", only={"fast-gates"})
    assert found["fast-gates"].outcome is Outcome.FAIL


def test_tf32_cuts_thirteen_bits():
    cut = Arithmetic(torch.float32, "tf32", torch.float32, torch.float32).operands
    one = torch.tensor([1.0, 1.0 + 2.0**-10, 1.0 + 2.0**-10 + 2.0**-11, -1.0 - 2.0**-11])
    assert cut(one).tolist() == [1.0, 1.0 + 2.0**-10, 1.0 + 2.0**-10, -1.0]
