"""Is ``high`` earned? Every fixture and situation again, with each provider's row left out.

What a row knew is not known then: the diagnosis may become weaker or another one, but none that is
wrong may be called sure.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from k3check.link.diagnosis import Level, classify, families, providers
from k3check.link.wire.redact import Redactor
from k3check.model import Confidence
from tests.link.catalogue import FIXTURES
from tests.link.conftest import CANARY, Bench
from tests.link.faulty import FaultyServer

if TYPE_CHECKING:
    from k3check.link.diagnosis.observation import Observation

# Diagnoses that are as true: two rows for one cause, with and without a name for who speaks.
SAME = (
    {"K3L-701", "K3L-272"},
    {"K3L-219", "K3L-700"},
    {"K3L-227", "K3L-700"},
    {"K3L-281", "K3L-702"},
    {"K3L-287", "K3L-740"},
    {"K3L-114", "K3L-700"},
    {"K3L-424", "K3L-400"},
)
ALL = "every row"


@dataclass
class Count:
    """What became of the fixtures that a row concerns."""

    concerned: int = 0
    same: int = 0
    weaker: int = 0
    wrong: tuple[str, ...] = ()


@cache
def observations() -> dict[str, tuple[str, Observation]]:
    """Every fixture's code and observation, by its name."""
    with FaultyServer([b""]) as server:
        bench = Bench(server)
        return {f.name: (f.code, bench.observe(f)) for f in FIXTURES}


@cache
def matched() -> dict[str, set[str]]:
    """By a fixture's name, the rows of which a rule, a sign or a console fits it."""
    made = {}
    for name, (_, seen) in observations().items():
        made[name] = {
            row.id
            for row in providers.table()
            if any(rule.found(seen) is not None for rule in row.says)
            or any(fits(row, seen._marks) for fits in families._PASSES)
            or any(part in seen.text for part in (*row.signs.starts, *row.console))
        }
    return made


def _first(seen: Observation) -> tuple[str, Confidence]:
    """The diagnosis and its confidence; empty for none that fails."""
    # A copy: what was derived from the rows is derived again.
    hits = classify(replace(seen), Redactor((CANARY,)))
    failing = [hit for hit in hits if hit.row.level is Level.FAIL] or list(hits)
    return (failing[0].row.code, failing[0].confidence) if failing else ("", Confidence.LOW)


def true(code: str, expected: str) -> bool:
    """The diagnosis says what is so."""
    return code == expected or any({code, expected} <= both for both in SAME)


def left_out() -> dict[str, Count]:
    """By the row that is left out: the fixtures that it concerns, and what is said of them."""
    made: dict[str, Count] = {}
    told = {name: _first(seen) for name, (_, seen) in observations().items()}
    ids = [row.id for row in providers.table()]
    for label, left in (*((one, (one,)) for one in ids), (ALL, tuple(ids))):
        count = made[label] = Count()
        with providers.without(*left):
            for name, (expected, seen) in observations().items():
                if not matched()[name] & set(left):
                    continue
                code, confidence = _first(seen)
                if (code, confidence) == told[name]:
                    continue
                count.concerned += 1
                if true(code, expected):
                    count.same += 1
                elif confidence is not Confidence.HIGH:
                    count.weaker += 1
                else:
                    count.wrong += (f"{name}: {code} instead of {expected}",)
    return made


def concerned(case: dict[str, Any]) -> list[str]:
    """The rows whose words or signs stand somewhere in a situation."""
    text = json.dumps(case, ensure_ascii=False).lower()
    found = []
    for row in providers.table():
        marks = [*row.signs.types, *row.signs.server, *row.signs.headers, *row.console]
        for rule in row.says:
            marks += [*rule.type, *rule.words, *rule.all]
        if row.id == "common" or any(mark.lower() in text for mark in marks):
            found.append(row.id)
    return found
