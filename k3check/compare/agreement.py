"""Two results of one operator that ought to be the same: how far apart, and what rounding may do.

Equal bits are the rule and no law. A correct kernel whose reference row for the decay lies among
later tokens rounds the earlier ones otherwise when those change, and one that adds with atomics
rounds otherwise at every call. What decides is the size: what an ordinary comparison in this
recipe grants to rounding, per tensor and part, is no mistake.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from k3check.compare.metrics import measure
from k3check.compare.verdict import derived_limits, floor
from k3check.model import Message, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from k3check.model import Finding
    from k3check.nouns.operator import Output
    from k3check.nouns.recipe import Recipe
    from k3check.nouns.tensors import Tensors

    #: tensor -> metric -> number
    ByMetric = dict[str, dict[str, float]]


def distances(outputs: Sequence[Output], left: Tensors, right: Tensors) -> ByMetric:
    """How far two results are apart, by every metric that is judged.

    What is finite in one of them alone is infinitely far: rounding makes no NaN.
    """
    found: ByMetric = {}
    for output in outputs:
        one, other = left.get(output.name), right.get(output.name)
        if output.compare == "set" or one is None or other is None:
            continue
        if torch.equal(one, other):
            found[output.name] = {"relative_l2": 0.0}
            continue
        finite = torch.isfinite(other)
        if one.shape != other.shape or not torch.equal(torch.isfinite(one), finite):
            found[output.name] = {"relative_l2": math.inf}
            continue
        one, other = (torch.where(finite, x, 0) for x in (one, other))
        found[output.name] = measure(one, other, output.axes).values()
    return found


def granted(
    outputs: Sequence[Output], baseline: Tensors, exact: Tensors, recipe: Recipe
) -> ByMetric:
    """What an ordinary comparison grants to rounding: ``factor x baseline + floor``."""
    found: ByMetric = {}
    for output in outputs:
        base, right = baseline.get(output.name), exact.get(output.name)
        if output.compare == "set" or base is None or right is None:
            continue
        finite = torch.isfinite(right)
        dtype = base.dtype if base.is_floating_point() else recipe.io
        base, right = (torch.where(finite, x, 0) for x in (base, right))
        usual = measure(base, right, output.axes).values()
        limits, _ = derived_limits(output.name, usual, floor(dtype, recipe.accumulate), None)
        found[output.name] = limits
    return found


def beyond(apart: ByMetric, limits: Mapping[str, Mapping[str, float]]) -> list[str]:
    """The tensors that are further apart than they may be."""
    return [
        name
        for name, metrics in apart.items()
        if any(not value <= limits.get(name, {}).get(key, 0.0) for key, value in metrics.items())
    ]


def flat(by_metric: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """``output.difference`` for the whole tensor and ``output.worst_window`` for a part."""
    return {
        f"{tensor}.{'difference' if metric == 'relative_l2' else metric}": value
        for tensor, metrics in by_metric.items()
        for metric, value in metrics.items()
    }


def disagreed(found: Finding, problem: str, failed: Sequence[str], gap: float) -> Finding:
    """The finding of tensors that are further apart than they may be."""
    return replace(
        found,
        outcome=Outcome.FAIL,
        location={"tensor": failed[0]},
        hint=Message(problem, {"tensor": ", ".join(failed), "gap": f"{gap:.3g}"}),
    )
