"""The router's cases: numbers of experts, gaps between scores, biases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from k3check.model import Text
from k3check.nouns.case import Case
from k3check.nouns.tensors import Tensors, generator

if TYPE_CHECKING:
    from k3check.nouns.recipe import Recipe
    from k3check.operators.moe.semantics import RouterInterface, RouterSemantics


@dataclass(frozen=True)
class RouterSpec:
    """How to make one case's inputs.

    Attributes:
        tokens, dim, experts, top_k: T, D, E, k.
        spread: standard deviation of the logits.
        bias: standard deviation of the bias; ``shift`` is added to it.
        equal: every expert twice, with one bias: exact ties, also at the last place.
        fine: logits that bfloat16 holds exactly and a bias whose low bits decide.
        zero: every second token has scores that are zero in any precision: their sum divides.
        closed: all experts but so many have a bias of minus infinity.
    """

    tokens: int = 48
    dim: int = 64
    experts: int = 64
    top_k: int = 8
    spread: float = 1.5
    bias: float = 0.3
    shift: float = 0.0
    renormalize: bool = True
    scaling: float = 2.446
    equal: bool = False
    fine: bool = False
    zero: bool = False
    closed: int = 0


def raw(case: Case, _semantics: RouterSemantics, seed: int) -> Tensors:
    """The raw inputs of a case in float64."""
    spec: RouterSpec = case.spec
    draw = generator(seed, "moe_router", case.name)
    T, D, E = spec.tokens, spec.dim, spec.experts

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=draw, dtype=torch.float64)

    hidden = normal(T, D)
    weight = spec.spread / D**0.5 * normal(E, D)
    bias = spec.bias * normal(E) + spec.shift
    if spec.fine:
        # One-hot tokens pick columns of the weight; every expert has nearly the same score, and
        # the biases are 896 steps of a size that bfloat16 cannot hold.
        hidden = torch.eye(T, D, dtype=torch.float64)
        weight = torch.zeros(E, D, dtype=torch.float64)
        steps = torch.arange(E, dtype=torch.float64)[torch.randperm(E, generator=draw)]
        bias = 0.5 + 2e-5 * steps
    if spec.equal:
        weight = weight.repeat_interleave(2, dim=0)[:E]
        bias = bias.repeat_interleave(2)[:E]
    if spec.zero:
        hidden[::2] = 0.0
        hidden[::2, 0], weight[:, 0] = 64.0, -16.0  # a logit of -1024; float64 ends at -745
    if spec.closed:
        open_ = torch.randperm(E, generator=draw)[: spec.closed]
        kept = bias[open_]
        bias = torch.full_like(bias, -torch.inf)
        bias[open_] = kept
    return {
        "hidden": hidden,
        "weight": weight,
        "bias": bias,
        "top_k": spec.top_k,
        "renormalize": spec.renormalize,
        "scaling": spec.scaling,
    }


def present(
    given: Tensors, _semantics: RouterSemantics, interface: RouterInterface, recipe: Recipe
) -> Tensors:
    """What a router of some interface gets; the bias is float32 in the checkpoint."""
    wide = torch.float64 if recipe.io == torch.float64 else torch.float32
    inputs = dict(given)
    inputs["bias"] = given["bias"].to(wide)
    inputs["hidden"] = given["hidden"].to(recipe.io)
    weight = inputs.pop("weight").to(recipe.io)
    if interface.logits:
        inputs["logits"] = (inputs["hidden"].double() @ weight.double().T).to(wide)
    else:
        inputs["weight"] = weight
    if "scaling" not in interface.supports:
        inputs["scaling"] = 1.0
    return inputs


def _case(
    name: str,
    why: str,
    sees: str,
    profile: str = "full",
    spec: RouterSpec | None = None,
    *,
    users_only: bool = False,
) -> Case:
    spec = spec or RouterSpec()
    needs = frozenset[str]() if spec.renormalize else frozenset({"renormalize"})
    seen = tuple(f"router.{s}" for s in sees.split())
    # With ties a right operator and a mistake's prediction choose differently for no reason.
    plain = not (spec.equal or spec.closed or spec.zero)
    return Case(name, why, seen, profile, needs, spec, diagnosable=plain, users_only=users_only)


def _usual(experts: int, top_k: int) -> Case:
    """A pair that models have, for kernels that are compiled for it."""
    return _case(
        f"experts-{experts}-top-{top_k}",
        Text(
            "{experts} experts, {chosen} of them chosen: a kernel may be made for this pair",
            experts=experts,
            chosen=top_k,
        ),
        "bias-dropped weights-biased",
        "full",
        RouterSpec(tokens=12, experts=experts, top_k=top_k, dim=32),
        users_only=True,
    )


CASES: tuple[Case, ...] = (
    _case(
        "biased",
        "biases that change the choice: where the bias goes and where it must not",
        "bias-dropped bias-subtracted bias-before-sigmoid bias-multiplied bias-reversed "
        "bias-rolled weights-biased weights-of-logits weights-equal sum-biased softmax-scores "
        "logit-scores sigmoid-twice smallest shared-in-list one-less all-experts grouped one-based "
        "previous-token weights-sorted weights-rolled not-renormalised renormalised-over-all "
        "renormalised-by-softmax renormalised-by-largest scaling-dropped scaling-twice "
        "scaling-before-sum",
        "quick",
    ),
    _case(
        "released-experts",
        "896 experts, 16 of them chosen, as in the released model",
        "first-512 modulo-512 shared-in-list bias-dropped logits-bfloat16 grouped",
        "quick",
        RouterSpec(experts=896, top_k=16, dim=128, tokens=32),
    ),
    _case(
        "low-bits",
        "896 biases whose low bits decide: the bias is float32",
        "bias-bfloat16",
        "full",
        RouterSpec(experts=896, top_k=16, fine=True, tokens=8),
    ),
    _case(
        "experts-513",
        "one expert more than 512",
        "first-512 modulo-512",
        "full",
        RouterSpec(experts=513, top_k=16),
    ),
    _case(
        "experts-512",
        "exactly 512 experts",
        "bias-dropped smallest",
        "full",
        RouterSpec(experts=512, top_k=16),
    ),
    _case(
        "negative-choice",
        "a bias of about -3: every choice is below -1, which is no empty place",
        "empty-minus-one empty-zero weights-biased",
        "full",
        RouterSpec(shift=-3.0),
    ),
    _case(
        "choice-below-zero",
        "a bias of -1: every choice lies between -1 and 0",
        "empty-zero",
        "full",
        RouterSpec(shift=-1.0, bias=1e-3),
    ),
    _case(
        "exact-ties",
        "every expert twice: either of two equal ones is right",
        "smallest bias-dropped",
        "quick",
        RouterSpec(equal=True, top_k=7),
    ),
    _case(
        "not-renormalised",
        "renormalisation switched off",
        "renormalised-anyway",
        "quick",
        RouterSpec(renormalize=False),
    ),
    _case(
        "zero-scores",
        "scores of zero: weights that are renormalised by a sum of nothing",
        "bias-dropped",
        "quick",
        RouterSpec(tokens=8, zero=True),
    ),
    _case(
        "closed-experts",
        "a bias of minus infinity for all experts but five, of which eight are to be chosen",
        "",
        "full",
        RouterSpec(tokens=8, experts=32, closed=5),
    ),
    _case(
        "many-rows",
        "4100 tokens: rows that a grid of a fixed size leaves out",
        "weights-biased bias-dropped",
        "full",
        RouterSpec(tokens=4100, dim=16, experts=16, top_k=4),
        users_only=True,
    ),
    _usual(8, 2),
    _usual(60, 4),
    _usual(128, 8),
    _usual(160, 6),
    _usual(256, 8),
    _usual(384, 8),
    _case(
        "one-token",
        "a single token: decode",
        "weights-biased bias-dropped scaling-twice",
        "full",
        RouterSpec(tokens=1, experts=896, top_k=16, bias=1.0),
    ),
    _case(
        "released-width",
        "7168 channels and 896 experts",
        "logits-bfloat16",
        "stress",
        RouterSpec(tokens=64, dim=7168, experts=896, top_k=16),
    ),
)
