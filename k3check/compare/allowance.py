"""What rounding may cost a tensor in a comparison: ``factor x baseline + floor``, for each part."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch

from k3check.compare.distance import all_finite, measure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from k3check.nouns.operator import Output
    from k3check.nouns.recipe import Recipe
    from k3check.nouns.tensors import Tensors

#: How many times the baseline's error a candidate may have. Two is what flash-attention allows
#: itself over a same-precision baseline; another order of summation stays well within it.
FACTOR = 2.0

#: The same for the worst window, head or channel: a maximum over many parts scatters more.
PART_FACTOR = 2.5

#: the metric of a whole tensor; all others are of its worst part
WHOLE = "relative_l2"


@dataclass(frozen=True)
class Allowance:
    """What rounding may cost one tensor.

    Attributes:
        baseline: metric -> the plainest code's error: relative L2 of the whole and its parts.
        floor: what no code in this precision can be held to.
        times: how many evaluations may err: two where two results are compared.
        more: what else it may cost, e.g. a state that is stored in between.
        cap: a user's own tolerance.
    """

    baseline: Mapping[str, float] = field(default_factory=dict)
    floor: float = 0.0
    times: float = 1.0
    more: float = 0.0
    cap: float | None = None

    def limit(self, metric: str) -> float:
        """The largest distance that is no mistake."""
        whole = metric == WHOLE
        base = self.baseline.get(metric, self.baseline.get(WHOLE, 0.0))
        once = FACTOR * base + self.floor if whole else PART_FACTOR * base + 2 * self.floor
        found = self.times * once + self.more
        return found if self.cap is None else min(found, self.cap)

    def limits(self) -> dict[str, float]:
        """The limit of every metric."""
        return {metric: self.limit(metric) for metric in self.baseline}

    def scaled(self, times: float, more: float = 0.0) -> Allowance:
        """For several evaluations."""
        return replace(self, times=times, more=more)


NOTHING = Allowance({WHOLE: 0.0})


def floor(output_dtype: torch.dtype, accumulate: torch.dtype) -> float:
    """The relative error below which nothing is held against anybody.

    A quarter of the output's epsilon is a little less than what one rounding of the result costs
    (its RMS is eps / sqrt(12)); eight epsilons of the accumulator cover short sums and an
    accelerator's exp and division, which are right to a few units in the last place. What longer
    sums cost in another order depends on their length and terms: :mod:`k3check.compare.orders`.
    """
    return 0.25 * torch.finfo(output_dtype).eps + 8 * torch.finfo(accumulate).eps


def handed_over(recipe: Recipe) -> float:
    """Relative L2 that storing a state between two calls may cost: one rounding of every element.

    The largest that rounding to nearest can do is half an epsilon, and the usual factor is granted
    on it; nothing where the state is kept as precisely as it is computed.
    """
    state = torch.finfo(recipe.state).eps
    return FACTOR * 0.5 * state if state > torch.finfo(recipe.accumulate).eps else 0.0


def allowances(
    outputs: Sequence[Output],
    baseline: Tensors,
    exact: Tensors,
    recipe: Recipe,
    kept: Mapping[str, torch.dtype],
    times: float = 1.0,
    more: float = 0.0,
) -> dict[str, Allowance]:
    """What an ordinary comparison grants every tensor.

    Args:
        outputs: what is compared; those of one right value get nothing.
        baseline, exact: the plainest code's outputs and the reference's.
        recipe: the declared precisions.
        kept: in which dtype a tensor is kept; the recipe's for the others.
        times, more: see :class:`Allowance`.
    """
    found = {}
    for output in outputs:
        base, right = baseline.get(output.name), exact.get(output.name)
        if output.compare == "set" or base is None or right is None:
            continue
        if output.compare == "exact":
            found[output.name] = NOTHING
            continue
        if not all_finite(right):
            finite = torch.isfinite(right)
            base, right = (torch.where(finite, x, 0) for x in (base, right))
        least = floor(kept.get(output.name, recipe.io), recipe.accumulate)
        usual = measure(base, right, output.axes).values()
        found[output.name] = Allowance(usual, least, times, more)
    return found
