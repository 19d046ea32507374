"""Do two results agree within rounding? Every comparison of the program asks it here.

Equal bits are the rule and no law. A correct kernel whose reference row for the decay lies among
later tokens rounds the earlier ones otherwise when those change, and one that adds with atomics
rounds otherwise at every call. What decides is the size: what rounding may cost in this recipe,
per tensor and part, is no mistake.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import torch

from k3check.compare.allowance import NOTHING, WHOLE, Allowance
from k3check.compare.distance import all_finite, measure
from k3check.compare.orders import SAMPLES
from k3check.model import Message, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from k3check.model import Finding
    from k3check.nouns.operator import Output
    from k3check.nouns.tensors import Tensors

    #: tensor -> metric -> number
    ByMetric = dict[str, dict[str, float]]

T = TypeVar("T")

#: A distance of more than so many limits is no other order of summation: over all operators,
#: precisions and seeds, docs/limits.md shows none beyond a few times another one.
NOT_ROUNDING = 32.0
#: The same once a single evaluation has shown what orders cost; by chance it shows too little.
NOT_ALL_ORDERS = 4.0
#: Beyond this share of what it was, a distance has come no nearer to its limit.
NO_NEARER = 0.9


@dataclass(frozen=True)
class Compared:
    """How far two results are apart, and how far they may be.

    Attributes:
        apart, limits: tensor -> metric -> number.
    """

    apart: ByMetric
    limits: ByMetric

    @property
    def beyond(self) -> list[str]:
        """The tensors that are further apart than they may be."""
        return [name for name in self.apart if not self.excess_of(name) <= 1]

    @property
    def excess(self) -> float:
        """The worst distance in units of its limit."""
        return max((self.excess_of(name) for name in self.apart), default=0.0)

    @property
    def differs(self) -> bool:
        """Whether anything is apart at all."""
        return any(value for metrics in self.apart.values() for value in metrics.values())

    def excess_of(self, name: str) -> float:
        """The same for one tensor."""
        limits = self.limits[name]
        return max(share(value, limits[metric]) for metric, value in self.apart[name].items())

    def gap(self, names: Iterable[str]) -> float:
        """The largest distance over whole tensors."""
        return max(self.apart[name][WHOLE] for name in names)

    def on(self, finding: Finding) -> Finding:
        """A finding with these numbers."""
        return replace(finding, metrics=flat(self.apart), limits=flat(self.limits))


def share(value: float, limit: float) -> float:
    """How much of its limit a value takes; a value that is no number takes all and more."""
    if math.isnan(value):
        return math.inf
    return value / limit if limit > 0 else (0.0 if value == 0 else math.inf)


def distances(outputs: Sequence[Output], left: Tensors, right: Tensors) -> ByMetric:
    """How far two results are apart, by every metric that is judged.

    What is finite in one of them alone is infinitely far: rounding makes no NaN.
    """
    found: ByMetric = {}
    for output in outputs:
        one, other = left.get(output.name), right.get(output.name)
        if output.compare != "set" and one is not None and other is not None:
            found[output.name] = apart(one, other, output.axes)
    return found


def apart(one: torch.Tensor, other: torch.Tensor, axes: tuple[str, ...] = ()) -> dict[str, float]:
    """The same for one tensor, of which the second is what the distance is relative to."""
    if one.shape == other.shape and torch.equal(one, other):
        return {WHOLE: 0.0}
    if one.shape != other.shape:
        return {WHOLE: math.inf}
    if not (all_finite(one) and all_finite(other)):
        finite = torch.isfinite(other)
        if not torch.equal(torch.isfinite(one), finite):
            return {WHOLE: math.inf}
        one, other = (torch.where(finite, x, 0) for x in (one, other))
    return measure(one, other, axes).values()


def agree(distances: ByMetric, allowance: Mapping[str, Allowance]) -> Compared:
    """Hold distances against what rounding may cost."""
    limits = {
        name: {metric: allowance.get(name, NOTHING).limit(metric) for metric in metrics}
        for name, metrics in distances.items()
    }
    return Compared(distances, limits)


def in_some_way(
    own: T,
    excess: Callable[[T], float],
    any_order: Callable[[int], T],
    legal: Mapping[str, Callable[[], T]],
) -> tuple[T, str | None] | None:
    """The first legal way of rounding in which something is within its limits.

    Args:
        own: what was found in the declared recipe, in the baseline's own order of summation.
        excess: how far that is beyond its limits, in units of them; at most one is within.
        any_order: finds it again, with limits for any order; told how many evaluations to rest on.
        legal: finds it again with the limits of another legal recipe, by name.

    Returns:
        What was found, and the name of the recipe if it is another one; None if it is a mistake.
    """
    beyond = excess(own)
    if beyond <= 1:
        return own, None
    if beyond <= NOT_ROUNDING:
        # One evaluation tells what is far off, and where orders of summation cost nothing beside
        # the rounding of the result; all of them are made only where it is close.
        found = any_order(1)
        once = excess(found)
        if 1 < once <= NOT_ALL_ORDERS and once < NO_NEARER * beyond:
            found = any_order(SAMPLES)
        if excess(found) <= 1:
            return found, None
    for name, again in legal.items():
        found = again()
        if excess(found) <= 1:
            return found, name
    return None


def flat(by_metric: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """``output.difference`` for the whole tensor and ``output.worst_window`` for a part."""
    return {
        f"{tensor}.{'difference' if metric == WHOLE else metric}": value
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
