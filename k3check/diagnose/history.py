"""What an operator's cases have shown so far, and the diagnosis that rests on all of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from k3check.diagnose.conclude import diagnoses
from k3check.diagnose.nearest import nearest
from k3check.diagnose.record import KEEP_BYTES, Record, record
from k3check.diagnose.structure import certain
from k3check.report.model import Confidence, Diagnosis, Finding, Message, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from k3check.operators.base import Candidate, Tensors

#: Seconds that a search may take, by profile.
BUDGET_S = {"quick": 4.0, "full": 10.0, "stress": 30.0}
#: Findings that say by themselves what is wrong: nothing is searched for them alone.
SELF_EXPLAINING = frozenset(
    {
        "K3O-001",
        "K3O-002",
        "K3O-003",
        "K3O-005",
        "K3O-006",
        "K3O-008",
        "K3O-010",
        "K3O-018",
        "K3O-300",
    }
)


@dataclass
class History:
    """The records and failed findings of one candidate, filled as its cases run."""

    records: list[Record] = field(default_factory=list)
    failed: list[Finding] = field(default_factory=list)
    size: int = 0
    budget_s: float = 10.0

    def add(
        self,
        candidate: Candidate,
        finding: Finding,
        inputs: Tensors,
        actual: Tensors,
        reference: Tensors,
        baseline: Tensors,
    ) -> None:
        """Remember a case that was compared."""
        bad = finding.outcome is Outcome.FAIL
        if bad:
            self.failed.append(finding)
        if bad and finding.hint is not None and finding.hint.code in SELF_EXPLAINING:
            return
        made = record(
            candidate, finding.case or "", inputs, actual, reference, baseline, failed=bad
        )
        if bad or self.size + 32 * made.size < KEEP_BYTES:
            self.records.append(made)
            self.size += 32 * made.size


def name_the_mistake(candidate: Candidate, history: History) -> list[Finding]:
    """The failed findings with the diagnoses that all cases together allow.

    Where no known mistake explains the cases, what is certain about the failure stands in its
    place: see :mod:`k3check.diagnose.structure`.
    """
    if not any(seen.failed for seen in history.records):
        return []  # nothing failed, or only what says by itself what is wrong
    found = nearest(candidate, history.records, budget_s=history.budget_s)
    ranked = diagnoses(found)
    leads, facts = certain(candidate, history.records)
    evidence: dict[str, Any] = dict(facts)
    if not ranked:
        ranked = leads
        evidence["search"] = (
            "no known mistake or pair of mistakes produces these outputs"
            if found.complete
            else "the search for known mistakes ended at its time limit"
        )
    return [with_diagnoses(f, ranked, evidence) for f in history.failed]


def with_diagnoses(
    finding: Finding, ranked: Sequence[Diagnosis], evidence: Mapping[str, Any]
) -> Finding:
    """A finding with what was concluded.

    A mere lead only replaces the text that says nothing but "wrong values": a finding that says
    by itself where the NaN is keeps its own words.
    """
    general = finding.hint is None or finding.hint.code == "K3O-009"
    if ranked and (general or ranked[0].confidence is not Confidence.LOW):
        finding = replace(finding, diagnoses=ranked, hint=Message(ranked[0].code, ranked[0].values))
    return replace(finding, evidence={**finding.evidence, **evidence})
