"""From an observation to its diagnosis: a table with one row per known failure.

Rows are tried by phase, then by how telling their evidence is (the request itself, the gateway's
family, the body, the status). The first failing row is the diagnosis; what was seen later excludes
earlier causes, because a row of a phase only looks at observations that ended there. Rows of the
last phase are about an answer's content and independent of each other, so all that fit are kept.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from k3check.link.diagnosis import (
    answer,
    connection,
    gateways,
    http,
    limits,
    meaning,
    requests,
    stream,
    tools,
)
from k3check.link.diagnosis.row import SURE, Heals, Hit, Level, Phase, Row, Tier
from k3check.link.diagnosis.values import values_of

if TYPE_CHECKING:
    from k3check.link.diagnosis.observation import Observation
    from k3check.link.wire.redact import Redactor

__all__ = ["Heals", "Hit", "Level", "Phase", "Row", "Tier", "classify", "table"]


@cache
def table() -> tuple[Row, ...]:
    """All rows in the order in which they are tried."""
    modules = (connection, requests, limits, http, gateways, answer, stream, meaning, tools)
    rows = [row for module in modules for row in module.ROWS]
    return tuple(sorted(rows, key=lambda row: (row.phase, row.tier)))


def matches(row: Row, seen: Observation, redactor: Redactor) -> Hit | None:
    """The row's hit on an observation, or None."""
    found = row.when(seen)
    if found is None or found is False:
        return None
    own = {} if found is True else dict(found)
    sure = bool(own.pop(SURE, True))
    return Hit(row, redactor.value(values_of(seen, redactor) | own), sure)


def classify(seen: Observation, redactor: Redactor) -> tuple[Hit, ...]:
    """What explains an observation.

    Args:
        seen: the observation.
        redactor: every value taken from outside passes through it.

    Returns:
        The failing diagnosis alone (of an answer's content: every failing one), or the warnings
        and notes if nothing fails, warnings first; empty for a good answer without remarks.
    """
    hits: list[Hit] = []
    for row in table():
        hit = matches(row, seen, redactor)
        if hit is None:
            continue
        if row.level is Level.FAIL and row.phase < Phase.MEANING:
            return (hit,)
        hits.append(hit)
    failing = tuple(hit for hit in hits if hit.row.level is Level.FAIL)
    if failing:
        return failing
    return tuple(sorted(hits, key=lambda hit: hit.row.level is Level.NOTE))
