"""The router by the plainest code that is right, for every value of its semantics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from k3check.compare.sets import SCORES
from k3check.mutate.site import at, note
from k3check.nouns.recipe import EXACT, Arithmetic

if TYPE_CHECKING:
    from k3check.nouns.tensors import Tensors
    from k3check.operators.moe.semantics import RouterInterface, RouterSemantics

RENORM_EPS = 1e-20
SCORE = "token expert"


def evaluate(
    semantics: RouterSemantics,
    _interface: RouterInterface,
    inputs: Tensors,
    arithmetic: Arithmetic = EXACT,
) -> Tensors:
    """Choose experts and weigh them.

    Args:
        semantics: which router.
        inputs: ``hidden`` [T, D] and ``weight`` [E, D], or ``logits`` [T, E]; ``bias`` [E];
            ``top_k``, ``renormalize``, ``scaling``.
        arithmetic: where to round; exact for the reference.

    Returns:
        ``ids`` [T, k] ascending; ``weights`` [T, E], zero for experts that are not chosen; and
        the scores that were compared, [T, E], for whoever must know what a tie is.
    """
    cast = {
        name: value.to(arithmetic.compute)
        for name, value in inputs.items()
        if isinstance(value, torch.Tensor)
    }
    logits = cast["logits"] if "logits" in cast else cast["hidden"] @ cast["weight"].T
    top_k, scaling = int(inputs["top_k"]), float(inputs["scaling"])
    note(
        renormalize=bool(inputs["renormalize"]),
        sizes={"E": logits.shape[-1], "k": top_k},
        numbers={"the scaling factor": scaling},
    )
    logits = at("logit", logits, SCORE)
    if semantics.token == "previous":
        logits = logits.roll(1, 0)
    if semantics.logit_rounding == "bfloat16":
        logits = logits.to(torch.bfloat16).to(logits.dtype)
    bias = at("bias", chosen_bias(semantics, cast["bias"]), "expert")
    scores = at("score", scored(semantics, logits, bias), SCORE)
    choice = at("biased score", choice_of(semantics, scores, bias), SCORE)
    ids = best(semantics, at("ranked score", restricted(semantics, choice), SCORE), top_k)
    ids = at("id", ids.double(), "token slot").long()
    weights = weighed(semantics, ids, logits, scores, choice, inputs)
    return result(semantics, ids, weights, choice)


def baseline(
    semantics: RouterSemantics, interface: RouterInterface, inputs: Tensors, arithmetic: Arithmetic
) -> Tensors:
    """The same with the channels in the opposite order, so that the sums are other ones."""
    turned = {
        name: value.flip(-1) if name in ("hidden", "weight") else value
        for name, value in inputs.items()
    }
    return evaluate(semantics, interface, turned, arithmetic)


def chosen_bias(semantics: RouterSemantics, bias: torch.Tensor) -> torch.Tensor:
    """The bias as it is read, [E]."""
    if semantics.bias_expert == "reversed":
        bias = bias.flip(0)
    elif semantics.bias_expert == "rolled":
        bias = bias.roll(1, 0)
    if semantics.bias_rounding == "bfloat16":
        bias = bias.to(torch.bfloat16).to(bias.dtype)
    return bias


def scored(semantics: RouterSemantics, logits: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Scores without bias, [T, E]."""
    if semantics.bias == "before_sigmoid":
        logits = logits + bias
    if semantics.score == "softmax":
        return logits.softmax(-1)
    if semantics.score == "logit":
        return logits
    scores = logits.sigmoid()
    return scores.sigmoid() if semantics.score == "sigmoid_twice" else scores


def choice_of(semantics: RouterSemantics, scores: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """What the largest are taken of, [T, E]."""
    if semantics.bias in ("dropped", "before_sigmoid"):
        return scores
    if semantics.bias == "subtracted":
        return scores - bias
    return scores * (1 + bias) if semantics.bias == "multiplied" else scores + bias


def restricted(semantics: RouterSemantics, choice: torch.Tensor) -> torch.Tensor:
    """The choice with whatever can never be taken out of the way."""
    E = choice.shape[-1]
    if semantics.experts == "first_512" and E > 512:
        choice = choice.clone()
        choice[:, 512:] = -torch.inf
    if semantics.groups > 1 and E % semantics.groups == 0:
        grouped = choice.view(len(choice), semantics.groups, -1)
        strength = grouped.topk(min(2, grouped.shape[-1]), dim=-1).values.sum(-1)
        kept = strength.topk(semantics.groups // 2, dim=-1).indices
        open_ = torch.zeros_like(strength, dtype=torch.bool).scatter(1, kept, True)
        choice = grouped.masked_fill(~open_.unsqueeze(-1), -torch.inf).flatten(1)
    if semantics.empty != "minus_infinity":
        least = {"minus_one": -1.0, "zero": 0.0}[semantics.empty]
        choice = choice.clamp(min=least)
    return choice if semantics.direction == "largest" else -choice


def best(semantics: RouterSemantics, choice: torch.Tensor, k: int) -> torch.Tensor:
    """The ids of the largest, ascending; of equal ones the lower id."""
    if semantics.count == "one_less":
        k -= 1
    elif semantics.count == "all":
        k = choice.shape[-1]
    order = choice.argsort(dim=-1, descending=True, stable=True)
    return order[:, :k].sort(-1).values


def weighed(
    semantics: RouterSemantics,
    ids: torch.Tensor,
    logits: torch.Tensor,
    scores: torch.Tensor,
    choice: torch.Tensor,
    inputs: Tensors,
) -> torch.Tensor:
    """Weights of the chosen, [T, k]."""
    source = {"scores": scores, "choice": choice, "logits": logits}.get(
        semantics.weights_from, torch.ones_like(scores)
    )
    taken = at("score of the chosen", source.gather(1, ids), "token slot")
    factor = at("scaling factor", float(inputs["scaling"]))
    if semantics.scaling == "before_sum":
        taken = taken * factor
    if inputs["renormalize"] or semantics.switch == "ignored":
        if semantics.renormalise == "softmax":
            taken = taken.softmax(-1)
        elif semantics.renormalise != "none":
            total = {
                "sum": taken.sum(-1, keepdim=True),
                "over_all": source.sum(-1, keepdim=True),
                "biased_sum": choice.gather(1, ids).sum(-1, keepdim=True),
                "largest": taken.amax(-1, keepdim=True),
            }[semantics.renormalise]
            total = at("sum of the chosen", total + RENORM_EPS, "token one")
            taken = at("normalised weight", taken / total, "token slot")
    if semantics.weight_order == "sorted":
        taken = taken.sort(-1, descending=True).values
    elif semantics.weight_order == "rolled":
        taken = taken.roll(1, -1)
    times = {"once": factor, "twice": factor * factor}.get(semantics.scaling, 1.0)
    return at("weight", taken * times, "token slot")


def result(
    semantics: RouterSemantics, ids: torch.Tensor, weights: torch.Tensor, choice: torch.Tensor
) -> Tensors:
    """The outputs, with mistakes of the ids themselves."""
    E = choice.shape[-1]
    dense = torch.zeros_like(choice).scatter(1, ids, weights)
    if semantics.experts == "modulo_512":
        ids = ids % 512
        dense = torch.zeros_like(choice).scatter_add(1, ids, weights)
    if semantics.id_base:
        ids = ids + semantics.id_base
        dense = dense.roll(semantics.id_base, 1)
        dense[:, : semantics.id_base] = 0  # the last expert's id is none, and its weight nowhere
    if semantics.count == "with_shared":
        extra = torch.arange(E, E + 2, device=ids.device).expand(len(ids), 2)
        ids = torch.cat([ids, extra], dim=1)
    return {"ids": ids, "weights": dense, SCORES: choice}
