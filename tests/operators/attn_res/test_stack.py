"""The walk over a stack: by hand, the counts, and every known mistake named."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from k3check.model import Confidence, Finding, Outcome
from k3check.nouns.recipe import Recipe
from k3check.operators.attn_res import candidate, stack_check
from k3check.operators.attn_res.stack import FAULTS, STACK, small_stack, walk
from tests.operators.harness import findings_for

BLANK = Finding("attn_res/stack-walk", "attnres", "attn_res", "stack-walk", Outcome.PASS, "")


def test_uniform_mixes_by_hand():
    # With queries of zero every mix is a mean. Three layers in blocks of two, updates 1, 2, ... 6.
    stack = small_stack(0, layers=3, block=2)
    ones = torch.ones(5, 32, dtype=torch.float64)
    updates = torch.stack([(n + 1) * ones for n in range(6)])
    flat = stack.__class__(0.5 * ones, updates, 0 * stack.queries, stack.gains, 2)
    seen = walk(STACK, flat)
    # snapshot 0 = 0.5; layer 0: sum 1, mlp mix (0.5 + 1) / 2; sum 1 + 2 = 3
    # layer 1: mix (0.5 + 3) / 2, sum 6; mlp mix (0.5 + 6) / 2, sum 10
    # layer 2: mix (0.5 + 10) / 2, snapshot 1 = 10, sum 5; mlp mix (0.5 + 10 + 5) / 3, sum 11
    # output mix (0.5 + 10 + 11) / 3
    expected = [0.5, 0.75, 1.75, 3.25, 5.25, 15.5 / 3, 21.5 / 3]
    assert [h[0, 0].item() for h in seen.places] == pytest.approx(expected, rel=1e-15)
    assert seen.counts == (2, 2, 2, 2, 3, 3)
    assert seen.snapshots == 2


def test_the_released_counts():
    # spec: (attention, mlp) sources of layers 0, 1, 11, 12, 13, 84, 92; 92 + 93 + 1 mixes
    counts = stack_check.expected_counts(12, 93)
    assert len(counts) == 186
    pairs = [(1, counts[0]), *zip(counts[1:-1:2], counts[2:-1:2], strict=True)]
    expected = {0: (1, 2), 1: (2, 2), 11: (2, 2), 12: (2, 3), 13: (3, 3), 84: (8, 9), 92: (9, 9)}
    assert {i: pairs[i] for i in expected} == expected
    assert counts[-1] == 9


def test_the_reference_walk_has_the_released_counts():
    stack = small_stack(0, layers=93, block=12, dim=4)
    seen = walk(STACK, stack)
    assert list(seen.counts) == stack_check.expected_counts(12, 93)
    assert seen.snapshots == 8


@pytest.mark.parametrize("block", [1, 3, 10, 12, 93, 100])
def test_the_builtin_walk_counts(block):
    assert stack_check.counts_check(block, 93, BLANK).outcome is Outcome.PASS


def test_wrong_counts_are_found():
    counts = stack_check.expected_counts(12, 93)
    assert stack_check.judge_counts(counts[:-1], 12, 93, BLANK).hint.code == "K3O-287"
    found = stack_check.judge_counts([*counts[:30], 9, *counts[31:]], 12, 93, BLANK)
    assert found.hint.values["mix"] == 31


def builtin_stack(stack, sublayer):
    sublayers = [partial(sublayer, number) for number in range(len(stack.updates))]
    return candidate.stack(stack.embedding, sublayers, stack.queries, stack.gains, stack.block)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_the_builtin_walk_is_right(dtype, seed):
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    found = stack_check.walk_check(builtin_stack, Recipe(dtype, wide, wide), seed, BLANK)
    assert found.outcome is Outcome.PASS, found


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.slug)
def test_every_mistake_of_the_walk_is_seen_and_named(fault, dtype):
    def wrong(stack, sublayer):
        seen = walk(fault.applied(STACK), stack.to(torch.float64))
        for number, value in enumerate(seen.handed):
            sublayer(number, value.to(dtype))
        return seen.output.to(dtype)

    found = stack_check.walk_check(wrong, Recipe(io=dtype), 0, BLANK)
    assert found.outcome is Outcome.FAIL
    assert found.metrics["worst_mix"] >= 5 * found.limits["worst_mix"]
    (diagnosis,) = found.diagnoses
    assert (diagnosis.code, diagnosis.confidence) == (fault.code, Confidence.HIGH)


def test_an_unknown_mistake_is_not_named():
    def wrong(stack, sublayer):
        return builtin_stack(stack, sublayer) * 1.5

    found = stack_check.walk_check(wrong, Recipe(), 0, BLANK)
    assert found.outcome is Outcome.FAIL
    assert found.hint.values["place"] == "the output mix"
    assert found.diagnoses == ()


def test_a_sub_layer_that_is_not_called_is_said():
    def wrong(stack, sublayer):
        return builtin_stack(stack, lambda n, x: stack.updates[n] if n == 4 else sublayer(n, x))

    found = stack_check.walk_check(wrong, Recipe(), 0, BLANK)
    assert found.hint.code == "K3O-285"
    assert found.hint.values == {"found": 25, "expected": 26}


def test_not_a_number_is_a_failure():
    def wrong(stack, sublayer):
        return builtin_stack(stack, sublayer) * float("nan")

    assert stack_check.walk_check(wrong, Recipe(), 0, BLANK).outcome is Outcome.FAIL


def test_look_ahead():
    def leaking(stack, sublayer):
        return builtin_stack(stack, lambda n, x: sublayer(n, x + 1e-3 * stack.updates[-1]))

    def deaf(stack, sublayer):
        builtin_stack(stack, sublayer)
        return stack.embedding

    check = stack_check.look_ahead_check
    assert check(builtin_stack, Recipe(), 0, BLANK).outcome is Outcome.PASS
    assert check(leaking, Recipe(), 0, BLANK).hint.code == "K3O-282"
    assert check(deaf, Recipe(), 0, BLANK).hint.code == "K3O-280"


def test_a_mix_that_adds_in_another_order_at_every_call_looks_not_ahead():
    """What differs is a unit in the last place; a leak of that share is none of ours to see."""
    calls = []

    def atomics(stack, sublayer):
        calls.append(1)
        grown = 1 + len(calls) % 2 * torch.finfo(torch.float32).eps
        return builtin_stack(stack, lambda n, x: sublayer(n, x * grown))

    found = stack_check.look_ahead_check(atomics, Recipe(), 0, BLANK)
    assert found.outcome is Outcome.ACCEPTABLE
    assert [note.code for note in found.notes] == ["K3O-711"]


def test_a_small_leak_is_found_in_low_precision():
    def leaking(stack, sublayer):
        return builtin_stack(stack, lambda n, x: sublayer(n, x + 2e-3 * stack.updates[-1]))

    recipe = Recipe(io=torch.bfloat16)
    found = stack_check.look_ahead_check(leaking, recipe, 0, BLANK)
    assert found.outcome is Outcome.FAIL
    assert found.hint.code == "K3O-282"


def test_a_poisoned_block_must_not_be_handed_on():
    def poisons(stack, sublayer):
        bad = 0 if stack.updates[-1].abs().max() < 100 else float("nan")
        return builtin_stack(stack, lambda n, x: sublayer(n, x + bad))

    assert stack_check.look_ahead_check(poisons, Recipe(), 0, BLANK).hint.code == "K3O-282"


def test_a_users_own_stack_is_walked():
    def stack(hidden, sublayers, queries, gains, block_size, eps):
        return candidate.stack(hidden, sublayers, queries, gains, block_size, eps)

    found = findings_for("attn_res", stack, dtype="bfloat16")
    assert str(found["stack-walk"].outcome) == "pass"
    assert str(found["unit"].outcome) == "skipped"


def test_a_users_stack_with_a_mistake_fails():
    def stack(hidden, sublayers, queries, gains, block_size, eps):
        return candidate.stack(hidden, sublayers, queries, gains, 2 * block_size, eps)

    assert str(findings_for("attn_res", stack)["stack-walk"].outcome) == "fail"
