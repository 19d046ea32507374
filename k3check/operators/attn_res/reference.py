"""One mix by the plainest code that is right, for every value of the semantics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from k3check.mutate.site import at, note
from k3check.nouns.recipe import EXACT, Arithmetic

if TYPE_CHECKING:
    from collections.abc import Callable

    from k3check.nouns.tensors import Tensors
    from k3check.operators.attn_res.semantics import AttnResInterface, AttnResSemantics

BLOCK = 64
BANK, ROW = "source token channel", "token channel"
LN2 = 0.6931471805599453

#: scores [N, T] -> weights [N, T]
WEIGHTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "softmax": lambda scores: scores.softmax(0),
    "exp2": lambda scores: (scores * LN2).softmax(0),
    "sigmoid": lambda scores: scores.sigmoid(),
    "unnormalised": lambda scores: (scores - scores.amax(0)).exp(),
    "over_tokens": lambda scores: scores.softmax(1),
    "hard": lambda scores: torch.zeros_like(scores).scatter(0, scores.argmax(0, True), 1.0),
}


def evaluate(
    semantics: AttnResSemantics,
    interface: AttnResInterface,
    inputs: Tensors,
    arithmetic: Arithmetic = EXACT,
) -> Tensors:
    """One mix.

    Args:
        semantics: which mix.
        interface: what the inputs are: folded or two vectors, a delta, a norm afterwards.
        inputs: ``sources`` [N, T, D], oldest first, the prefix last; ``query`` and ``gain`` [D],
            or ``fold`` [D]; optional ``delta`` [T, D], ``output_gain`` [D], ``scale`` of the
            scores.
        arithmetic: where to round; exact for the reference.

    Returns:
        ``output`` [T, D].
    """
    cast = {
        name: value.to(arithmetic.compute)
        for name, value in inputs.items()
        if isinstance(value, torch.Tensor)
    }
    sources = at("sources", cast["sources"], BANK)
    note(sizes={"D": sources.shape[-1], "N": len(sources)}, tokens=sources.shape[1])
    if interface.delta:
        prefix = arithmetic.operands(sources[-1] + cast["delta"])
        sources = torch.cat([sources[:-1], prefix.unsqueeze(0)])
    prefix = at("prefix", sources[-1], ROW)
    sources = chosen_sources(semantics, sources)
    sources = at("sources that take part", sources, BANK)
    keys = at("key", normalised(semantics, sources), BANK)
    weights, raised = score_vector(semantics, cast)
    weights, raised = at("query", weights, "channel"), at("gain", raised, "channel")
    scores = score(semantics, keys, raised, weights) * float(inputs.get("scale", 1.0))
    scores = at("score", scores, "source token")
    sources = at("value", sources, BANK)
    mixed = {"raw": sources, "keys": keys, "gained_keys": keys * raised}[semantics.values]
    output = at("mix", mix(semantics, scores, mixed), ROW)
    if semantics.residual == "prefix_added":
        output = output + prefix
    elif semantics.residual == "prefix_only":
        output = prefix
    elif semantics.residual == "sum":
        output = sources.sum(0)
    elif semantics.residual == "mean":
        output = sources.mean(0)
    if interface.output_norm or "output_gain" in cast:
        given = at("output gain", cast["output_gain"], "channel")
        output = normalised_output(semantics, output, given)
    output = at("output", output, ROW)
    return {"output": output.to(arithmetic.output)}


def baseline(
    semantics: AttnResSemantics,
    interface: AttnResInterface,
    inputs: Tensors,
    arithmetic: Arithmetic,
) -> Tensors:
    """The same with the channels in the opposite order.

    Other sums: so their rounding is part of the baseline in every precision, float64 included.
    """
    if semantics.lanes != "all":
        return evaluate(semantics, interface, inputs, arithmetic)
    turned = {
        name: value.flip(-1) if isinstance(value, torch.Tensor) else value
        for name, value in inputs.items()
    }
    return {"output": evaluate(semantics, interface, turned, arithmetic)["output"].flip(-1)}


def chosen_sources(semantics: AttnResSemantics, sources: torch.Tensor) -> torch.Tensor:
    """The sources that take part, [N', T, D]."""
    if semantics.snapshot_token == "previous" and len(sources) > 1:
        blocks = sources[:-1].roll(1, dims=1)
        blocks[:, :1] = 0
        sources = torch.cat([blocks, sources[-1:]])
    if semantics.sources == "prefix_twice":
        return torch.cat([sources, sources[-1:]])
    if semantics.sources == "empty_slot":
        return torch.cat([sources[:-1], torch.zeros_like(sources[-1:]), sources[-1:]])
    if semantics.sources == "prefix_zeroed":
        return torch.cat([sources[:-1], torch.zeros_like(sources[-1:])])
    if len(sources) == 1:
        return sources
    if semantics.sources == "no_prefix":
        return sources[:-1]
    if semantics.sources == "no_newest":
        return torch.cat([sources[:-2], sources[-1:]])
    if semantics.sources == "newest_twice":
        return torch.cat([sources[:-1], sources[-2:]])
    return sources[1:] if semantics.sources == "no_oldest" else sources


def normalised(semantics: AttnResSemantics, sources: torch.Tensor) -> torch.Tensor:
    """Keys without gain, [N, T, D]."""
    if semantics.norm == "none":
        return sources
    centred = sources
    if semantics.norm == "layer":
        centred = sources - sources.mean(-1, keepdim=True)
    squares = centred.square()
    over_sum = semantics.norm == "l2" or semantics.eps_on == "sum"
    size = squares.sum(-1, keepdim=True) if over_sum else squares.mean(-1, keepdim=True)
    if semantics.eps_on == "outside":
        return centred / (size.sqrt() + semantics.eps)
    root = (at("mean square", size, "source token one") + semantics.eps).sqrt()
    if over_sum and semantics.norm != "l2":
        root = root / sources.shape[-1] ** 0.5
    return centred / root


def score_vector(semantics: AttnResSemantics, cast: Tensors) -> tuple[torch.Tensor, torch.Tensor]:
    """(query or fold, gain or ones), both [D]."""
    if "fold" in cast:
        return cast["fold"], torch.ones_like(cast["fold"])
    gain = cast["gain"]
    raised = {
        "once": gain,
        "dropped": torch.ones_like(gain),
        "one_plus": 1 + gain,
        "twice": gain * gain,
    }[semantics.gain]
    return cast["query"], raised


def score(
    semantics: AttnResSemantics, keys: torch.Tensor, gain: torch.Tensor, query: torch.Tensor
) -> torch.Tensor:
    """Scores [N, T]."""
    D = keys.shape[-1]
    if semantics.key_rounding == "bfloat16":
        terms = (keys * gain).to(torch.bfloat16).to(keys.dtype) * query
    else:
        terms = keys * at("folded query", gain * query, "channel")
    if semantics.lanes == "full_blocks":
        terms = terms[..., : D // BLOCK * BLOCK]
    scores = semantics.sign * terms.sum(-1)
    if semantics.score_rounding == "bfloat16":
        scores = scores.to(torch.bfloat16).to(keys.dtype)
    if semantics.query == "zero":
        scores = torch.zeros_like(scores)
    return scores * {"one": 1.0, "rsqrt": D**-0.5, "sqrt": D**0.5}[semantics.scale]


def mix(semantics: AttnResSemantics, scores: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Weighted sum of the values, [T, D]."""
    if semantics.merge != "exact" and len(values) > 1:
        return merged(semantics.merge, scores, values)
    weights = WEIGHTS[semantics.weights](scores)
    if semantics.weight_order == "reversed":
        weights = weights.flip(0)
    elif semantics.weight_order == "rolled":
        weights = weights.roll(1, dims=0)
    if semantics.weight_token == "previous":
        weights = weights.roll(1, dims=1)
    elif semantics.weight_token == "first":
        weights = weights[:, :1].expand_as(weights)
    weights = at("weight", weights, "source token")
    return (weights.unsqueeze(-1) * values).sum(0)


def merged(kind: str, scores: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """The two-phase form merged wrongly: snapshots first, then the prefix."""
    early, last = scores[:-1], scores[-1]
    m1 = early.amax(0)
    e1 = (early - m1).exp()
    l1, o1 = e1.sum(0), (e1.unsqueeze(-1) * values[:-1]).sum(0)
    m = torch.maximum(m1, last)
    a, b = (m1 - m).exp(), (last - m).exp()
    if kind == "unweighted":  # o1 / l1 merged as if it were o1, and 1 as if it were l1
        o1, l1 = o1 / l1.unsqueeze(-1), torch.ones_like(l1)
    elif kind == "base2":
        a, b = (m1 - m).exp2(), (last - m).exp2()
    else:  # both parts taken as relative to one maximum
        a, b = torch.ones_like(a), torch.ones_like(b)
    a, b = a.unsqueeze(-1), b.unsqueeze(-1)
    return (a * o1 + b * values[-1]) / (a * l1.unsqueeze(-1) + b)


def normalised_output(
    semantics: AttnResSemantics, mixed: torch.Tensor, gain: torch.Tensor
) -> torch.Tensor:
    """The RMSNorm that follows the mix."""
    if semantics.output_norm == "none":
        return mixed
    unit = mixed / (mixed.square().mean(-1, keepdim=True) + semantics.output_eps).sqrt()
    unit = at("normalised mix", unit, ROW)
    if semantics.output_norm == "no_gain":
        return unit
    return unit * (1 + gain if semantics.output_norm == "one_plus" else gain)
