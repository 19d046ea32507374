"""The expert layer's cases: routing is given, so that one flipped expert hides nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch

from k3check.nouns.case import Case
from k3check.nouns.lengths import in_multiples
from k3check.nouns.tensors import Tensors, generator

if TYPE_CHECKING:
    from k3check.nouns.recipe import Recipe
    from k3check.operators.moe.semantics import LatentInterface, LatentSemantics


@dataclass(frozen=True)
class LatentSpec:
    """How to make one case's inputs.

    Attributes:
        tokens, dim, latent, inter, shared: T, D, L, I, S.
        experts, top_k: E, k.
        size: RMS of the latent that goes into the norm, roughly: small ones show eps.
        load: ``even``, or ``crowded``: half of the tokens' first choice is one expert, and some
            experts get none.
        opposed: the experts resemble each other, and the second half of them gives the negative of
            the first: the sum is small, the sums on the way to it are not.
    """

    tokens: int = 16
    dim: int = 40
    latent: int = 24
    inter: int = 16
    shared: int = 20
    experts: int = 8
    top_k: int = 3
    size: float = 1.0
    load: Literal["even", "crowded"] = "even"
    opposed: bool = False


def raw(case: Case, _semantics: LatentSemantics, seed: int) -> Tensors:
    """The raw inputs of a case in float64."""
    spec: LatentSpec = case.spec
    draw = generator(seed, "latent_moe", case.name)
    T, D, L, I, S = spec.tokens, spec.dim, spec.latent, spec.inter, spec.shared  # noqa: E741
    E = spec.experts

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=draw, dtype=torch.float64)

    scores = torch.rand(T, E, generator=draw, dtype=torch.float64)
    if spec.load == "crowded":
        scores[: T // 2 + 1, 1] = 2.0
        scores[:, E // 2 :] -= 1.0
    weights, ids = scores.topk(spec.top_k, dim=-1)
    weights = weights.abs() + 0.05
    z = normal(T, L)

    def per_expert(*shape: int, sign: bool = False) -> torch.Tensor:
        own = normal(E, *shape)
        if not spec.opposed:
            return own
        shared = normal(1, *shape)
        if sign:
            shared = torch.where(torch.arange(E) < E // 2, 1.0, -1.0).view(E, 1, 1) * shared
        return 0.95 * shared + (1 - 0.95**2) ** 0.5 * own

    return {
        "z": z,
        "x": normal(T, D),
        "ids": ids,
        "weights": 2.446 * weights / weights.sum(-1, keepdim=True),
        "w_down": normal(L, D) / D**0.5,
        # gates of about 4 and ups of about 25: both bounds of SiTU are at work
        "w1": 4.0 * per_expert(I, L) / L**0.5,
        "w3": 25.0 * per_expert(I, L) / L**0.5,
        "w2": 0.04 * spec.size * per_expert(L, I, sign=True) / I**0.5,
        "gain": (0.6 * normal(L)).exp(),
        "w_up": normal(D, L) / L**0.5,
        "s1": 4.0 * normal(S, D) / D**0.5,
        "s3": 25.0 * normal(S, D) / D**0.5,
        "s2": 0.04 * normal(D, S) / S**0.5,
    }


def present(
    given: Tensors, semantics: LatentSemantics, interface: LatentInterface, recipe: Recipe
) -> Tensors:
    """What a callable of some interface gets; the routing weights stay wide."""
    wide = torch.float64 if recipe.io == torch.float64 else torch.float32
    names = {"z", "w1", "w3", "w2"} if interface.core else set(given) - {"z", "ids", "weights"}
    inputs: Tensors = {"ids": given["ids"], "weights": given["weights"].to(wide)}
    inputs |= {name: given[name].to(recipe.io) for name in given if name in names}
    if not interface.core:
        inputs["eps"] = semantics.norm_eps
    return inputs


def fit(case: Case, interface: LatentInterface) -> Case | str:
    """Cases of norm and eps need the whole layer."""
    if "layer" in case.needs and interface.core:
        return "the callable is the experts alone"
    return in_multiples(case, interface)


def _case(
    name: str, why: str, sees: str, profile: str = "full", spec: LatentSpec | None = None,
    needs: tuple[str, ...] = (),
) -> Case:  # fmt: skip
    slugs = tuple(f"latent.{slug}" for slug in sees.split())
    return Case(name, why, slugs, profile, frozenset(needs), spec or LatentSpec())


CASES: tuple[Case, ...] = (
    _case(
        "mixed",
        "three of eight experts, amplitudes beyond both bounds, gains far from one",
        "norm-per-expert norm-before-experts norm-dropped gain-dropped "
        "weight-before-experts weights-ones weights-rolled next-expert last-slot "
        "routed-silu routed-swapped shared-silu shared-swapped "
        "shared-left-out shared-twice shared-weighted shared-into-norm shared-half "
        "routed-left-out routed-twice rank-norms rank-missing combine-bfloat16",
        "quick",
    ),
    _case(
        "crowded",
        "one expert for half of the tokens, none for others: capacity and empty experts",
        "overflow weights-rolled",
        "quick",
        LatentSpec(load="crowded", tokens=32),
    ),
    _case(
        "small-sum",
        "expert outputs so small that eps of the norm counts",
        "eps-1e-6",
        "full",
        LatentSpec(size=1e-3),
        ("layer",),
    ),
    _case(
        "sixteen",
        "sixteen of sixty-four experts",
        "last-slot weights-rolled weights-ones next-expert",
        "full",
        LatentSpec(experts=64, top_k=16, tokens=12),
    ),
    _case(
        "opposed",
        "sixty-four experts that nearly cancel: precision of the sum over experts",
        "combine-bfloat16",
        "full",
        LatentSpec(experts=64, top_k=64, tokens=8, opposed=True),
    ),
    _case(
        "one-token",
        "a single token: decode",
        "next-expert norm-dropped shared-left-out",
        "full",
        LatentSpec(tokens=1),
        ("layer",),
    ),
    _case(
        "released-ratio",
        "widths in the released proportions: 7168 : 3584 : 3072 : 6144, sixteen times smaller",
        "norm-dropped routed-silu shared-silu",
        "full",
        LatentSpec(tokens=8, dim=448, latent=224, inter=192, shared=384, experts=16, top_k=4),
        ("layer",),
    ),
)
