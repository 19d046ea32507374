"""Leave one out: is a listed mistake still found when it is taken off the list?

    python docs/make_leave_one_out.py [--operator NAME ...] [--profile quick] [--output FILE]

Each listed mistake that is a change of the semantics becomes a wrong candidate in float32, the
list is emptied of its code, and the ordinary checks run. What counts is whether a mutant that
nobody listed reproduces every output, and with which words; a person reads whether these are the
mistake's. Written as a table.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from k3check.checking import planning  # noqa: E402 - the path comes first
from k3check.model import MUTANT  # noqa: E402
from k3check.report.texts import slug_of  # noqa: E402
from tests.kill_matrix import matrix  # noqa: E402

if TYPE_CHECKING:
    from k3check.nouns.fault import Fault
    from k3check.nouns.operator import Operator

DTYPE = "float32"


def without(operator: Operator, code: str) -> Operator:
    """The operator whose list lacks a code."""
    known = operator.faults
    return replace(
        operator,
        faults=lambda semantics, interface, recipe: tuple(
            fault for fault in known(semantics, interface, recipe) if fault.code != code
        ),
    )


def told(form: matrix.Form, fault: Fault, profile: str) -> tuple[str, str]:
    """(what became of it, what was said first) of one mistake that is not listed."""
    operator = matrix.operators()[form.operator]
    target = matrix.candidate_with(operator, form, DTYPE, fault)
    families = tuple(
        replace(
            family,
            operators=tuple(
                without(op, fault.code) if op.name == operator.name else op
                for op in family.operators
            ),
        )
        for family in planning.families()
    )
    with mock.patch.object(planning, "families", return_value=families):
        findings = matrix.run(form, target, profile, dtype=DTYPE)
    failed = [f for f in findings.values() if f.outcome.is_failure]
    ranked = next((f.diagnoses for f in failed if f.diagnoses), ())
    if not failed:
        return "passes", ""
    mutant = next((d for d in ranked if d.code == MUTANT), None)
    if mutant is not None:
        return f"mutant, {mutant.confidence}", slug_of(mutant)
    other = next((d for d in ranked if d.confidence != "low"), None)
    if other is not None:
        return f"another listed one, {other.confidence}", slug_of(other)
    return "not named", ""


def main() -> int:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operator", nargs="*", default=list(matrix.operators()))
    parser.add_argument("--profile", default="quick")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--minutes", type=float, default=60.0)
    given = parser.parse_args()
    end = time.monotonic() + 60 * given.minutes
    lines = ["| operator | mistake taken off the list | found as | said |", "|---|---|---|---|"]
    for name in given.operator:
        form = matrix.forms(matrix.operators()[name])[0]
        known: dict[str, Fault] = {}
        for fault in matrix.faults_of(matrix.operators()[name], form, DTYPE):
            if fault.changes:
                known.setdefault(fault.code, fault)
        rows = []
        for fault in known.values():
            if time.monotonic() > end:
                lines.append(f"| {name} | {len(known) - len(rows)} not tried | | |")
                break
            rows.append((fault.slug, *told(form, fault, given.profile)))
            lines.append(f"| {name} | {' | '.join(rows[-1])} |")
            sys.stderr.write(lines[-1] + "\n")
        seen = [row for row in rows if row[1] != "passes"]
        hit = [row for row in seen if row[1].startswith("mutant")]
        lines.append(f"| **{name}** | {len(rows)} tried, {len(seen)} fail | {len(hit)} | |")
    text = "\n".join(lines) + "\n"
    if given.output is not None:
        given.output.write_text(text, "utf-8")
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
