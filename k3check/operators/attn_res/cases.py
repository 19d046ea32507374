"""Cases of one mix: sizes of sources, gains and scores that make the known mistakes visible.

Sources of equal size hide whether keys are normalised at all and whether keys or values are mixed;
gains near one hide whether the gain is there; sources of ordinary size hide eps. Scores are given
a spread of about 1.5: with less the mix is a mean, with more it is a choice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import torch

from k3check.nouns.case import Case
from k3check.nouns.tensors import Tensors, generator

if TYPE_CHECKING:
    from k3check.nouns.recipe import Recipe
    from k3check.nouns.shapes import Shapes
    from k3check.operators.attn_res.semantics import AttnResInterface, AttnResSemantics


@dataclass(frozen=True)
class MixSpec:
    """How to make one case's inputs.

    Attributes:
        sources: N, the prefix included.
        tokens, dim: T and D.
        sizes: RMS of the sources: all 1, from 0.02 to 20 in geometric steps, or all 1e-3.
        offset: added to every channel: what a LayerNorm would remove.
        sharp: keys nearly orthogonal to a long query, so that scores are small sums of large
            terms.
        scale, output_gain: what a callable may be given beside: a factor of the scores, the gain
            of a norm after the mix.
    """

    sources: int = 6
    tokens: int = 33
    dim: int = 128
    sizes: Literal["unit", "spread", "tiny"] = "unit"
    offset: float = 0.0
    sharp: bool = False
    scale: float = 1.0
    output_gain: bool = False


def raw(case: Case, _semantics: AttnResSemantics, seed: int) -> Tensors:
    """The raw inputs of a case in float64."""
    spec: MixSpec = case.spec
    draw = generator(seed, "attn_res", case.name)
    N, T, D = spec.sources, spec.tokens, spec.dim

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=draw, dtype=torch.float64)

    sources = normal(N, T, D) + spec.offset
    # Gains of a trained model are far from one and some have changed their sign.
    gain = (0.8 * normal(D)).exp() * torch.where(torch.arange(D) % 7 == 3, -1.0, 1.0)
    query = normal(D)
    direction = gain * query
    length = 60.0 if spec.sharp else 1.5
    query = query * (length / direction.norm())
    if spec.sharp:
        unit = direction / direction.norm()
        along = (1.5 / length) * normal(N, T, 1)
        sources = sources - (sources @ unit).unsqueeze(-1) * unit + along * unit
    if spec.sizes == "spread":
        # The largest is neither the oldest nor the prefix: both of those must be seen as well.
        steps = torch.logspace(-1.7, 1.3, N, dtype=torch.float64)
        sources = sources * steps.roll(2)[:, None, None]
    elif spec.sizes == "tiny":
        sources = 1e-3 * sources
    optional: Tensors = {"scale": spec.scale} if spec.scale != 1 else {}
    return optional | {
        "asked_gain": spec.output_gain,
        "sources": sources,
        "query": query,
        "gain": gain,
        "output_gain": (0.5 * normal(D)).exp(),
        "delta": sources.square().mean().sqrt() * normal(T, D),
    }


def present(
    given: Tensors, semantics: AttnResSemantics, interface: AttnResInterface, recipe: Recipe
) -> Tensors:
    """What a callable of some interface gets, rounded to the recipe."""
    io = recipe.io
    inputs: Tensors = {"sources": given["sources"].to(io), "eps": semantics.eps}
    if interface.folded:
        wide = torch.float64 if io == torch.float64 else torch.float32
        inputs["fold"] = (given["query"] * given["gain"]).to(wide)
    else:
        inputs["query"], inputs["gain"] = given["query"].to(io), given["gain"].to(io)
    if "scale" in given:
        inputs["scale"] = given["scale"]
    if interface.output_norm or given["asked_gain"]:
        inputs["output_gain"] = given["output_gain"].to(io)
        inputs["output_eps"] = semantics.output_eps
    if interface.delta:
        inputs["delta"] = given["delta"].to(io)
    return inputs


#: Cases whose mistake needs another shape than the usual one, and why.
OTHER_SHAPES = {
    "two": "the first block has one snapshot: no source between the oldest and the newest",
    "single": "of one source the mix is the source, whatever its score",
    "odd-width": "a width that is no power of two leaves a partial block",
    "released-width": "the released model's width takes several blocks",
}


def sized(case: Case, _interface: AttnResInterface, shapes: Shapes) -> Case:
    """The case with the nine sources of a whole stack, where shapes are dear."""
    if not shapes.few or case.name in ("two", "single"):
        return case
    dim = 128 if case.name == "many-rows" else case.spec.dim
    return replace(case, spec=replace(case.spec, sources=9, dim=dim))


def _case(
    name: str, why: str, sees: str, profile: str = "full", spec: MixSpec | None = None
) -> Case:
    spec = spec or MixSpec()
    needs = frozenset({"mix", "single"} if spec.sources == 1 else {"mix"})
    if spec.scale != 1:
        needs |= {"scale"}
    if spec.output_gain:
        needs |= {"output_gain"}
    slugs = tuple(f"attnres.{slug}" for slug in sees.split())
    return Case(name, why, slugs, profile, needs, spec, users_only=name == "many-rows")


CASES: tuple[Case, ...] = (
    _case(
        "spread",
        "sources of sizes 0.02 to 20: key norm, and raw values in the mix",
        "values-are-keys values-are-gained-keys keys-not-normalised sigmoid unnormalised "
        "over-tokens exp2 sign hard uniform no-newest plain-prefix plain-sum prefix-added "
        "weights-reversed weights-rolled weights-previous-token weights-first-token "
        "merge-unweighted merge-base2 merge-unshifted snapshot-token",
        "quick",
        MixSpec(sizes="spread"),
    ),
    _case(
        "unit",
        "sources of equal size, gains far from one: score, softmax, which sources take part",
        "gain-dropped gain-one-plus gain-twice l2-norm scaled scaled-up uniform sign exp2 hard "
        "sigmoid unnormalised over-tokens no-prefix no-newest no-oldest prefix-twice newest-twice "
        "empty-slot prefix-zeroed prefix-added plain-prefix plain-sum weights-reversed "
        "weights-rolled weights-previous-token weights-first-token merge-unweighted merge-base2 "
        "merge-unshifted snapshot-token",
        "quick",
    ),
    _case(
        "tiny",
        "sources of size 1e-3: value and place of eps",
        "eps-1e-6 eps-outside eps-on-sum keys-not-normalised values-are-keys",
        "quick",
        MixSpec(sizes="tiny"),
    ),
    _case(
        "nine-offset",
        "eight snapshots and the prefix, with a common offset: the output mix of a whole stack",
        "layer-norm no-oldest no-prefix gain-dropped",
        "full",
        MixSpec(sources=9, tokens=16, offset=2.0),
    ),
    _case(
        "sharp",
        "scores that are small sums of large terms: precision of keys and scores",
        "keys-bfloat16",
        "full",
        MixSpec(tokens=96, sharp=True),
    ),
    _case(
        "two",
        "one snapshot and the prefix, as in the first block",
        "no-prefix no-oldest uniform sign prefix-twice weights-reversed",
        "full",
        MixSpec(sources=2, tokens=40),
    ),
    _case(
        "single",
        "the prefix alone: the mix is the identity",
        "sigmoid prefix-added empty-slot values-are-keys",
        "full",
        MixSpec(sources=1, tokens=5, sizes="unit", offset=2.0),
    ),
    _case(
        "scaled",
        "scores with a factor, which is optional and seldom given",
        "",
        "full",
        MixSpec(tokens=9, scale=0.4),
    ),
    _case(
        "output-gain",
        "the norm after the mix, which is optional",
        "",
        "full",
        MixSpec(tokens=9, output_gain=True),
    ),
    _case(
        "many-rows",
        "4100 tokens: rows that a grid of a fixed size leaves out",
        "weights-first-token weights-previous-token",
        "full",
        MixSpec(sources=3, tokens=4100, dim=16),
    ),
    _case(
        "odd-width",
        "100 channels, one token: the part after the last whole block",
        "partial-block uniform sign",
        "full",
        MixSpec(sources=4, tokens=1, dim=100),
    ),
    _case(
        "released-width",
        "7168 channels and nine sources, as in the released model",
        "gain-dropped scaled uniform no-oldest no-prefix keys-not-normalised",
        "full",
        MixSpec(sources=9, tokens=4, dim=7168, sizes="spread"),
    ),
    _case(
        "many-tokens",
        "2048 tokens: grids larger than one launch",
        "weights-first-token weights-previous-token",
        "stress",
        MixSpec(sources=9, tokens=2048, dim=256),
    ),
)
