"""Checks that need no reference, for any operator: what they need to know of it is data.

Each compares two calls of the candidate with one another, within what rounding costs (see
:mod:`k3check.compare.twice`). An operator's family says along which dimensions of its tensors
things lie that have nothing to do with one another - tokens, heads, sequences, channels, experts -
and which of its inputs a caller may hold as a view.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import torch

from k3check.compare.agree import distances
from k3check.compare.twice import LOUD, Same, exact_of, inputs_of, judge_same, of_shape, outputs_of
from k3check.model import Finding, Message, Outcome, Text
from k3check.nouns.call import call
from k3check.nouns.candidate_error import CandidateError
from k3check.nouns.convention import ConventionBroken
from k3check.nouns.operator import Property
from k3check.nouns.runner import Watched
from k3check.properties.along import Along, shuffled, view

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from k3check.nouns.operator import Candidate
    from k3check.nouns.tensors import Tensors

    #: two results that must agree; or why the check does not apply; or what a refusal is told with
    Found = Same | str | Message
    Run = Callable[[Candidate, int], Found]

#: CUDA's word for a grid of no blocks: nothing ran, and the context is as good as before.
NO_LAUNCH = "invalid configuration argument"


def _reordered(
    along: Callable[[Any], Along | str], name: str, candidate: Candidate, seed: int
) -> Found:
    where = along(candidate.interface)
    if isinstance(where, str):
        return where
    inputs = inputs_of(candidate, where.spec, name, seed)
    if isinstance(inputs, str):
        return inputs
    order = shuffled(where.number(inputs), seed)
    moved = outputs_of(candidate, where.in_order(inputs, order))
    back = where.results(order)
    return Same(moved, back(outputs_of(candidate, inputs, like=moved)), inputs, back)


def _alone(along: Along, candidate: Candidate, seed: int) -> Found:
    multiple = getattr(candidate.interface, "multiple_of", 1)
    if multiple > 1:
        return Text("the operator only takes multiples of {m} tokens", m=multiple)
    inputs = inputs_of(candidate, along.spec, "alone", seed)
    if isinstance(inputs, str):
        return inputs
    count = along.number(inputs)
    chosen = sorted({0, count // 2, count - 1})
    each = [outputs_of(candidate, along.part(inputs, i, 1)) for i in chosen]
    joined = {
        name: torch.cat([one[name] for one in each], dim=along.outputs[name]) for name in each[0]
    }

    def rows(found: Tensors) -> Tensors:
        kept = torch.tensor(chosen)
        dims = along.outputs
        return {n: x.index_select(dims[n], kept) for n, x in found.items() if n in dims}

    return Same(joined, rows(outputs_of(candidate, inputs)), inputs, rows)


def _repeated(spec: Any, candidate: Candidate, seed: int) -> Found:
    inputs = inputs_of(candidate, spec, "repeat", seed)
    if isinstance(inputs, str):
        return inputs
    first = outputs_of(candidate, inputs)

    def off(again: Tensors) -> float:
        apart = distances(candidate.operator.outputs, again, first)
        return max(value for metrics in apart.values() for value in metrics.values())

    worst = max((outputs_of(candidate, inputs, like=first) for _ in range(4)), key=off)
    return Same(worst, first, inputs, times=1.0, told="K3O-711")


def _viewed(spec: Any, names: Sequence[str], candidate: Candidate, seed: int) -> Found:
    inputs = inputs_of(candidate, spec, "strided", seed)
    if isinstance(inputs, str):
        return inputs
    straight = outputs_of(candidate, inputs)
    watched = Watched(candidate.target)

    def layout(given: Tensors) -> Tensors:
        return {name: view(x) if name in names else x for name, x in given.items()}

    try:
        viewed = outputs_of(replace(candidate, target=watched), inputs, layout, like=straight)
    except CandidateError as error:
        return refusal("K3O-719", error)
    if watched.tensors and not watched.views:
        return Text("the convention {name} hands on contiguous copies", name=candidate.convention)
    return Same(viewed, straight, inputs)


def _without_tokens(
    along: Along, carried: Mapping[str, str], candidate: Candidate, seed: int
) -> Found:
    inputs = inputs_of(candidate, along.spec, "no-tokens", seed)
    if isinstance(inputs, str):
        return inputs
    shapes = {name: list(x.shape) for name, x in exact_of(candidate, inputs).items()}
    for name, dim in along.outputs.items():
        if name in shapes:
            shapes[name][dim] = 0
    watched = Watched(candidate.target)
    empty = along.part(inputs, 0, 0)
    outputs: Tensors = {}
    try:
        outputs, _ = call(replace(candidate, target=watched), empty)
    except CandidateError as error:
        return refusal("K3O-718", error)
    except ConventionBroken:
        if watched.calls:
            raise
    if not watched.calls:
        return Text(
            "the convention {name} calls it once a token, so never without any",
            name=candidate.convention,
        )
    for output in candidate.operator.outputs:
        if output.name in shapes:
            name = output.name
            of_shape(name, outputs.get(name), tuple(shapes[name]), "K3O-717")
    kept = {n: i for n, i in carried.items() if n in outputs and i in inputs}
    left = {n: outputs[n] for n in kept}
    right = {n: inputs[i].to(left[n].dtype) for n, i in kept.items()}
    return Same(left, right, inputs, times=0.0)


def _unforeseen(along: Along, loud: Sequence[str], candidate: Candidate, seed: int) -> Found:
    inputs = inputs_of(candidate, along.spec, "causal", seed)
    other = inputs_of(candidate, along.spec, "other-future", seed)
    if isinstance(inputs, str) or isinstance(other, str):
        return inputs if isinstance(inputs, str) else str(other)
    cut = along.number(inputs) - 5
    changed = dict(inputs)
    for name, dim in along.inputs.items():
        if name in inputs:
            early = inputs[name].narrow(dim, 0, cut)
            late = other[name].narrow(dim, cut, 5) * (LOUD if name in loud else 1.0)
            changed[name] = torch.cat([early, late], dim=dim)

    def past(found: Tensors) -> Tensors:
        return {n: found[n].narrow(d, 0, cut) for n, d in along.outputs.items() if n in found}

    before = outputs_of(candidate, inputs)
    after = outputs_of(candidate, changed, like=before)
    return Same(past(after), past(before), inputs, past, times=1.0, told="K3O-726")


def refusal(code: str, error: CandidateError) -> Message:
    """What to say of a callable that raises instead of taking an input it need not take.

    Raises:
        CandidateError: it is no refusal: memory, a device.
    """
    if error.kind != "raised" and NO_LAUNCH not in error.error:
        raise error
    return Message(code, {"error": error.error})


def made(
    name: str, title: str, code: str, run: Run, needs: Sequence[str] = (), profile: str = "full"
) -> Property:
    """A property of any operator; ``code`` is what it fails with."""

    def check(candidate: Candidate, seed: int) -> Finding:
        operator = candidate.operator
        blank = Finding(
            f"{operator.name}/{name}", operator.suite, operator.name, name, Outcome.PASS, title
        )
        found = run(candidate, seed)
        if isinstance(found, str):
            notes = (Message("K3O-016", {"reason": found}),)
            return replace(blank, outcome=Outcome.SKIPPED, notes=notes)
        if isinstance(found, Message):
            return replace(blank, outcome=Outcome.ACCEPTABLE, notes=(found,))
        return judge_same(candidate, blank, found, code)

    return Property(name, title, check, frozenset(needs), profile)


#: name -> (title, code) of the checks of an order
ORDERS = {
    "token-order": ("tokens in another order, results in that order", "K3O-715"),
    "row-order": ("rows in another order, results in that order", "K3O-715"),
    "head-order": ("heads in another order, results in that order", "K3O-720"),
    "batch-order": ("sequences in another order, results in that order", "K3O-721"),
    "channel-order": ("channels in another order, results in that order", "K3O-722"),
    "expert-order": ("experts in another order change nothing else", "K3O-723"),
    "source-order": ("sources in another order give the same mix", "K3O-724"),
}


def order(name: str, along: Along | Callable[[Any], Along | str], *needs: str) -> Property:
    """Things in another order give the results in that order: a name among ``ORDERS``."""
    title, code = ORDERS[name]
    where = (lambda _interface: along) if isinstance(along, Along) else along
    return made(name, title, code, partial(_reordered, where, name), needs)


def alone(along: Along, *needs: str, things: str = "token") -> Property:
    """One of the tokens alone gives what it gives among the others, but for rounding."""
    title = f"a {things} alone equals the same {things} among others"
    return made("alone", title, "K3O-716", partial(_alone, along), needs)


def repeat(spec: Any, *needs: str) -> Property:
    """Five calls on the same inputs agree bit by bit; the one that is furthest off counts."""
    run = partial(_repeated, spec)
    return made("repeat", "five calls agree bit by bit", "K3O-706", run, needs)


def strided(spec: Any, names: Sequence[str], *needs: str) -> Property:
    """Slices of larger tensors give the same as contiguous inputs."""
    title = "views with other strides equal contiguous inputs"
    return made("strided", title, "K3O-707", partial(_viewed, spec, names), needs)


def no_tokens(along: Along, *needs: str, carried: Mapping[str, str] | None = None) -> Property:
    """No tokens give an output of none; ``carried``: outputs that are then an input."""
    run = partial(_without_tokens, along, carried or {})
    return made("no-tokens", "no tokens give an output without tokens", "K3O-708", run, needs)


def causal(along: Along, loud: Sequence[str], *needs: str) -> Property:
    """Other tokens at the end change no earlier output; the ``loud`` inputs are made large."""
    run = partial(_unforeseen, along, loud)
    return made("causal", "no output depends on later tokens", "K3O-725", run, needs)


def by_token(along: Along, views: Sequence[str], *needs: str) -> tuple[Property, ...]:
    """What holds for every operator that works token by token."""
    return (
        order("token-order", along, *needs),
        alone(along, *needs),
        repeat(along.spec, *needs),
        strided(along.spec, views, *needs),
        no_tokens(along, *needs),
    )
