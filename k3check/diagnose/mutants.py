"""The nearest mutant: one change at one place of the reference that explains what came out.

Mutants go through the cases from the smallest on, passing ones included, and are given up at the
first that they do not explain; so nearly all of them cost one evaluation of one token. Where no
mutant explains everything everywhere, those that explain the wrong places alone are tried in
scopes (see :mod:`k3check.diagnose.scoped`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from k3check.diagnose import scoped
from k3check.diagnose.outcome import Nearest, outcome
from k3check.diagnose.prediction import NEAR, predict
from k3check.diagnose.record import distance
from k3check.diagnose.trial import Match, search
from k3check.model import MUTANT
from k3check.mutate.mutants import mutations
from k3check.mutate.mutation import Mutation
from k3check.mutate.site import Recorder, probed
from k3check.nouns.fault import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from k3check.diagnose.record import Record
    from k3check.nouns.operator import Candidate
    from k3check.nouns.tensors import Tensors

#: A mutation and the form of the reference that has its site.
Variant = tuple[Mutation, "Mapping[str, object]"]
#: Shares of a search's time after which one kind of mutants is given up.
UNSCOPED, SCOPED, COMPARED = 0.75, 0.92, 1.0
#: Changes whose words are less plain than this are nobody's first mistake: a search that has tried
#: all others has tried enough to say that something is unique.
USUAL = 3
#: Records in which sites are looked for.
LOOKED_AT = 3
#: Predictions in exact arithmetic that differ by less are the same.
SAME = 1e-9
#: the seed of inputs that no candidate has seen
FRESH = 7919
#: ... of which those with more numbers are left out: they take long and say nothing else
FRESH_SIZE = 80_000


def as_fault(mutation: Mutation, form: Mapping[str, object]) -> Fault:
    """A mutation as a mistake that can be searched for."""
    return Fault(
        MUTANT,
        mutation.slug,
        changes=form,
        values=mutation.said(),
        during=mutation.during,
        only=mutation.scope.outputs,
    )


def sites(candidate: Candidate, form: Mapping[str, object], records: Sequence[Record]) -> Recorder:
    """The sites of a form of the reference."""
    recorder = Recorder()
    right = Fault(MUTANT, "none", changes=form)
    more = [seen for seen in records[LOOKED_AT:] if seen.inputs.get("cu_seqlens") is not None][:1]
    with probed(recorder):
        for seen in [*records[:LOOKED_AT], *more]:
            predict(candidate, [right], seen.inputs)
    return recorder


def by_work(candidate: Candidate, records: Sequence[Record]) -> list[Record]:
    """Records with their facts, in the order of what an evaluation takes: steps of a loop first."""

    def looked_at(seen: Record) -> tuple[int, Record]:
        recorder = Recorder()
        with probed(recorder):
            predict(candidate, [], seen.inputs)
        return recorder.visits, replace(seen, facts=recorder.facts)

    made = [looked_at(seen) for seen in records]
    return [seen for _, seen in sorted(made, key=lambda pair: (pair[0], pair[1].size))]


def everywhere(candidate: Candidate, records: Sequence[Record]) -> Iterator[list[Variant]]:
    """All mutations without a scope, the plainest first, form by form.

    A site of the usual form counts once; those of a chunkwise form count in every size.
    """
    known: tuple[str, ...] = ()
    for form in candidate.operator.forms(candidate.interface):
        recorder = sites(candidate, form, records)
        yield [(mutation, form) for mutation in mutations(recorder, known)]
        known = known or tuple(recorder.sites)


def nearest(
    candidate: Candidate,
    records: Sequence[Record],
    listed: Sequence[Match],
    after: Callable[[float], Callable[[], bool]],
) -> Nearest | None:
    """The mutants that explain all records; None if there are none.

    Args:
        candidate, records: what was seen.
        listed: the listed mistakes with their residuals, none of which explains everything.
        after: ``after(share)()``: whether that share of the time is over.
    """
    ordered = by_work(candidate, records)
    first = scoped.focused(candidate, ordered)
    seen_to: list[Match] = []
    fits: list[Variant] = []
    complete = True
    forms = everywhere(candidate, ordered)
    for every, near in ((every, near) for every in forms for near in (True, False)):
        if any(m.residual <= NEAR for m in seen_to) and near:
            break  # what the usual form explains is told by its words
        mine = [(m, form) for m, form in every if m.change.local is near]
        looked = [*first, *ordered] if near else ordered
        each = ((as_fault(m, form),) for m, form in mine)
        matches, done = search(candidate, each, looked, after(UNSCOPED), to_the_end=False)
        if near:
            pairs = zip(mine, matches, strict=False)
            fits += [one for one, match in pairs if match.reached > len(first)]
        left = mine[len(matches) :]
        done = done or bool(left and left[0][0].change.plain > USUAL)
        seen_to, complete = [*seen_to, *matches], complete and done
    found = [m for m in seen_to if m.residual <= NEAR]
    if not found and first:
        limited = list(in_parts(candidate, ordered, fits))
        for touched, sets in by_records(limited, ordered):
            matches, done = search(candidate, sets, touched, after(SCOPED), to_the_end=False)
            seen_to, complete = [*seen_to, *matches], complete and done
        found = [m for m in seen_to if m.residual <= NEAR]
    if not found:
        return None
    told = outcome(candidate, found, [*listed, *seen_to], ordered, complete=complete)
    order = {match.name: place for place, match in enumerate(seen_to)}
    group = sorted(told.group, key=lambda m: order[m.name])
    return replace(told, group=tuple(apart(candidate, group, after(COMPARED))))


def in_parts(
    candidate: Candidate, records: Sequence[Record], fits: Sequence[Variant]
) -> Iterator[Variant]:
    """Mutants that explain the wrong places, in every scope that these allow."""
    for scope in scoped.scopes(candidate, records):
        for mutation, form in fits:
            if scope.fits(mutation.site):
                yield replace(mutation, scope=scope), form


def by_records(
    limited: Sequence[Variant], records: Sequence[Record]
) -> Iterator[tuple[list[Record], list[tuple[Fault, ...]]]]:
    """Scoped mutants, put together by the records that they can touch; failing ones come first.

    The others passed, and a mutant that cannot touch them explains that.
    """
    failing_first = sorted(records, key=lambda seen: not seen.failed)
    groups: dict[str, tuple[list[Record], list[tuple[Fault, ...]]]] = {}
    for mutation, form in limited:
        facts = dict(mutation.scope.facts)
        if facts.pop("later_sequence", False):
            facts["packed"] = True
        touched = [
            seen
            for seen in failing_first
            if seen.failed or all(seen.facts.get(n, False) == v for n, v in facts.items())
        ]
        key = ", ".join(f"{n}={v}" for n, v in sorted(facts.items()))
        groups.setdefault(key, (touched, []))[1].append((as_fault(mutation, form),))
    yield from groups.values()


def with_rivals(
    candidate: Candidate,
    records: Sequence[Record],
    told: Nearest,
    listed: Sequence[Match],
    after: Callable[[float], Callable[[], bool]],
) -> Nearest:
    """A listed mistake that holds in some cases only, with the mutants that explain these too.

    Where several cases fail there is much to tell it from others by; where one fails, something
    else in a part may look like it, and on the inputs at hand nothing tells them apart.
    """
    if sum(seen.failed for seen in records) > 1 or len(records) < 3:
        return told
    others = nearest(candidate, records, listed, after)
    if others is None:
        return told
    known = len(told.group)
    group = apart(candidate, [*told.group, *others.group], after(COMPARED), keep=known)
    return replace(told, group=tuple(group))


def apart(
    candidate: Candidate, group: Sequence[Match], enough: Callable[[], bool], *, keep: int = 1
) -> list[Match]:
    """A group without those that are the same on all inputs as one before them.

    They predict the same on what the candidate was called with; whether they are one function is
    seen on inputs that it was not. If time runs out, they count as different. The first ``keep``
    stay in any case.
    """
    if len(group) == 1:
        return list(group)
    fresh = inputs_of(candidate)
    kept: list[tuple[Match, list[Tensors]]] = []
    for place, match in enumerate(group):
        if enough():
            kept.append((match, []))
            continue
        try:
            told = [predict(candidate, match.faults, inputs) for inputs in fresh]
        except (RuntimeError, ValueError, IndexError, KeyError):
            told = []
        if place < keep or not any(same(told, other) for _, other in kept):
            kept.append((match, told))
    return [match for match, _ in kept]


def inputs_of(candidate: Candidate) -> list[Tensors]:
    """Inputs of every case that fits and is not large, from another seed."""
    operator = candidate.operator
    found: list[Tensors] = []
    for case in operator.cases:
        fitted = operator.fit(case, candidate.interface)
        if isinstance(fitted, str) or not case.diagnosable or case.profile == "stress":
            continue
        raw = operator.raw(fitted, candidate.semantics, FRESH)
        if sum(x.numel() for x in raw.values() if isinstance(x, torch.Tensor)) <= FRESH_SIZE:
            recipe, interface = candidate.recipe, candidate.interface
            found.append(operator.present(raw, candidate.semantics, interface, recipe))
    return [*found, *(turned(inputs) for inputs in found)]


def turned(inputs: Tensors) -> Tensors:
    """The same with parameters of the other sign: a bias that chooses others."""
    return {
        name: -value
        if isinstance(value, torch.Tensor) and value.is_floating_point() and value.dim() == 1
        else value
        for name, value in inputs.items()
    }


def same(one: Sequence[Tensors], other: Sequence[Tensors]) -> bool:
    """Whether two mistakes gave the same on all fresh inputs, and there were some."""
    if not one or len(one) != len(other):
        return False
    return all(
        distance(x[n].double(), y[n].double()) <= SAME
        for x, y in zip(one, other, strict=True)
        for n in x
        if isinstance(x[n], torch.Tensor)
    )
