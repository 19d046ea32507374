"""The nearest known mistakes to what a candidate returned, over all cases that ran.

A fault predicts outputs. Its residual on a case is the distance between prediction and what came
out, in units of what rounding costs there; its residual over all cases is the largest. A fault
whose residual is at most :data:`NEAR` explains everything that was seen. Faults that predict the
same on all given inputs cannot be told apart and are reported as one group; how far the next
distinguishable fault is, is the margin.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

from k3check.diagnose.prediction import NEAR, predict, tried, unspoken
from k3check.diagnose.record import distance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from k3check.diagnose.record import Record
    from k3check.nouns.fault import Fault
    from k3check.nouns.operator import Candidate

#: The next distinguishable fault must be this many times as far away for "this is it".
CLEAR = 2.0
#: Beyond this residual a fault is given up; it only serves as the next best.
FAR = 100.0
#: How many faults are combined with all others when no single one fits.
SEEDS = 12


@dataclass(frozen=True)
class Match:
    """A fault, or two at once, with its residual over all cases.

    Attributes:
        faults: one, or two that were combined.
        residual: in units, the largest over the cases.
    """

    faults: tuple[Fault, ...]
    residual: float

    @property
    def name(self) -> tuple[str, ...]:
        """Identity for grouping: the codes."""
        return tuple(fault.code for fault in self.faults)


@dataclass(frozen=True)
class Nearest:
    """The result of a search.

    Attributes:
        group: matches that explain everything and predict the same; empty if none does.
        others: further matches that explain everything but predict something else.
        margin: residual of the nearest fault outside the group over the group's, at least.
        complete: whether the search ended before its time did.
        silent: failed cases that the best match does not speak for, because rounding decides its
            prediction there, or that it explains in part only.
    """

    group: tuple[Match, ...] = ()
    others: tuple[Match, ...] = ()
    margin: float = math.inf
    complete: bool = True
    silent: tuple[str, ...] = ()


def nearest(
    candidate: Candidate,
    records: Sequence[Record],
    *,
    budget_s: float = 10.0,
    clock: Callable[[], float] = time.process_time,
) -> Nearest:
    """Search the operator's faults, then pairs of them, for one that explains all records."""
    if not any(seen.failed for seen in records):
        return Nearest()
    deadline = clock() + budget_s
    ordered = sorted(records, key=lambda r: (not r.failed, r.size))
    known = candidate.operator.faults(candidate.semantics, candidate.interface, candidate.recipe)
    singles, complete = _search(candidate, ((f,) for f in known), ordered, deadline, clock)
    found = [m for m in singles if m.residual <= NEAR]
    everything = singles
    if not found and complete:
        seeds = sorted(singles, key=lambda m: m.residual)[:SEEDS]
        pairs, complete = _search(
            candidate, _pairs([m.faults[0] for m in seeds], known), ordered, deadline, clock
        )
        found = [m for m in pairs if m.residual <= NEAR]
        everything = singles + pairs
    if not found:
        return Nearest(complete=complete)
    best = min(found, key=lambda m: m.residual)
    group, others = _same_prediction(candidate, best, found, ordered)
    inside = {id(m) for m in group}
    rest = [m.residual for m in everything if id(m) not in inside]
    margin = min(rest, default=math.inf) / max(best.residual, 0.5)
    silent = tuple(unspoken(candidate, best.faults, ordered))
    return Nearest(tuple(group), tuple(others), margin, complete, silent)


@dataclass
class _Trial:
    """A set of faults on its way through the cases.

    Attributes:
        reached: number of cases that were looked at.
        worst: the residual over these.
        told: whether a failure among them speaks for or against it.
        doubts: cases in which it was far off, but rounding may be all of it.
        done: no case is left to look at.
    """

    faults: tuple[Fault, ...]
    reached: int = 0
    worst: float = 0.0
    told: bool = False
    doubts: list[tuple[float, Record]] = field(default_factory=list)
    done: bool = False

    @property
    def bound(self) -> float:
        """What the residual over all cases is at least, doubts aside."""
        return max([self.worst, *(units for units, _ in self.doubts)])

    @property
    def match(self) -> Match:
        """The outcome; infinitely far if no failure speaks for it."""
        return Match(self.faults, math.inf if self.done and not self.told else self.bound)


def _search(
    candidate: Candidate,
    sets: Iterator[tuple[Fault, ...]],
    records: Sequence[Record],
    deadline: float,
    clock: Callable[[], float],
) -> tuple[list[Match], bool]:
    """Residuals of sets of faults, each taken through the cases only as far as it matters.

    A residual is the largest over the cases, so what is far off in the first one is out of
    question as soon as another explains all of them. Only if none does, all are looked at to the
    end: doubts may turn out to be rounding, and the nearest ones are combined with others.
    """
    trials: list[_Trial] = []
    for faults in sets:
        if clock() > deadline:
            return [t.match for t in trials], False
        trials.append(_Trial(faults))
        _follow(candidate, trials[-1], records, NEAR)
    best = min((t.match.residual for t in trials), default=math.inf)
    limit = CLEAR * max(best, 0.5) if best <= NEAR else math.inf
    for trial in trials:
        if clock() > deadline:
            return [t.match for t in trials], False
        _follow(candidate, trial, records, limit)
    return [t.match for t in trials], True


def _follow(candidate: Candidate, trial: _Trial, records: Sequence[Record], limit: float) -> None:
    """Take a trial through further cases while its residual is within a limit."""
    while not trial.done and (trial.reached == 0 or trial.bound <= limit):
        seen = records[trial.reached]
        trial.reached += 1
        fits = trial.told and trial.worst <= NEAR
        one = tried(candidate, trial.faults, seen, careful=fits)
        if one is not None and one.doubtful and one.units <= FAR:
            trial.doubts.append((one.units, seen))
        elif one is not None:
            trial.told = trial.told or seen.failed
            trial.worst = max(trial.worst, one.units)
        if trial.reached == len(records) or trial.worst > FAR:
            _resolve(candidate, trial)
            trial.done = True


def _resolve(candidate: Candidate, trial: _Trial) -> None:
    """Look again at the cases that were in doubt, if everything else fits."""
    for units, seen in trial.doubts:
        if trial.told and trial.worst <= NEAR:
            again = tried(candidate, trial.faults, seen, careful=True)
            units = 0.0 if again is None else again.units
        trial.told = trial.told or seen.failed
        trial.worst = max(trial.worst, units)
    trial.doubts.clear()


def _pairs(seeds: Sequence[Fault], known: Sequence[Fault]) -> Iterator[tuple[Fault, ...]]:
    """Pairs of mistakes in different choices, the likeliest first."""
    tried = set()
    for one, other in [*combinations(seeds, 2), *((s, k) for s in seeds for k in known)]:
        key = frozenset((id(one), id(other)))
        if len(key) < 2 or key in tried or not _compatible(one, other):
            continue
        tried.add(key)
        yield one, other


def _compatible(one: Fault, other: Fault) -> bool:
    """Two mistakes that can be made at once: no choice has two values."""
    return (
        all(other.changes.get(name, value) == value for name, value in one.changes.items())
        and one.code != other.code
    )


def _same_prediction(
    candidate: Candidate, best: Match, found: Sequence[Match], records: Sequence[Record]
) -> tuple[list[Match], list[Match]]:
    """Split matches into those that predict what the best predicts, and the others."""
    group: list[Match] = [best]
    others: list[Match] = []
    predictions = [predict(candidate, best.faults, seen.inputs) for seen in records]
    for match in found:
        if match is best:
            continue
        same = True
        for seen, mine in zip(records, predictions, strict=True):
            theirs = predict(candidate, match.faults, seen.inputs)
            gaps = (distance(theirs[n], mine[n]) / one for n, one in seen.unit.items())
            if any(gap > 1.0 for gap in gaps):
                same = False
                break
        (group if same else others).append(match)
    return group, others
