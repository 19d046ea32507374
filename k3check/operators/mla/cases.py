"""The cases of MLA: sharp scores, a cached past, latents so small that eps counts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import torch

from k3check.nouns.case import Case
from k3check.nouns.tensors import Tensors, generator

if TYPE_CHECKING:
    from k3check.nouns.recipe import Recipe
    from k3check.operators.mla.semantics import MlaInterface, MlaSemantics

PROJECTIONS = ("x", "w_qa", "q_gain", "w_qb", "w_kva", "kv_gain", "w_g", "w_o")


@dataclass(frozen=True)
class MlaSpec:
    """How to make one case's inputs.

    Attributes:
        batch, tokens, past: B, T, and the cached tokens before.
        dim, q_rank: D and the width of the query's latent.
        heads, nope, pe, value, latent: as in ``reference.Sizes``.
        size: of both latents before their norms: small ones show eps.
        sharp: standard deviation of the scores, roughly.
    """

    batch: int = 2
    tokens: int = 14
    past: int = 0
    dim: int = 40
    q_rank: int = 20
    heads: int = 3
    nope: int = 16
    pe: int = 8
    value: int = 12
    latent: int = 24
    size: float = 1.0
    sharp: float = 2.0


def raw(case: Case, _semantics: MlaSemantics, seed: int) -> Tensors:
    """The raw inputs of a case in float64."""
    spec: MlaSpec = case.spec
    draw = generator(seed, "gated_mla", case.name)
    B, T, D, H = spec.batch, spec.tokens, spec.dim, spec.heads

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=draw, dtype=torch.float64)

    def projection(rows: int, columns: int, size: float = 1.0) -> torch.Tensor:
        return size * normal(rows, columns) / columns**0.5

    width = spec.nope + spec.pe
    w_kva = projection(spec.latent + spec.pe, D)
    w_kva[: spec.latent] *= spec.size
    # k_pe has another size than the normed latent: a norm over both must be seen
    w_kva[spec.latent :] *= 2.0
    q_gain, kv_gain = ((0.5 * normal(n)).exp() for n in (spec.q_rank, spec.latent))
    inputs: Tensors = {
        "x": normal(B, T, D),
        "w_qa": projection(spec.q_rank, D, spec.size),
        "q_gain": q_gain,
        "w_qb": projection(H * width, spec.q_rank, spec.sharp),
        "w_kva": w_kva,
        "kv_gain": kv_gain,
        "w_kvb": projection(H * (spec.nope + spec.value), spec.latent),
        "w_g": projection(H * spec.value, D, 2.0),
        "w_o": projection(D, H * spec.value),
        "q": spec.sharp * normal(B, T, H, width),
        "rows": torch.cat([normal(B, T, spec.latent), 2 * normal(B, T, spec.pe)], dim=-1),
    }
    if spec.past:
        inputs["past"] = torch.cat(
            [normal(B, spec.past, spec.latent), 2 * normal(B, spec.past, spec.pe)], dim=-1
        )
    sizes = asdict(spec)
    return inputs | {name: sizes[name] for name in ("heads", "nope", "pe", "value", "latent")}


def present(
    given: Tensors, semantics: MlaSemantics, interface: MlaInterface, recipe: Recipe
) -> Tensors:
    """What a callable of some interface gets, rounded to the recipe."""
    core = interface.part == "core"
    left_out = PROJECTIONS if core else ("q", "rows")
    inputs = {
        name: value.to(recipe.io) if isinstance(value, torch.Tensor) else value
        for name, value in given.items()
        if name not in left_out
    }
    return inputs if core else inputs | {"eps": semantics.norm_eps}


def _case(
    name: str, why: str, sees: str, profile: str = "full", spec: MlaSpec | None = None,
    needs: tuple[str, ...] = (),
) -> Case:  # fmt: skip
    spec = spec or MlaSpec()
    wanted = {*needs, "past"} if spec.past else {*needs}
    return Case(
        name, why, tuple(f"mla.{s}" for s in sees.split()), profile, frozenset(wanted), spec
    )


CASES: tuple[Case, ...] = (
    _case(
        "prefill",
        "a prefill with sharp scores: scale, mask, norms, splits, gate",
        "scale-value scale-missing scale-twice not-causal strict one-ahead rope "
        "q-norm-missing kv-norm-missing kv-norm-over-pe kv-norm-twice gain-dropped gain-one-plus "
        "pe-dropped pe-normed q-split kv-split all-keys-first latent-split "
        "values-reversed first-key gate-heads-reversed gate-missing gate-silu gate-raw "
        "gate-on-values gate-after-norm cache-not-normed",
        "quick",
    ),
    _case(
        "chunk",
        "seven tokens after nineteen cached ones: offset of the mask, merging",
        "scale-nope past-ignored past-normed-twice past-hidden merge-mean merge-unweighted rope",
        "quick",
        MlaSpec(tokens=7, past=19, nope=8, pe=16),
    ),
    _case(
        "decode",
        "one token after thirty cached ones",
        "past-ignored scale-nope past-hidden",
        "full",
        MlaSpec(tokens=1, past=30, batch=3),
    ),
    _case(
        "small-latents",
        "latents of mean square 1e-4: eps of their norms",
        "eps-1e-5 q-norm-missing kv-norm-missing",
        "full",
        MlaSpec(size=1e-2),
        ("layer",),
    ),
    _case(
        "twelve-heads",
        "twelve heads, as one rank of eight has",
        "values-reversed first-key gate-heads-reversed",
        "full",
        MlaSpec(heads=12, tokens=6, batch=1),
        ("layer",),
    ),
    _case(
        "released-head",
        "the released head: 128 + 64, values of 128, a latent of 512",
        "kv-split pe-dropped",
        "full",
        MlaSpec(
            batch=1, tokens=12, dim=96, q_rank=96, heads=2, nope=128, pe=64, value=128, latent=512
        ),
    ),
    _case(
        "one-token",
        "the first token alone: the softmax is one",
        "values-reversed gate-missing",
        "full",
        MlaSpec(tokens=1),
        ("layer",),
    ),
)
