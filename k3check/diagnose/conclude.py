"""From the nearest faults to the diagnoses of a finding: this is it, one of these, or unknown."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from k3check.diagnose.trial import CLEAR, Match
from k3check.model import MUTANT, TOGETHER, Confidence, Diagnosis

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from k3check.diagnose.outcome import Nearest
    from k3check.nouns.fault import Fault


#: More suspects than this help nobody.
SHOWN = 5


def diagnoses(found: Nearest) -> tuple[Diagnosis, ...]:
    """Ranked diagnoses; empty for "unknown".

    One fault that alone explains everything by a clear margin, every failed case and output
    included, is ``high``; one of a group that predicts the same, or one without a clear margin, or
    one that says nothing of a failed case, is ``medium``; faults that explain the cases but predict
    otherwise are leads, ``low``.
    """
    if not found.group:
        return ()
    codes = distinct(found.group)
    alone = len(codes) == 1 and not found.others and not found.silent
    if found.group[0].faults[0].code == MUTANT:
        alone = alone and found.complete  # a rival that was not tried may be the one
    confidence = rank(alone=alone, margin=found.margin)
    ranked = [_diagnosis(m, f, confidence, found.margin) for m in codes for f in m.faults]
    ranked += [
        _diagnosis(m, f, Confidence.LOW, None) for m in distinct(found.others) for f in m.faults
    ]
    return tuple(ranked[:SHOWN])


def rank(*, alone: bool, margin: float) -> Confidence:
    """How sure a cause that explains everything is: the one place that says ``high``.

    Args:
        alone: nothing else explains everything, and it says something of every failure.
        margin: how many times as far away the next one is that predicts otherwise.
    """
    return Confidence.HIGH if alone and margin >= CLEAR else Confidence.MEDIUM


def margin_of(best: float, others: Iterable[float]) -> float:
    """How many times as far the nearest of others is as the best, which may be exact."""
    return min(others, default=math.inf) / max(best, 0.5)


def cause(found: Nearest) -> Match | None:
    """The one mistake, or the two at once, that is named; None for a group or for "unknown"."""
    codes = distinct(found.group)
    return codes[0] if len(codes) == 1 else None


def distinct(matches: Sequence[Match]) -> list[Match]:
    """The best match of every code (a fault may exist in several chunk sizes).

    Mistakes that the public has met come first, the nearest of them before the others; mutants
    stay in their order, which is that of the plainness of their words.
    """
    best: dict[tuple[str, ...], Match] = {}
    for match in sorted(matches, key=lambda m: (len(m.faults), m.residual)):
        best.setdefault(match.name, match)
    place = {match.name: number for number, match in reversed([*enumerate(matches)])}

    def order(match: Match) -> tuple[int, bool, float]:
        unlisted = match.faults[0].code == MUTANT
        return len(match.faults), unlisted, place[match.name] if unlisted else match.residual

    return sorted(best.values(), key=order)


def _diagnosis(
    match: Match, fault: Fault, confidence: Confidence, margin: float | None
) -> Diagnosis:
    values = dict(fault.values)
    if fault is not match.faults[0]:  # the second of two mistakes that are there at once
        values[TOGETHER] = match.faults[0].code
    return Diagnosis(
        code=fault.code,
        confidence=confidence,
        residual=match.residual,
        margin=margin,
        values=values,
    )
