"""The nearest known mistakes to what a candidate returned, over all cases that ran.

A fault predicts outputs. Its residual on a case is the distance between prediction and what came
out, in units of what rounding costs there; its residual over all cases is the largest. A fault
whose residual is at most :data:`NEAR` explains everything that was seen. Faults that predict the
same on all given inputs cannot be told apart and are reported as one group; how far the next
distinguishable fault is, is the margin.
"""

from __future__ import annotations

import time
from itertools import combinations
from typing import TYPE_CHECKING

from k3check.diagnose import mutants
from k3check.diagnose.outcome import Nearest, outcome
from k3check.diagnose.prediction import NEAR
from k3check.diagnose.trial import search

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from k3check.diagnose.record import Record
    from k3check.nouns.fault import Fault
    from k3check.nouns.operator import Candidate

#: How many faults are combined with all others when no single one fits.
SEEDS = 12


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
    began = clock()

    def after(share: float) -> Callable[[], bool]:
        return lambda: clock() > began + share * budget_s

    ordered = sorted(records, key=lambda r: (not r.failed, r.size))
    known = candidate.operator.faults(candidate.semantics, candidate.interface, candidate.recipe)
    singles, complete = search(candidate, ((f,) for f in known), ordered, after(1.0))
    found = [m for m in singles if m.residual <= NEAR]
    everything = singles
    if not found and complete:
        named = mutants.nearest(candidate, records, singles, after)
        if named is not None:
            return named
        seeds = sorted(singles, key=lambda m: m.residual)[:SEEDS]
        sets = _pairs([m.faults[0] for m in seeds], known)
        pairs, complete = search(candidate, sets, ordered, after(1.0))
        found = [m for m in pairs if m.residual <= NEAR]
        everything = singles + pairs
    if not found:
        return Nearest(complete=complete)
    told = outcome(candidate, found, everything, ordered, complete=complete)
    if len(told.group[0].faults) > 1:
        return told
    return mutants.with_rivals(candidate, records, told, singles, after)


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
