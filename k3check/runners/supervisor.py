"""The parent's side of a run: start a judge, pass on what it finds, and replace one that dies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k3check.errors import InternalError
from k3check.model import Finding, Message, Outcome
from k3check.runners.conversation import Conversation, Planned
from k3check.runners.endings import finding_of, usage_error
from k3check.runners.losses import Losses
from k3check.runners.process import Child

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from k3check.nouns.request import OpsRequest
    from k3check.report.listener import Listener

#: The function that plans a run's checks, imported by the worker alone.
PLAN = "k3check.checking:plan"

#: Shown while a callable meets a shape for the first time.
COMPILING = "first call with this shape: compiling"

#: Seconds that this may take beside a check's own; the judge ends it before that.
COMPILING_LIMIT_S = 600.0

#: Seconds that importing torch, importing one target, or planning may take at least.
STARTING_LIMIT_S = 120.0

#: Workers in a row that may die before they start a check.
_BARREN_WORKERS = 2

#: What the judge runs.
MAIN = "k3check.runners.judge"

#: Seconds that a check may take beyond its limit: the judge keeps that itself, as far as it can.
GRACE_S = 10.0


@dataclass(frozen=True)
class RunResult:
    """What a run found, and where it ran."""

    findings: tuple[Finding, ...]
    environment: Mapping[str, Any]


def check(
    request: OpsRequest,
    listener: Listener,
    *,
    plan: str = PLAN,
    starting_limit_s: float = STARTING_LIMIT_S,
) -> RunResult:
    """Run operator checks in a worker process that alone imports torch and the targets.

    A check whose worker dies or hangs is a finding; a new worker goes on after it. An operator that
    does so in the same way again and again is left: its other checks are skipped.

    Args:
        request: what to check.
        listener: is told about every check as it goes.
        plan: ``module:function`` or ``path/file.py:function`` that plans the checks.
        starting_limit_s: seconds for importing torch, for each target, and for planning;
            ``request.timeout_s`` where that is more.

    Raises:
        UsageError: a target cannot be loaded, its import dies or hangs, torch is missing.
        NothingToCheck: the plan says so.
        InternalError: k3check's own mistake.
        KeyboardInterrupt: as it came, after the worker was killed.
    """
    if not Path(request.directory).is_dir():
        raise usage_error("K3C-072", found=request.directory, directory=request.directory)
    # The worker starts in that directory, where a relative path would start again.
    request = replace(request, directory=str(Path(request.directory).absolute()))
    return Run(request, listener, plan, max(starting_limit_s, request.timeout_s)).run()


class Run:
    """The state of a run over all of its workers."""

    def __init__(
        self, request: OpsRequest, listener: Listener, plan: str, starting_limit_s: float
    ) -> None:
        self._request = request
        self._listener = listener
        self._plan = plan
        self._starting_limit_s = starting_limit_s
        self._planned: list[Planned] | None = None
        self._findings: list[Finding] = []
        self._environment: dict[str, Any] = {}
        self._barren = 0
        self._losses = Losses()

    def run(self) -> RunResult:
        """Workers one after the other until every check has its finding."""
        while self._planned is None or len(self._findings) < len(self._planned):
            if self._barren == _BARREN_WORKERS:
                self._give_up()
                break
            order = {
                "request": self._request.to_json(),
                "skip": len(self._findings),
                "omit": list(self._losses.left),
                "plan": self._plan,
                "starting_limit_s": self._starting_limit_s,
            }
            request = self._request
            with Child(MAIN, order, directory=request.directory, hidden=request.hidden) as worker:
                self._barren += 1  # until a check starts
                Conversation(self, worker).follow()
            self._pass_over()
        return RunResult(tuple(self._findings), self._environment)

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
        self._pass_over()
        check = self._planned[len(self._findings)]
        self._barren = 0
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

    def _pass_over(self) -> None:
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

    def _give_up(self) -> None:
        """Say of every check that is left that it did not run."""
        assert self._planned is not None, "a first worker's death is an error"
        for check in self._planned[len(self._findings) :]:
            self._listener.started(check.id, check.title)
            hint = Message("K3O-029", {"count": _BARREN_WORKERS})
            self.add(finding_of(check, Outcome.SKIPPED, hint, {}, 0.0))
