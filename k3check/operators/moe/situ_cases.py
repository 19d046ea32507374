"""The activation's cases: at ordinary amplitudes SiTU hardly differs from what it is taken for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from k3check.nouns.case import Case
from k3check.nouns.tensors import Tensors, generator

if TYPE_CHECKING:
    from k3check.nouns.recipe import Recipe
    from k3check.operators.moe.semantics import SituInterface, SituSemantics


@dataclass(frozen=True)
class SituSpec:
    """How to make one case's inputs: gate and up are normal with these standard deviations.

    ``shut``: gates around -6 instead, where nothing is left of a sigmoid in 1 - sigmoid(-x).
    """

    tokens: int = 48
    width: int = 32
    gate: float = 6.0
    up: float = 40.0
    beta: float = 4.0
    linear_beta: float | None = 25.0
    shut: bool = False


def raw(case: Case, _semantics: SituSemantics, seed: int) -> Tensors:
    """The raw inputs of a case in float64."""
    spec: SituSpec = case.spec
    draw = generator(seed, "situ_glu", case.name)
    shape = (spec.tokens, spec.width)
    gate, up = (torch.randn(shape, generator=draw, dtype=torch.float64) for _ in range(2))
    return {
        "gate": 0.5 * gate - 6 if spec.shut else spec.gate * gate,
        "up": spec.up * up,
        "beta": spec.beta,
        "linear_beta": spec.linear_beta,
    }


def present(
    given: Tensors, _semantics: SituSemantics, interface: SituInterface, recipe: Recipe
) -> Tensors:
    """What a callable of some interface gets, rounded to the recipe."""
    inputs = dict(given)
    gate, up = (inputs.pop(name).to(recipe.io) for name in ("gate", "up"))
    if interface.packed:
        return inputs | {"x": torch.cat([gate, up], dim=-1)}
    return inputs | {"gate": gate, "up": up}


def _case(
    name: str,
    why: str,
    sees: str,
    profile: str = "full",
    spec: SituSpec | None = None,
    *,
    users_only: bool = False,
) -> Case:
    spec = spec or SituSpec()
    needs = set()
    if spec.linear_beta is None:
        needs.add("uncapped")
    if (spec.beta, spec.linear_beta or 25.0) != (4.0, 25.0):
        needs.add("betas")
    slugs = tuple(f"situ.{s}" for s in sees.split())
    return Case(name, why, slugs, profile, frozenset(needs), spec, users_only=users_only)


CASES: tuple[Case, ...] = (
    _case(
        "amplitudes",
        "gates beyond 6 and ups beyond 30: both bounds at work",
        "silu clamped-gate capped-sigmoid no-sigmoid gelu relu gate-unscaled gate-no-division "
        "quick-gelu up-uncapped up-clamped up-gate-beta up-unscaled up-no-division "
        "up-dropped swapped-halves interleaved-halves betas-swapped betas-unread "
        "swiglu-clamped",
        "quick",
    ),
    _case(
        "unit",
        "ordinary amplitudes: what still shows there",
        "swapped-halves interleaved-halves betas-unread up-plus-one up-unscaled gate-unscaled "
        "no-sigmoid swiglu-clamped relu up-dropped",
        "quick",
        SituSpec(gate=1.0, up=1.0),
    ),
    _case(
        "huge",
        "gates of 400 and ups of 2500: a tanh that overflows",
        "unsafe-tanh up-uncapped silu",
        "quick",
        SituSpec(gate=400.0, up=2500.0),
    ),
    _case(
        "shut",
        "gates around -6: a sigmoid that is the small difference of two large numbers",
        "no-sigmoid relu",
        "full",
        SituSpec(tokens=6, shut=True),
    ),
    _case(
        "many-rows",
        "4100 rows: those that a grid of a fixed size leaves out",
        "silu",
        "full",
        SituSpec(tokens=4100, width=8),
        users_only=True,
    ),
    _case(
        "uncapped",
        "linear_beta = None: the up branch stays as it is",
        "none-is-released",
        "full",
        SituSpec(linear_beta=None),
    ),
    _case(
        "other-bounds",
        "bounds 2 and 7: are the arguments read?",
        "betas-released tanh-of-silu",
        "full",
        SituSpec(beta=2.0, linear_beta=7.0, gate=4.0, up=12.0),
    ),
    _case(
        "odd-width",
        "a width of 5 and one token",
        "swapped-halves interleaved-halves",
        "full",
        SituSpec(tokens=1, width=5),
    ),
    _case(
        "shared-width",
        "6144 wide, as the shared experts",
        "silu up-uncapped",
        "full",
        SituSpec(tokens=2, width=6144),
    ),
)
