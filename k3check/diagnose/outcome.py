"""What a search came to: what explains everything, what predicts the same, and by how much."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from k3check.diagnose.prediction import predict, unspoken
from k3check.diagnose.record import distance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from k3check.diagnose.record import Record
    from k3check.diagnose.trial import Match
    from k3check.nouns.operator import Candidate


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


def outcome(
    candidate: Candidate,
    found: Sequence[Match],
    everything: Sequence[Match],
    records: Sequence[Record],
    *,
    complete: bool,
) -> Nearest:
    """What matches come to that explain everything, the best of them first.

    Args:
        candidate, records: what was seen.
        found: the matches that explain everything; at least one.
        everything: all that were tried, for the margin.
        complete: whether the search ended before its time did.
    """
    best = min(found, key=lambda m: m.residual)
    group, others = _same_prediction(candidate, best, found, records)
    inside = {id(m) for m in group}
    rest = [m.residual for m in everything if id(m) not in inside]
    margin = min(rest, default=math.inf) / max(best.residual, 0.5)
    silent = tuple(unspoken(candidate, best.faults, records))
    return Nearest(tuple(group), tuple(others), margin, complete, silent)


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
