"""The short convolution's cases: states, packed sequences, sequences shorter than the kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING

import torch

from k3check.nouns.capabilities import not_taken
from k3check.nouns.case import Case
from k3check.nouns.lengths import in_multiples
from k3check.nouns.tensors import Tensors, generator

if TYPE_CHECKING:
    from k3check.nouns.recipe import Recipe
    from k3check.operators.conv.semantics import ConvInterface, ConvSemantics


@dataclass(frozen=True)
class ConvSpec:
    """How to make one case's inputs: B, T, C, W; packed lengths instead of a batch; a state.

    ``shut``: sums around -6, where SiLU is small, and nothing is left of it in 1 - sigmoid(-x).
    """

    batch: int = 1
    tokens: int = 37
    channels: int = 24
    width: int = 4
    lengths: tuple[int, ...] = ()
    state: bool = True
    shut: bool = False


def raw(case: Case, _semantics: ConvSemantics, seed: int) -> Tensors:
    """The raw inputs of a case in float64; the state has as many columns as the kernel."""
    spec: ConvSpec = case.spec
    draw = generator(seed, "short_conv", case.name)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=draw, dtype=torch.float64)

    T = sum(spec.lengths) or spec.tokens
    inputs: Tensors = {
        "x": 2 * normal(spec.batch, T, spec.channels),
        "weight": normal(spec.channels, spec.width),
    }
    if spec.state:
        inputs["initial_state"] = 2 * normal(
            len(spec.lengths) or spec.batch, spec.channels, spec.width
        )
    if spec.shut:
        weight = inputs["weight"] = 0.5 + inputs["weight"].abs()
        level = -6 / weight.sum(-1)
        inputs["x"] = (1 + 0.04 * inputs["x"]) * level
        if spec.state:
            inputs["initial_state"] = (1 + 0.04 * inputs["initial_state"]) * level[:, None]
    if spec.lengths:
        inputs["cu_seqlens"] = torch.tensor([0, *accumulate(spec.lengths)], dtype=torch.int64)
    return inputs


def present(
    given: Tensors, _semantics: ConvSemantics, interface: ConvInterface, recipe: Recipe
) -> Tensors:
    """What a callable of some interface gets, rounded to the recipe."""
    inputs = {
        name: value.to(recipe.io) if value.is_floating_point() else value
        for name, value in given.items()
    }
    if "initial_state" in inputs and not interface.extra_column:
        inputs["initial_state"] = inputs["initial_state"][..., 1:].contiguous()
    return inputs


def fit(case: Case, interface: ConvInterface) -> Case | str:
    """The case without a state where the callable takes none."""
    missing = case.needs - interface.supports
    if missing:
        return not_taken(missing)
    spec: ConvSpec = case.spec
    if spec.state and "initial_state" not in interface.supports:
        case = replace(case, spec=replace(spec, state=False))
    return in_multiples(case, interface)


def _case(
    name: str, why: str, sees: str, profile: str = "full", needs: tuple[str, ...] = (),
    **spec: object,
) -> Case:  # fmt: skip
    made = ConvSpec(**spec)  # type: ignore[arg-type] # checked by the dataclass's users
    wanted = {*needs, "packed"} if made.lengths else {*needs}
    slugs = tuple(f"conv.{slug}" for slug in sees.split())
    return Case(name, why, slugs, profile, frozenset(wanted), made)


CASES: tuple[Case, ...] = (
    _case(
        "sequence",
        "a sequence with a state: kernel, alignment, activation, both ends of the state",
        "kernel-flipped oldest-tap-missing current-only no-activation activation-twice sigmoid "
        "relu activation-on-input late early centred first-channel channels-rolled "
        "residual-added state-ignored state-reversed state-shifted final-outputs "
        "final-without-last final-reversed final-initial final-transposed",
        "quick",
    ),
    _case(
        "packed",
        "packed sequences of length 0, 1, 2, 3, 4, 5 and 17: resets and short ones",
        "leak final-short-padded state-of-first state-ignored",
        "quick",
        lengths=(3, 1, 17, 0, 2, 4, 5),
    ),
    _case(
        "shut",
        "sums around -6: a SiLU that is the small difference of two large numbers",
        "sigmoid relu no-activation",
        "quick",
        tokens=9,
        channels=16,
        shut=True,
    ),
    _case(
        "packed-without-state",
        "packed sequences that start from nothing",
        "leak",
        "full",
        lengths=(4, 1, 9),
        state=False,
    ),
    _case(
        "two-tokens",
        "fewer tokens than the kernel is wide: the old state is still part of the new one",
        "final-short-padded final-without-last late state-reversed",
        "full",
        ("initial_state", "final_state"),
        tokens=2,
        batch=3,
    ),
    _case(
        "one-token",
        "a single token with a state: decode",
        "kernel-flipped state-ignored state-reversed state-shifted final-initial",
        "full",
        ("initial_state",),
        tokens=1,
        batch=4,
    ),
    _case(
        "first-prefill",
        "no state, a batch of two",
        "kernel-flipped late early oldest-tap-missing channels-rolled",
        "full",
        batch=2,
        tokens=20,
        state=False,
    ),
    _case(
        "three-channels",
        "as many channels as columns: a transposed state has the right shape",
        "final-transposed",
        "full",
        channels=3,
        tokens=11,
    ),
)
