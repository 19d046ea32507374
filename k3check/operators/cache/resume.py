"""Is resuming from a snapshot the same as never having stopped?

For prefixes a and suffixes b: prefill(a + b) against prefill(a), snapshot, restore, then b. Both
by the candidates, so a wrong formula is not what fails here. The limits are those of a property:
two correct evaluations differ by at most twice what rounding costs each of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from k3check.compare.agree import apart, in_some_way, share
from k3check.compare.allowance import WHOLE, Allowance, floor, handed_over
from k3check.compare.distance import relative_l2
from k3check.compare.orders import any_order
from k3check.model import Message, Outcome
from k3check.operators.cache.layers import (
    BASELINE,
    KDA,
    REFERENCE,
    Walked,
    by_arithmetic,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import torch

    from k3check.model import Finding
    from k3check.nouns.tensors import Tensors
    from k3check.operators.cache.layers import Layer, Runner

#: Prefix lengths: a multiple of every usual chunk, the middle of a chunk, a single token.
PREFIXES = (64, 100, 1)
SUFFIXES = (1, 7)


@dataclass(frozen=True)
class Point:
    """Where a sequence is cut: n tokens, then k more."""

    prefix: int
    suffix: int

    @property
    def end(self) -> int:
        """n + k."""
        return self.prefix + self.suffix


@dataclass(frozen=True)
class Resumed:
    """One cut: the suffix of the straight run, the resumed run, what was saved in between."""

    point: Point
    straight: Mapping[str, torch.Tensor]
    resumed: Mapping[str, torch.Tensor]
    saved: Walked


@dataclass(frozen=True)
class Gap:
    """How far two results are apart."""

    point: Point
    tensor: str
    gap: float
    limit: float

    @property
    def ratio(self) -> float:
        """In units of the limit; infinite for what is not finite."""
        return self.gap / self.limit if math.isfinite(self.gap) else math.inf


def points(multiple: int = 1) -> tuple[Point, ...]:
    """The cuts, for operators that take multiples of a number of tokens."""

    def up(n: int) -> int:
        return -(-n // multiple) * multiple

    prefixes = dict.fromkeys(up(n) for n in PREFIXES)
    suffixes = dict.fromkeys(up(k) for k in SUFFIXES)
    return tuple(Point(n, k) for n in prefixes for k in suffixes)


def last_token(cuts: Sequence[Point]) -> int:
    """How many tokens all cuts need."""
    return max(point.end for point in cuts)


def resume(
    layers: Sequence[Layer], runners: Sequence[Runner], cuts: Sequence[Point]
) -> list[Resumed]:
    """Every cut: prefix, straight run, snapshot, rest.

    The snapshot is only copied after the straight run: an operator that returns a buffer of its
    own, which its next call overwrites, has not saved anything.
    """
    found = []
    for n in dict.fromkeys(point.prefix for point in cuts):
        live = walk(layers, runners, (0, n))
        here = [point for point in cuts if point.prefix == n]
        straight = [walk(layers, runners, (0, point.end)).saved() for point in here]
        saved = live.saved()
        for point, whole in zip(here, straight, strict=True):
            rest = walk(layers, runners, (n, point.end), saved.pieces).saved()
            tail = None if whole.output is None else whole.output[:, n:]
            found.append(
                Resumed(
                    point,
                    named(layers, Walked(tail, whole.pieces)),
                    named(layers, rest),
                    saved,
                )
            )
    return found


def named(layers: Sequence[Layer], walked: Walked) -> dict[str, torch.Tensor]:
    """What is compared, by name: the last output, and every layer's piece at the end."""
    pieces = zip(layers, walked.pieces, strict=True)
    found = {layer.kind.piece: layer.columns(piece) for layer, piece in pieces}
    return found if walked.output is None else {"output": walked.output, **found}


@dataclass(frozen=True)
class Limits:
    """What rounding costs: the exact and the rounded walk over all tokens."""

    layers: Sequence[Layer]
    exact: Walked
    rounded: Walked

    @classmethod
    def of(
        cls, layers: Sequence[Layer], tokens: int, runners: Sequence[Runner] | None = None
    ) -> Limits:
        """By walking over all tokens twice."""
        exact = walk(layers, [REFERENCE] * len(layers), (0, tokens))
        rounded = walk(layers, runners or [BASELINE] * len(layers), (0, tokens))
        return cls(layers, exact, rounded)

    def in_any_order(self, tokens: int, samples: int) -> Limits:
        """The same, with what rounding costs in any order of summation."""

        def again() -> Tensors:
            return _by_place(walk(self.layers, [BASELINE] * len(self.layers), (0, tokens)))

        plain, exact = _by_place(self.rounded), _by_place(self.exact)
        accumulate = self.layers[0].saver.recipe.accumulate
        found = any_order(again, plain, exact, accumulate, samples)
        pieces = tuple(found[str(i)] for i in range(len(self.layers)))
        return replace(self, rounded=Walked(found.get("output"), pieces))

    def output(self, point: Point) -> float:
        """For the outputs of a suffix: the larger of its own error and that of all tokens."""
        assert self.exact.output is not None
        assert self.rounded.output is not None
        part = slice(point.prefix, point.end)
        errors = [
            relative_l2(self.rounded.output[:, stretch], self.exact.output[:, stretch])
            for stretch in (part, slice(None))
        ]
        recipes = [layer.reader.recipe for layer in self.layers]
        least = max(floor(r.io, r.accumulate) for r in recipes)
        return Allowance({WHOLE: max(errors)}, least, 2, self.stored()).limit(WHOLE)

    def piece(self, index: int) -> float:
        """For the piece of a layer."""
        layer = self.layers[index]
        recipe = layer.saver.recipe
        dtype = recipe.state if layer.kind is KDA else recipe.io
        error = relative_l2(self.rounded.pieces[index], self.exact.pieces[index])
        own = max(floor(one.saver.recipe.io, recipe.accumulate) for one in self.layers[: index + 1])
        least = max(floor(dtype, recipe.accumulate), own if index else 0.0)
        return Allowance({WHOLE: error}, least, 2, self.stored()).limit(WHOLE)

    def stored(self) -> float:
        """What the snapshot itself costs: a KDA state that is kept less precisely than computed."""
        kda = [layer for layer in self.layers if layer.kind is KDA]
        recipes = [one.recipe for layer in kda for one in (layer.saver, layer.reader)]
        return max((handed_over(recipe) for recipe in recipes), default=0.0)

    def by_name(self, point: Point) -> dict[str, float]:
        """Of everything that is compared at a cut."""
        found = {layer.kind.piece: self.piece(i) for i, layer in enumerate(self.layers)}
        return found if self.exact.output is None else {"output": self.output(point), **found}


def _by_place(walked: Walked) -> Tensors:
    """The output if there is one, and every layer's piece by its number."""
    found: Tensors = {str(i): piece for i, piece in enumerate(walked.pieces)}
    return found if walked.output is None else {"output": walked.output, **found}


def gaps(cut: Resumed, limits: Mapping[str, float]) -> list[Gap]:
    """The distances at a cut, of what both ways return: a reader may have no output."""
    return [
        Gap(cut.point, name, distance(cut.resumed[name], cut.straight[name]), limit)
        for name, limit in limits.items()
        if name in cut.resumed and name in cut.straight
    ]


def distance(left: torch.Tensor, right: torch.Tensor) -> float:
    """Relative L2; infinite where only one is finite, or for another shape."""
    return apart(left, right)[WHOLE]


def worst_by_tensor(found: Sequence[Gap]) -> dict[str, Gap]:
    """The worst gap of every tensor, in units of the limit."""
    worst: dict[str, Gap] = {}
    for gap in found:
        if gap.tensor not in worst or not gap.ratio <= worst[gap.tensor].ratio:
            worst[gap.tensor] = gap
    return worst


def judged(blank: Finding, found: Sequence[Gap]) -> Finding:
    """The finding of all gaps, without a diagnosis."""
    worst = worst_by_tensor(found)
    bad = [gap for gap in found if not gap.ratio <= 1]
    told = replace(
        blank,
        outcome=Outcome.FAIL if bad else Outcome.PASS,
        metrics={f"{name}.difference": gap.gap for name, gap in worst.items()},
        limits={f"{name}.difference": gap.limit for name, gap in worst.items()},
    )
    if not bad:
        return told
    first = max(worst.values(), key=lambda gap: gap.ratio)
    place = {"tensor": first.tensor, "n": first.point.prefix, "suffix": first.point.suffix}
    values = {"tensor": first.tensor, "gap": f"{first.gap:.3g}", "n": first.point.prefix}
    return replace(told, location=place, hint=Message("K3O-800", values))


def in_some_recipe(
    own: Finding, layers: Sequence[Layer], cuts: Sequence[Resumed], tokens: int
) -> Finding:
    """A finding, or that of the first legal way of rounding in which it passes."""
    blank = replace(own, location={}, hint=None, outcome=Outcome.PASS)
    limits = partial(Limits.of, layers, tokens)

    def again(limits: Limits) -> Finding:
        return judged(blank, [g for cut in cuts for g in gaps(cut, limits.by_name(cut.point))])

    choices = [layer.saver.operator.legal(layer.saver.recipe) for layer in layers]
    legal = {}
    for name in dict.fromkeys(name for choice in choices for name in choice):
        arithmetics = {
            layer.saver.operator.name: choice[name]
            for layer, choice in zip(layers, choices, strict=True)
            if name in choice
        }
        runner = by_arithmetic(arithmetics)
        legal[name] = partial(lambda one: again(limits([one] * len(layers))), runner)
    way = in_some_way(own, excess, lambda n: again(limits().in_any_order(tokens, n)), legal)
    if way is None:
        return own
    found, other = way
    if other is None:
        return found
    note = Message("K3O-011", {"recipe": other})
    return replace(found, outcome=Outcome.ACCEPTABLE, notes=(note,))


def excess(found: Finding) -> float:
    """The worst gap in units of its limit."""
    return max((share(gap, found.limits[n]) for n, gap in found.metrics.items()), default=0.0)
