"""The gated norm's cases: heads of different sizes, small inputs, gains far from one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from k3check.nouns.case import Case
from k3check.nouns.tensors import Tensors, generator

if TYPE_CHECKING:
    from k3check.nouns.recipe import Recipe
    from k3check.operators.norm.semantics import NormInterface, NormSemantics


@dataclass(frozen=True)
class NormSpec:
    """How to make one case's inputs.

    Attributes:
        batch, tokens, heads, dim: B, T, H, D.
        size, offset: of x; ``spread`` multiplies each head by another factor.
        shut: gates around -6, where a sigmoid is 1 / 400 and 1 - sigmoid(-x) has no digit of it.
    """

    batch: int = 1
    tokens: int = 24
    heads: int = 3
    dim: int = 64
    size: float = 1.0
    offset: float = 0.0
    spread: bool = True
    shut: bool = False


def raw(case: Case, _semantics: NormSemantics, seed: int) -> Tensors:
    """The raw inputs of a case in float64."""
    spec: NormSpec = case.spec
    draw = generator(seed, "gated_rms_norm", case.name)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=draw, dtype=torch.float64)

    shape = (spec.batch, spec.tokens, spec.heads, spec.dim)
    x = spec.size * (normal(*shape) + spec.offset)
    if spec.spread:
        x = x * torch.logspace(-1, 1, spec.heads, dtype=torch.float64)[:, None]
        x = x * torch.logspace(-0.5, 0.5, spec.tokens, dtype=torch.float64)[:, None, None]
    gate = normal(*shape)
    gate = 0.5 * gate - 6 if spec.shut else 2 * gate
    return {"x": x, "gate": gate, "gain": (0.6 * normal(spec.dim)).exp()}


def present(
    given: Tensors, semantics: NormSemantics, _interface: NormInterface, recipe: Recipe
) -> Tensors:
    """What a callable gets, rounded to the recipe."""
    return {name: value.to(recipe.io) for name, value in given.items()} | {"eps": semantics.eps}


def _case(
    name: str,
    why: str,
    sees: str,
    profile: str = "full",
    spec: NormSpec | None = None,
    *,
    users_only: bool = False,
) -> Case:
    slugs = tuple(f"gated-norm.{slug}" for slug in sees.split())
    made = spec or NormSpec()
    return Case(name, why, slugs, profile, frozenset(), made, users_only=users_only)


CASES: tuple[Case, ...] = (
    _case(
        "heads",
        "heads and tokens of different sizes: what the norm is taken over, gate and gain",
        "gate-first silu no-gate raw-gate tanh gate-inverted softmax-gate heads-reversed "
        "gate-of-first-head previous-token l2 no-norm all-heads over-tokens gain-dropped "
        "gain-one-plus gain-twice gain-before gain-reversed",
        "quick",
    ),
    _case(
        "small",
        "inputs of size 1e-3: value and place of eps",
        "eps-1e-6 eps-on-sum eps-outside",
        "quick",
        NormSpec(size=1e-3, spread=False),
    ),
    _case(
        "shut",
        "gates around -6: a sigmoid that is the small difference of two large numbers",
        "gate-inverted gate-first",
        "quick",
        NormSpec(tokens=6, heads=2, spread=False, shut=True),
    ),
    _case(
        "many-rows",
        "4100 rows: those that a grid of a fixed size leaves out",
        "silu",
        "full",
        NormSpec(tokens=4100, heads=1, dim=16, spread=False),
        users_only=True,
    ),
    _case(
        "offset",
        "inputs with a common offset: what a LayerNorm would remove",
        "layer-norm",
        "full",
        NormSpec(offset=2.0, spread=False),
    ),
    _case(
        "one-token",
        "a single token, a batch of three",
        "gate-first silu gain-dropped all-heads",
        "full",
        NormSpec(batch=3, tokens=1),
    ),
    _case(
        "released-head",
        "heads of 128, as in the released model",
        "silu gate-first l2",
        "full",
        NormSpec(tokens=8, heads=8, dim=128),
    ),
    _case(
        "odd-width",
        "heads of 50: the part after the last whole block",
        "silu gain-dropped",
        "full",
        NormSpec(tokens=5, dim=50),
    ),
)
