"""What an operator's cases have shown so far, and the diagnosis that rests on all of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from k3check.diagnose.attribution import places
from k3check.diagnose.conclude import cause, diagnoses
from k3check.diagnose.mutants import by_work
from k3check.diagnose.nearest import nearest
from k3check.diagnose.prediction import broken_predictions
from k3check.diagnose.record import KEEP_BYTES, Record, record
from k3check.diagnose.structure import certain
from k3check.diagnose.trust import distrusted
from k3check.model import MUTANT, PLACES, Confidence, Diagnosis, Finding, Message, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from k3check.nouns.fault import Fault
    from k3check.nouns.operator import Candidate
    from k3check.nouns.tensors import Tensors

#: Seconds of the processor that a search may take, by profile: what is found does not depend on
#: what else the machine does.
BUDGET_S = {"quick": 6.0, "full": 12.0, "stress": 30.0}
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
#: ... of which these are about values: a mistake that is found elsewhere must explain them too.
OF_VALUES = frozenset({"K3O-005", "K3O-006"})
#: Leads that say no more than which tensor is wrong.
WEAK = frozenset({"K3O-084", "K3O-085"})
#: Failing cases of an operator that are called again, and how long such a call may take.
CALLED_AGAIN = 3
CALLED_AGAIN_S = 2.0


@dataclass(frozen=True)
class Cause:
    """The one mistake that the cases name, or two at once, and how sure that is."""

    faults: tuple[Fault, ...]
    diagnoses: tuple[Diagnosis, ...]


@dataclass
class History:
    """The records and failed findings of one candidate, filled as its cases run.

    Attributes:
        records: what a search rests on.
        failed: the findings that it explains.
        told: failed findings as they were last told, of cases and of other checks.
        budget_s: seconds for the search.
        called_again: failing cases that were called a second time.
        unstable: the check in which two calls on the same inputs did not agree.
        cause: what the cases name, once they have all run.
    """

    records: list[Record] = field(default_factory=list)
    failed: list[Finding] = field(default_factory=list)
    told: dict[str, Finding] = field(default_factory=dict)
    size: int = 0
    budget_s: float = 10.0
    called_again: int = 0
    unstable: str | None = None
    cause: Cause | None = None

    @property
    def calls_again(self) -> bool:
        """Whether a failing case is to be called a second time: two calls may not agree."""
        return self.unstable is None and self.called_again < CALLED_AGAIN

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
        if bad and not explains_itself(finding):
            self.failed.append(finding)
        if bad and explains_itself(finding) and not is_of_values(finding):
            return
        made = record(
            candidate, finding.case or "", inputs, actual, reference, baseline, failed=bad
        )
        if bad or self.size + 32 * made.size < KEEP_BYTES:
            self.records.append(made)
            self.size += 32 * made.size

    def mention(self, finding: Finding) -> None:
        """Remember a failure that no search explains: it is told otherwise if calls differ."""
        if finding.outcome is Outcome.FAIL and not explains_itself(finding):
            self.told[finding.id] = finding


def explains_itself(finding: Finding) -> bool:
    """Whether a failure says by itself what is wrong."""
    return finding.hint is not None and finding.hint.code in SELF_EXPLAINING


def is_of_values(finding: Finding) -> bool:
    """Whether what a failure says by itself is about values, which a mistake may explain."""
    return finding.hint is not None and finding.hint.code in OF_VALUES


def name_the_mistake(candidate: Candidate, history: History) -> list[Finding]:
    """The failed findings with the diagnoses that all cases together allow.

    Where no known mistake explains the cases, what is certain about the failure stands in its
    place: see :mod:`k3check.diagnose.structure`.
    """
    if not history.failed:
        return retold(history)  # nothing failed, or only what says by itself what is wrong
    with broken_predictions() as broken:
        found = nearest(candidate, history.records, budget_s=history.budget_s)
    ranked = diagnoses(found)
    leads, facts = certain(candidate, history.records)
    evidence: dict[str, Any] = dict(facts)
    named = cause(found)
    if named is not None:
        sure = tuple(d for d in ranked if d.confidence is not Confidence.LOW)
        history.cause = Cause(named.faults, sure)
    if not ranked:
        ranked = with_places(leads, places(candidate, by_work(candidate, history.records)))
        evidence["search"] = (
            "no known mistake or pair of mistakes produces these outputs"
            if found.complete
            else "the search for known mistakes ended at its time limit"
        )
    if found.silent:
        evidence["not_explained"] = ", ".join(found.silent)
    notes = [
        Message("K3C-190", {"mistake": name, "error": error}) for name, error in broken.items()
    ][:1]
    named_findings = [with_diagnoses(f, ranked, evidence, notes) for f in history.failed]
    history.told |= {finding.id: finding for finding in named_findings}
    return retold(history) if history.unstable else named_findings


def with_places(
    leads: Sequence[Diagnosis], separated: Sequence[Diagnosis]
) -> tuple[Diagnosis, ...]:
    """Leads with what separates wrong from right, before those that only name a tensor."""
    strong = [lead for lead in leads if lead.code not in WEAK]
    return (*strong, *separated, *(lead for lead in leads if lead.code in WEAK))


def retold(history: History) -> list[Finding]:
    """Everything that failed, once it is known that two calls do not agree."""
    if history.unstable is None:
        return []
    return [distrusted(finding, history.unstable) for finding in history.told.values()]


def with_diagnoses(
    finding: Finding,
    ranked: Sequence[Diagnosis],
    evidence: Mapping[str, Any],
    notes: Sequence[Message] = (),
) -> Finding:
    """A finding with what was concluded.

    A mere lead only replaces the text that says nothing but "wrong values": a finding that says
    by itself where the NaN is keeps its own words.
    """
    general = finding.hint is None or finding.hint.code == "K3O-009"
    if ranked and ranked[0].code == PLACES and finding.hint is not None:
        general = general or finding.hint.code == "K3O-450"
    sure = bool(ranked) and ranked[0].confidence is not Confidence.LOW
    if sure and ranked[0].code == MUTANT and ranked[0].confidence is not Confidence.HIGH:
        sure = False  # one of several guesses says less than where the NaN is
    if ranked and (general or sure):
        finding = replace(finding, diagnoses=ranked, hint=Message(ranked[0].code, ranked[0].values))
    return replace(
        finding,
        evidence={**finding.evidence, **evidence},
        notes=(*finding.notes, *notes),
    )
