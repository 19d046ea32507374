"""Two results of a KDA candidate that must agree, and the finding of how far they do.

The limits are those of the recipe, not of a reference: two correct evaluations of one quantity
differ by at most twice what rounding costs each of them. Where the very same evaluation is
repeated, equal bits are expected; if they are not equal, the size of the difference decides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from k3check.compare import agreement
from k3check.compare.metrics import relative_l2
from k3check.compare.verdict import FACTOR, floor
from k3check.model import Message, Outcome
from k3check.nouns.call import baseline_of
from k3check.nouns.recipe import EXACT, rounding

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.model import Finding
    from k3check.nouns.operator import Candidate
    from k3check.nouns.recipe import Arithmetic
    from k3check.nouns.tensors import Tensors


@dataclass(frozen=True)
class Limits:
    """What two results may differ by, per output: in the declared recipe and in legal others."""

    own: Mapping[str, float]
    legal: Callable[[], Mapping[str, Mapping[str, float]]]


@dataclass(frozen=True)
class Bits:
    """Two results whose bits ought to agree; what differs within rounding is told, not accused.

    Attributes:
        candidate, inputs: what rounding costs there is only looked at where bits differ.
        part: the part of the outputs that is compared.
        note: the code of what to say of a difference within rounding.
    """

    candidate: Candidate
    inputs: Tensors
    part: Callable[[Tensors], Tensors]
    note: str


@dataclass(frozen=True)
class Pair:
    """Two results that must agree, by name, within limits or bit by bit."""

    left: Mapping[str, torch.Tensor]
    right: Mapping[str, torch.Tensor]
    limits: Limits | Bits


def limits(candidate: Candidate, inputs: Tensors, *, more: float = 0.0) -> Limits:
    """What two correct results on these inputs may differ by, per output.

    Args:
        candidate, inputs: where rounding is looked at.
        more: what else one of both ways may cost, e.g. that it stores the state in between.
    """
    operator, recipe = candidate.operator, candidate.recipe
    exact = operator.evaluate(candidate.semantics, candidate.interface, inputs, EXACT)

    def allowed(arithmetic: Arithmetic) -> dict[str, float]:
        base = baseline_of(candidate, inputs, arithmetic)
        return {
            name: more
            + 2
            * (
                FACTOR * relative_l2(base[name], exact[name])
                + floor(base[name].dtype, recipe.accumulate)
            )
            for name in exact
        }

    own = allowed(rounding(recipe, block_operands=operator.block_operands))
    return Limits(own, lambda: {n: allowed(a) for n, a in operator.legal(recipe).items()})


def judge_bits(blank: Finding, pair: Pair, bits: Bits, problem: str) -> Finding:
    """The finding of a pair whose bits ought to agree."""
    candidate, inputs = bits.candidate, bits.inputs
    operator, recipe = candidate.operator, candidate.recipe
    apart = agreement.distances(operator.outputs, dict(pair.left), dict(pair.right))
    gaps = {name: metrics["relative_l2"] for name, metrics in apart.items()}
    if not any(value for metrics in apart.values() for value in metrics.values()):
        differences = {f"{name}.difference": 0.0 for name in gaps}
        return replace(blank, metrics=differences, limits=differences)
    exact = bits.part(operator.evaluate(candidate.semantics, candidate.interface, inputs, EXACT))

    def allowed(arithmetic: Arithmetic) -> agreement.ByMetric:
        base = bits.part(baseline_of(candidate, inputs, arithmetic))
        return agreement.granted(operator.outputs, base, exact, recipe)

    own = allowed(rounding(recipe, block_operands=operator.block_operands))
    found = replace(blank, metrics=agreement.flat(apart), limits=agreement.flat(own))
    failed = agreement.beyond(apart, own)
    worst = max(gaps, key=lambda name: gaps[name])
    told = Message(bits.note, {"tensor": worst, "gap": f"{gaps[worst]:.3g}"})
    if not failed:
        return replace(found, outcome=Outcome.ACCEPTABLE, notes=(told,))
    for name, arithmetic in operator.legal(recipe).items():
        if not agreement.beyond(apart, allowed(arithmetic)):
            notes = (told, Message("K3O-011", {"recipe": name}))
            return replace(found, outcome=Outcome.ACCEPTABLE, notes=notes)
    return agreement.disagreed(found, problem, failed, max(gaps[name] for name in failed))


def judge_pair(blank: Finding, pair: Pair, problem: str) -> Finding:
    """The finding of a pair."""
    if isinstance(pair.limits, Bits):
        return judge_bits(blank, pair, pair.limits, problem)
    gaps = {}
    for name, left in pair.left.items():
        right = pair.right[name]
        same_places = torch.equal(torch.isfinite(left), torch.isfinite(right))
        gap = relative_l2(left.nan_to_num(), right.nan_to_num()) if same_places else float("inf")
        gaps[name] = gap
    own = {name: pair.limits.own.get(name, 0.0) for name in gaps}
    failed = [name for name, gap in gaps.items() if not gap <= own[name]]
    found = replace(
        blank,
        metrics={f"{name}.difference": gap for name, gap in gaps.items()},
        limits={f"{name}.difference": limit for name, limit in own.items()},
    )
    if not failed:
        return found
    for recipe, legal in pair.limits.legal().items():
        if all(gap <= legal[name] for name, gap in gaps.items()):
            note = Message("K3O-011", {"recipe": recipe})
            return replace(found, outcome=Outcome.ACCEPTABLE, notes=(note,))
    return agreement.disagreed(found, problem, failed, max(gaps.values()))
