"""Which calls are the first with their shape, and that they are told apart."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from k3check.nouns.first_calls import FirstCalls
from k3check.nouns.shapes import signature


def candidate(device="cuda", *, builtin=False, name="kda_chunk"):
    return SimpleNamespace(
        operator=SimpleNamespace(name=name),
        convention="fla",
        builtin=builtin,
        recipe=SimpleNamespace(device=torch.device(device)),
    )


def inputs(tokens=7, heads=2, dim=8, dtype=torch.float32, **more):
    return {"q": torch.zeros(1, tokens, heads, dim, dtype=dtype), **more}


@pytest.fixture
def told():
    return []


@pytest.fixture
def calls(told):
    return FirstCalls(lambda: told.append("begins"), lambda: told.append("ended"))


def test_one_first_call_a_shape(calls, told):
    for tokens in (7, 7, 500):  # tokens are no part of a shape
        calls.begin(candidate(), inputs(tokens))()
    assert told == ["begins", "ended"]
    assert len(calls.taken()) == 1
    assert calls.taken() == []


@pytest.mark.parametrize(
    "other",
    [{"heads": 4}, {"dim": 16}, {"dtype": torch.bfloat16}, {"cu_seqlens": torch.arange(3)}],
    ids=str,
)
def test_another_shape_is_another_first_call(calls, told, other):
    for given in (inputs(), inputs(**other), inputs()):
        calls.begin(candidate(), given)()
    assert told == ["begins", "ended"] * 2


def test_each_operator_has_its_own(calls):
    for name in ("kda_chunk", "kda_step"):
        calls.begin(candidate(name=name), inputs())()
    assert len(calls.taken()) == 2


@pytest.mark.parametrize("given", [candidate("cpu"), candidate(builtin=True)])
def test_nothing_is_compiled(calls, told, given):
    calls.begin(given, inputs())()
    assert told == []


def test_batch_and_tokens_are_no_part_of_a_signature():
    one, two = ({"x": torch.zeros(b, t, 4, 8), "A": torch.zeros(4)} for b, t in ((1, 9), (3, 2)))
    assert signature(one) == signature(two)
