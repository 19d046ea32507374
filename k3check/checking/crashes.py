"""What crashes show together: lengths that a callable does not take, cases that say why."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from k3check.model import Message, Outcome
from k3check.nouns.call import call
from k3check.nouns.candidate_error import CandidateError
from k3check.nouns.convention import ConventionBroken
from k3check.nouns.lengths import fits, lengths_of, of_lengths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from k3check.model import Finding
    from k3check.nouns.case import Case
    from k3check.nouns.operator import Candidate

#: Multiples that kernels ask for: the rows of a matrix unit, and the usual chunks.
MULTIPLES = (16, 32, 64, 128)


@dataclass(frozen=True)
class Crash:
    """A check in which the callable raised: the finding as it stands, and in which case."""

    finding: Finding
    case: Case | None

    @property
    def kind(self) -> str:
        """The exception without its numbers, which are often the length itself."""
        return re.sub(r"\d+", "#", str(self.finding.evidence["error"]))


@dataclass
class Crashes:
    """What a candidate's checks have shown about the lengths that it takes, as they run."""

    taken: list[Case] = field(default_factory=list)
    crashed: list[Crash] = field(default_factory=list)
    #: the number whose multiples are taken, and what other lengths raise, once that is known
    found: tuple[int, str] | None = None
    told: set[str] = field(default_factory=set)

    def note(self, finding: Finding, case: Case | None, error: CandidateError) -> None:
        """Remember a check that crashed; only exceptions count, no lack of memory."""
        if error.kind == "raised":
            evidence = {"error": error.error}
            self.crashed.append(Crash(replace(finding, evidence=evidence), case))

    def pattern(self) -> Iterator[int]:
        """The multiples that fit: every other length crashed, none of theirs did."""
        cases = [crash.case for crash in self.crashed if crash.case is not None]
        if len(cases) < 2:
            return
        for m in MULTIPLES:
            if not any(fits(case, m) for case in cases) and all(fits(c, m) for c in self.taken):
                yield m

    def find(self, candidate: Candidate) -> tuple[int, str] | None:
        """The number whose multiples the candidate takes, and the kind of crash at other lengths.

        A multiple that fits the cases is tried: the candidate must take so many tokens, and three
        times as many. The first that it takes is the one.
        """
        for crash in self.crashed:
            case = crash.case
            if case is None or len(lengths_of(case)) != 1:
                continue
            for m in self.pattern():
                if all(takes(candidate, of_lengths(case, (n,))) for n in (m, 3 * m)):
                    return m, crash.kind
            break
        return None

    def amended(self, candidate: Candidate) -> list[Finding]:
        """The crashes that lengths explain, all with that one sentence."""
        if not hasattr(candidate.interface, "multiple_of"):
            return []
        self.found = self.found or self.find(candidate)
        if self.found is None:
            return []
        multiple, kind = self.found
        alike = [crash.finding for crash in self.crashed if crash.kind == kind]
        told = [finding for finding in alike if finding.id not in self.told]
        self.told |= {finding.id for finding in told}
        values = {"multiple": multiple, "operator": candidate.operator.name}
        return [
            replace(
                finding,
                outcome=Outcome.CRASHED,
                hint=Message("K3O-033", {**values, "error": finding.evidence["error"]}),
            )
            for finding in told
        ]


def remembered(
    crashes: Crashes, empty: Finding, case: Case | None, run: Callable[[], Finding]
) -> Finding:
    """What a check finds; where the callable raises, that is remembered first.

    A case that has its own word on that says it, unless the callable has crashed before.
    """
    try:
        found = run()
    except CandidateError as error:
        if case is not None and case.on_crash is not None and not crashes.crashed:
            said = {**case.on_crash.values, "error": error.error}
            error.hint = replace(case.on_crash, values=said)
        crashes.note(empty, case, error)
        raise
    if case is not None:
        crashes.taken.append(case)
    return found


def takes(candidate: Candidate, case: Case) -> bool:
    """Whether a candidate does not raise in a case."""
    given = candidate.operator.present(
        candidate.operator.raw(case, candidate.semantics, 0),
        candidate.semantics,
        candidate.interface,
        candidate.recipe,
    )
    try:
        call(candidate, given)
    except CandidateError:
        return False
    except ConventionBroken:  # what it returned is another question
        return True
    return True
