"""How many outputs a callable returned: a tensor is one, whatever its batch is."""

from __future__ import annotations

import pytest
import torch

from k3check.nouns.convention import ConventionBroken
from k3check.nouns.returned import parts
from tests.operators.harness import findings_for, operator_of

TWO = ("output", "final_state")


def counted(result, *names, **how):
    """(found, expected) of a miscount."""
    with pytest.raises(ConventionBroken) as caught:
        parts(result, *names, **how)
    message = caught.value.message
    assert message.code == "K3O-019"
    return message.values["found"], message.values["expected"]


def test_a_batch_of_two_is_one_output():
    assert counted(torch.zeros(2, 3), *TWO) == (1, "2")


def test_too_few_too_many_and_none():
    one = torch.zeros(2)
    assert counted((one,), *TWO) == (1, "2")
    assert counted([one] * 3, *TWO) == (3, "2")
    assert counted(None, *TWO) == (0, "2")
    assert counted((one,), *TWO, more=True) == (1, "at least 2")
    assert counted((), *TWO, optional=1) == (0, "1 to 2")


def test_what_a_convention_lets_through():
    one, two = torch.zeros(1), torch.ones(1)
    assert parts([one, two], *TWO) == (one, two)
    assert parts((one, two, "more"), *TWO, more=True) == (one, two)
    assert parts(one, *TWO, optional=1) == (one, None)


def test_anything_else_is_no_tuple():
    with pytest.raises(TypeError, match="dict"):
        parts({"output": 1, "final_state": 2}, *TWO)


def bare(**given):
    """A tensor of two rows, whatever it is given."""
    return torch.zeros(2, 3, 4)


#: (operator, convention, options) of every form that returns more than one output
SEVERAL = [
    *(("kda_chunk", name, {}) for name in (
        "k3check", "k3check-activated", "fla", "cudnn", "attention-gym", "attention-gym-naive",
        "attention-gym-cumulative", "flashinfer", "hf", "mlx-lm", "tokamax", "vllm")),
    ("short_conv", "k3check", {}),
    ("short_conv", "fla", {}),
    ("short_conv", "causal-conv1d", {}),
    ("gated_mla", "k3check", {}),
    *(("moe_router", name, {}) for name in ("k3check", "vllm", "sglang")),
]  # fmt: skip


@pytest.mark.parametrize(("operator", "convention", "options"), SEVERAL)
def test_a_bare_tensor_is_counted_and_not_unpacked(operator, convention, options):
    first = next(c.name for c in operator_of(operator).cases if not c.needs)
    spec = {"semantics": "kimi-linear"} if convention == "mlx-lm" else {}
    found = findings_for(operator, bare, convention=convention, options=options, only={first},
                         **spec)[first]  # fmt: skip
    assert str(found.outcome) == "fail"
    assert found.hint.code == "K3O-019"
    assert found.hint.values["found"] == 1
    assert "2" in found.hint.values["expected"]


@pytest.mark.parametrize(
    ("operator", "convention"),
    [("kda_recurrent", "tt-metal"), ("gated_mla", "k3check"), ("moe_router", "logits")],
)
def test_by_position_too(operator, convention):
    def target(*given, **named):
        return torch.zeros(2, 3, 4)

    first = next(c.name for c in operator_of(operator).cases if not c.needs)
    found = findings_for(operator, target, convention=convention, only={first})[first]
    assert found.hint.code == "K3O-019"
