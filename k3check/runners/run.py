"""What is known of a run over all of its workers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from k3check.errors import InternalError
from k3check.model import Finding, Message, Outcome
from k3check.runners.endings import finding_of
from k3check.runners.losses import Losses

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from k3check.nouns.request import OpsRequest
    from k3check.report.listener import Listener

#: Shown while a callable meets a shape for the first time.
COMPILING = "first call with this shape: compiling"

#: Seconds that this may take beside a check's own; the judge ends it before that.
COMPILING_LIMIT_S = 600.0

#: Seconds that a check may take beyond its limit: the judge keeps that itself, as far as it can.
GRACE_S = 10.0


@dataclass(frozen=True)
class Planned:
    """A check that the worker announced."""

    id: str
    suite: str
    operator: str | None
    case: str | None
    title: str


class Run:
    """The state of a run over all of its workers."""

    def __init__(self, request: OpsRequest, listener: Listener, starting_limit_s: float) -> None:
        self._request = request
        self._listener = listener
        self._starting_limit_s = starting_limit_s
        self._planned: list[Planned] | None = None
        self._findings: list[Finding] = []
        self._environment: dict[str, Any] = {}
        self._losses = Losses()
        #: workers in a row that have not started a check
        self.barren = 0

    @property
    def is_over(self) -> bool:
        """Every check has its finding."""
        return self._planned is not None and len(self._findings) >= len(self._planned)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found so far."""
        return tuple(self._findings)

    @property
    def environment(self) -> Mapping[str, Any]:
        """Where it runs."""
        return self._environment

    @property
    def left(self) -> tuple[str, ...]:
        """Operators that are not called any more."""
        return tuple(self._losses.left)

    @property
    def request(self) -> OpsRequest:
        """What was asked for."""
        return self._request

    @property
    def starting_limit_s(self) -> float:
        """Seconds for every phase that is no check; the judge keeps those of the runner itself."""
        return self._starting_limit_s + GRACE_S

    @property
    def check_limit_s(self) -> float:
        """Seconds for a check, by which the judge has ended it itself if it could."""
        return self._request.timeout_s + GRACE_S

    @property
    def compiling_limit_s(self) -> float:
        """Seconds more for a first call with a shape."""
        return COMPILING_LIMIT_S

    @property
    def is_first(self) -> bool:
        """No worker has planned yet, so what goes wrong is in the input."""
        return self._planned is None

    def learn(self, environment: Mapping[str, Any]) -> None:
        """Take over what a worker says about where it runs."""
        self._environment.update(environment)

    def accept_plan(self, checks: list[dict[str, Any]]) -> None:
        """Take the plan of the first worker; every later one must have the same."""
        planned = [Planned(**check) for check in checks]
        if self._planned is None:
            self._planned = planned
            self._listener.planned(len(planned))
        elif self._planned != planned:
            raise InternalError("a second worker planned other checks than the first")

    def start(self) -> Planned:
        """The next check starts."""
        assert self._planned is not None, "a worker plans before it starts a check"
        self.pass_over()
        check = self._planned[len(self._findings)]
        self.barren = 0
        self._listener.started(check.id, check.title)
        return check

    def told(self, check: Planned, *, compiling: bool) -> None:
        """A check's first call with a shape begins, or has ended."""
        if compiling:
            self._listener.started("", COMPILING)
        else:
            self._listener.started(check.id, check.title)

    def add(self, finding: Finding, *, lost: bool = False) -> None:
        """The check that started last has its finding.

        Args:
            finding: what it found.
            lost: the check cost the worker, so that the next one needs a new one.
        """
        self._findings.append(finding)
        self._listener.finished(finding)
        self._losses.count(finding, lost=lost)

    def pass_over(self) -> None:
        """Say of the next checks, as far as their operators are left, that they do not run."""
        if self._planned is None:
            return
        for check in self._planned[len(self._findings) :]:
            if check.operator is None or check.operator not in self._losses.left:
                return
            self._listener.started(check.id, check.title)
            hint = self._losses.left[check.operator]
            self.add(finding_of(check, Outcome.SKIPPED, hint, {}, 0.0))

    def diagnosing(self, operator: str) -> None:
        """The worker looks for the mistake of an operator whose checks are done."""
        self._listener.started(operator, "naming the mistake")

    def amend(self, findings: Iterable[Finding]) -> None:
        """Put what became known later into findings that are there; only they can be amended.

        The outcome, what was printed and the time stay what they were when the check ended.
        """
        amended = {finding.id: finding for finding in findings}
        for i, finding in enumerate(self._findings):
            new = amended.get(finding.id)
            if new is not None:
                evidence = {**finding.evidence, **new.evidence}
                self._findings[i] = replace(
                    finding, diagnoses=new.diagnoses, hint=new.hint, evidence=evidence
                )

    def give_up(self) -> None:
        """Say of every check that is left that it did not run: no worker lives long enough."""
        assert self._planned is not None, "a first worker's death is an error"
        for check in self._planned[len(self._findings) :]:
            self._listener.started(check.id, check.title)
            hint = Message("K3O-029", {"count": self.barren})
            self.add(finding_of(check, Outcome.SKIPPED, hint, {}, 0.0))
