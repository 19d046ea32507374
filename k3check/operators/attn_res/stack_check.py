"""Checks of the walk over a stack: every mix in turn, the number of mixes, no look-ahead."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from k3check.compare.agree import Compared, agree, apart, in_some_way
from k3check.compare.allowance import WHOLE, Allowance, floor
from k3check.compare.distance import relative_l2
from k3check.compare.orders import SAMPLES, any_order
from k3check.compare.twice import LOUD
from k3check.diagnose.conclude import margin_of, rank
from k3check.diagnose.prediction import NEAR
from k3check.model import Diagnosis, Finding, Message, Outcome
from k3check.nouns.recipe import EXACT, rounding
from k3check.nouns.runner import Sublayers
from k3check.operators.attn_res import candidate as builtin
from k3check.operators.attn_res import recipes
from k3check.operators.attn_res.semantics import K3, AttnResSemantics
from k3check.operators.attn_res.stack import (
    FAULTS,
    STACK,
    Stack,
    Walked,
    place_name,
    small_stack,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.compare.agree import ByMetric
    from k3check.nouns.operator import Candidate
    from k3check.nouns.recipe import Arithmetic, Recipe
    from k3check.nouns.tensors import Tensors

    WholeStack = Callable[[Stack, Callable[[int, torch.Tensor], torch.Tensor]], torch.Tensor]


def whole_stack(candidate: Candidate) -> WholeStack | str:
    """The candidate as a stack: its own, or its mix within the built-in one; or why not."""
    interface = candidate.interface
    if interface.output_norm:
        return "the callable includes the norm after the mix; the walk needs the mix itself"

    def run(stack: Stack, sublayer: Callable[[int, torch.Tensor], torch.Tensor]) -> torch.Tensor:
        stack = stack.to(stack.embedding.dtype, candidate.home)
        sublayers = Sublayers(stack.updates)
        inputs = {
            "hidden": stack.embedding,
            "sublayers": sublayers,
            "queries": stack.queries,
            "gains": stack.gains,
            "block_size": stack.block,
            "eps": candidate.semantics.eps,
        }
        if interface.stack:
            result = candidate.call(inputs)["output"]
        else:
            result = builtin.stack(**inputs, mix=partial(one_mix, candidate))
        for number, value in sublayers.handed:
            sublayer(number, value)
        return result

    return run


def one_mix(
    candidate: Candidate, sources: torch.Tensor, query: torch.Tensor, gain: torch.Tensor, eps: float
) -> torch.Tensor:
    """The candidate's mix of some sources."""
    inputs: dict[str, Any] = {"sources": sources.clone(), "eps": eps}
    if candidate.interface.folded:
        wide = torch.float64 if sources.dtype == torch.float64 else torch.float32
        inputs["fold"] = query.to(wide) * gain.to(wide)
    else:
        inputs |= {"query": query.clone(), "gain": gain.clone()}
    if candidate.interface.delta:
        inputs["delta"] = torch.zeros_like(sources[0])
    result: torch.Tensor = candidate.call(inputs)["output"]
    return result


def record(run: WholeStack, stack: Stack) -> Walked:
    """Run a stack whose sub-layers note what they get and return the stack's updates."""
    handed: list[torch.Tensor] = []

    def sublayer(number: int, value: torch.Tensor) -> torch.Tensor:
        handed.append(value.detach().cpu().clone())
        return stack.updates[number].clone()

    output = run(stack, sublayer)
    return Walked(tuple(handed), output.detach().cpu())


def walk_check(
    run: WholeStack | str,
    recipe: Recipe,
    seed: int,
    blank: Finding,
    semantics: AttnResSemantics = K3,
) -> Finding:
    """Compare what every sub-layer is handed, and the last mix, with the reference's walk."""
    if isinstance(run, str):
        return skip(blank, run)
    stack = small_stack(seed).to(recipe.io)
    seen = record(run, stack)
    expected = walk(STACK, stack, EXACT, semantics)
    layers = len(stack.updates) // 2
    if len(seen.handed) != 2 * layers:
        calls = {"found": len(seen.handed), "expected": 2 * layers}
        return replace(blank, outcome=Outcome.FAIL, hint=Message("K3O-285", calls))
    costs = rounding_costs(stack, recipe, semantics, expected)
    own = agree(distances(seen, expected), costs)

    def with_costs(samples: int = 0, other: Arithmetic | None = None) -> Compared:
        wider = rounding_costs(stack, recipe, semantics, expected, samples, other)
        return agree(distances(seen, expected), wider)

    legal = {
        name: partial(with_costs, other=other) for name, other in recipes.legal(recipe).items()
    }
    way = in_some_way(own, lambda one: one.excess, with_costs, legal)
    compared = own if way is None else way[0]
    places = list(compared.apart)
    errors, limits = (
        [by_place[place][WHOLE] for place in places] for by_place in (own.apart, compared.limits)
    )
    worst = max(range(len(places)), key=lambda i: compared.excess_of(places[i]))
    found = replace(
        blank,
        metrics={"output.relative_l2": errors[-1], "worst_mix": errors[worst]},
        limits={"output.relative_l2": limits[-1], "worst_mix": limits[worst]},
    )
    if way is not None and way[1] is not None:
        note = Message("K3O-011", {"recipe": way[1]})
        return replace(found, outcome=Outcome.ACCEPTABLE, notes=(note,))
    if way is not None:
        return found
    first = places.index(own.beyond[0])
    values: dict[str, Any] = {"place": place_name(first, layers), "bad": len(own.beyond)}
    return replace(
        found,
        outcome=Outcome.FAIL,
        series={"error_by_mix": errors},
        hint=Message("K3O-286", values | {"total": len(places)}),
        location={"tensor": "mix", "layer": first // 2, "site": place_name(first, layers)},
        diagnoses=nearest(stack, seen, costs, semantics),
    )


def rounding_costs(
    stack: Stack,
    recipe: Recipe,
    semantics: AttnResSemantics,
    expected: Walked,
    samples: int = 0,
    other: Arithmetic | None = None,
) -> dict[str, Allowance]:
    """What rounding may cost at every place, in any order of summation if samples are given.

    ``other``: another arithmetic than the recipe's.
    """
    low = other or rounding(recipe, block_operands=True)

    def walked() -> Tensors:
        return by_place(walk(STACK, stack, low, semantics))

    plain, exact = walked(), by_place(expected)
    base = any_order(walked, plain, exact, recipe.accumulate, samples) if samples else plain
    least = 2 * floor(recipe.io, recipe.accumulate)  # each place is a part of the whole
    return {
        place: Allowance({WHOLE: relative_l2(base[place], right)}, least)
        for place, right in exact.items()
    }


def by_place(walked: Walked) -> dict[str, torch.Tensor]:
    """Everything that is compared, by its place in the order of the walk."""
    return {str(place): value for place, value in enumerate(walked.places)}


def distances(seen: Walked, expected: Walked) -> ByMetric:
    """How far two walks are apart at every place."""
    right = by_place(expected)
    return {place: apart(value, right[place]) for place, value in by_place(seen).items()}


def nearest(
    stack: Stack, seen: Walked, costs: Mapping[str, Allowance], semantics: AttnResSemantics
) -> tuple[Diagnosis, ...]:
    """The mistakes of a walk that would have handed exactly this to every sub-layer."""
    residuals = []
    for fault in FAULTS:
        would = walk(fault.applied(STACK), stack, EXACT, semantics)
        residuals.append((agree(distances(seen, would), costs).excess, fault))
    residuals.sort(key=lambda pair: pair[0])
    fitting = [(residual, fault) for residual, fault in residuals if residual <= NEAR]
    rest = [residual for residual, _ in residuals if residual > NEAR]
    best = min((residual for residual, _ in fitting), default=math.inf)
    margin = margin_of(best, rest)
    confidence = rank(alone=len(fitting) == 1, margin=margin)
    return tuple(Diagnosis(fault.code, confidence, residual, margin) for residual, fault in fitting)


def counts_check(block: int, layers: int, blank: Finding) -> Finding:
    """The number of mixes and of their sources over the full depth, in the built-in walk."""
    counted: list[int] = []

    def mix(sources: torch.Tensor, *_: Any) -> torch.Tensor:
        counted.append(len(sources))
        return sources[-1]

    flat = torch.zeros(2 * layers + 1, 1)
    builtin.stack(torch.zeros(1, 1), [torch.ones_like] * (2 * layers), flat, flat, block, mix=mix)
    return judge_counts(counted, block, layers, blank)


def expected_counts(block: int, layers: int) -> list[int]:
    """Sources of every mix: attention ceil(i / block) + 1, MLP floor(i / block) + 2, output."""
    counts = []
    for i in range(layers):
        if i:
            counts.append(-(-i // block) + 1)
        counts.append(i // block + 2)
    return [*counts, -(-layers // block) + 1]


def judge_counts(counted: list[int], block: int, layers: int, blank: Finding) -> Finding:
    """Compare the counts with the formula."""
    expected = expected_counts(block, layers)
    found = replace(
        blank,
        metrics={"mixes": float(len(counted)), "snapshots": float(max(counted, default=1) - 1)},
        evidence={"mixes": len(counted), "snapshots": max(counted, default=1) - 1},
    )
    if counted == expected:
        return found
    wrong = next(
        (i for i, (a, b) in enumerate(zip(counted, expected, strict=False)) if a != b),
        min(len(counted), len(expected)),
    )
    values = {
        "mix": wrong + 1,
        "found": counted[wrong] if wrong < len(counted) else 0,
        "expected": expected[wrong] if wrong < len(expected) else 0,
    }
    return replace(found, outcome=Outcome.FAIL, hint=Message("K3O-287", values))


def look_ahead_check(
    run: WholeStack | str,
    recipe: Recipe,
    seed: int,
    blank: Finding,
    semantics: AttnResSemantics = K3,
) -> Finding:
    """Changing a block's updates must change nothing that was handed on before them.

    A mix is called on the same inputs in both runs: bits that differ within rounding are those of
    another order of summation.
    """
    if isinstance(run, str):
        return skip(blank, run)
    exact = small_stack(seed).to(recipe.io)
    stack = exact
    first = record(run, stack)
    layers = len(stack.updates) // 2
    limits: list[float] = []
    largest = 0.0
    for block in range(1, -(-layers // stack.block)):
        start = 2 * block * stack.block
        updates = stack.updates.clone()
        updates[start:] = -LOUD * updates[start:]
        again = record(run, replace(stack, updates=updates))
        pairs = zip(first.handed[: start + 1], again.handed[: start + 1], strict=False)
        for number, (one, other) in enumerate(pairs):
            if torch.equal(one, other):
                continue
            if not limits:
                expected = walk(STACK, exact, EXACT, semantics)
                # Both runs are the candidate's: other bits are another order of summation.
                costs = rounding_costs(exact, recipe, semantics, expected, SAMPLES)
                limits = [allowance.limit(WHOLE) for allowance in costs.values()]
            gap = apart(other, one)[WHOLE]
            largest = max(largest, gap)
            if not gap <= limits[number]:
                values = {"place": place_name(number, layers), "block": block}
                return replace(
                    blank,
                    outcome=Outcome.FAIL,
                    hint=Message("K3O-282", values),
                    location={"tensor": "mix", "layer": number // 2},
                )
        if torch.equal(first.output, again.output):
            return replace(blank, outcome=Outcome.FAIL, hint=Message("K3O-280", {"block": block}))
    if limits:
        note = Message("K3O-711", {"tensor": "mix", "gap": f"{largest:.3g}"})
        return replace(blank, outcome=Outcome.ACCEPTABLE, notes=(note,))
    return blank


def skip(blank: Finding, reason: str) -> Finding:
    """The check does not apply."""
    return replace(blank, outcome=Outcome.SKIPPED, notes=(Message("K3O-016", {"reason": reason}),))
