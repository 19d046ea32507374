"""The judge's process: cases, references, verdicts and the diagnosis; never the user's code.

The user's callables live in a runner's process, which starts beside this one and is asked over a
pipe (:mod:`k3check.runners.python`). What a check finds goes to the supervisor over another one.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from k3check import hints
from k3check.errors import NothingToCheck, UsageError
from k3check.model import Finding, Message, Outcome
from k3check.nouns.candidate_error import (
    CandidateError,
    CandidateLostError,
    classify,
    one_line,
)
from k3check.nouns.request import CandidateSpec, OpsRequest
from k3check.operators import OPERATORS
from k3check.runners import tree
from k3check.runners.built_in import told_apart
from k3check.runners.endings import finding_of
from k3check.runners.environment import describe, joined
from k3check.runners.losses import Losses
from k3check.runners.python.connection import Connection
from k3check.runners.standing import adopt_orphans, closed_in_forks, stands_alone
from k3check.runners.target import load_target
from k3check.runners.wire import Sender, finding_to_plain, usage_to_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from k3check.nouns.check import Check
    from k3check.nouns.first_calls import FirstCalls

#: Seconds that the first call with a shape may take at least: a kernel is compiled and tuned.
COMPILING_LIMIT_S = 600.0

#: First calls that took less in a check were no compilation worth telling.
TOLD_FROM_S = 1.0

_CRASH_CODES = {
    "raised": "K3O-020",
    "memory": "K3O-021",
    "device": "K3O-026",
    "exit": "K3O-027",
}


def main(argv: Sequence[str]) -> NoReturn:
    """Judge a request.

    Args:
        argv: numbers of the inherited files (the order, the pipe, the stack of a crash), and the
            supervisor's process id.
    """
    order_fd, pipe_fd, stack_fd, parent = map(int, argv)
    stands_alone(order_fd, pipe_fd, stack_fd, parent=parent, stack=stack_fd)
    adopt_orphans()
    tree.adopting()
    with open(order_fd, "rb") as file:  # noqa: PTH123 - a file number
        order = json.load(file)
    request = OpsRequest.from_json(order["request"])
    sender = Sender(pipe_fd)
    closed_in_forks(pipe_fd, stack_fd)
    connection = Connection(
        request, order["starting_limit_s"], lambda: sender.send("phase", phase="runner")
    )
    try:
        _Judge(request, connection, sender).work(order["skip"], order["omit"], order["plan"])
        last: tuple[str, dict[str, Any]] = ("done", {})
    except UsageError as error:
        last = ("usage", {"error": usage_to_plain(error)})
    except NothingToCheck as error:
        last = ("nothing", {"why": error.why})
    except BaseException as error:  # noqa: BLE001 - ours, whatever it is: the supervisor tells
        last = ("internal", {"what": one_line(error), "trace": traceback.format_exc()})
    connection.end()
    sender.send(last[0], **last[1])
    os._exit(0)


class _Judge:
    """A request on its way from plan to findings."""

    def __init__(self, request: OpsRequest, connection: Connection, sender: Sender) -> None:
        self._request = request
        self._connection = connection
        self._sender = sender
        self._losses = Losses()
        self._told: set[tuple[str, str]] = set()  # what was said to be changed, by operator

    def work(self, skip: int, omit: Sequence[str], plan: str) -> None:
        """Plan the checks and run those that are not done yet, of operators that are not left."""
        send = self._sender.send
        specs = list(_surely(self._request))
        if specs:
            self._connection.open(specs)
        send("phase", phase="torch")
        torch = _import_torch()
        send("phase", phase="plan")
        planner = _planner(plan, self._request)
        first_calls = self._first_calls()
        checks = told_apart(planner(self._request, self._load), self._request)
        send("environment", environment=self._environment(torch))
        send("planned", checks=[_announce(check) for check in checks])
        for check in checks[skip:]:
            if check.operator in omit:
                continue
            send("started")
            finding, lost = self._checked(check, torch)
            finding = without_first_calls(finding, first_calls.taken())
            self._losses.count(finding, lost=lost)
            send("finished", finding=finding_to_plain(finding))
            if check.amend is not None and not lost:
                send("phase", phase="diagnose", operator=check.operator)
                amended = [finding_to_plain(finding) for finding in self._amended(check, torch)]
                send("amended", findings=amended)
        send("environment", environment=self._environment(torch))

    def _first_calls(self) -> FirstCalls:
        """First calls with a shape, told to whoever waits, and no time of their checks."""
        from k3check.nouns.first_calls import FIRST_CALLS

        def begins() -> None:
            self._sender.send("compiling")
            self._connection.restart(max(COMPILING_LIMIT_S, self._request.timeout_s))

        def ended() -> None:
            self._sender.send("compiled")
            self._connection.restart(self._request.timeout_s)

        FIRST_CALLS.begins, FIRST_CALLS.ended = begins, ended
        return FIRST_CALLS

    def _environment(self, torch: Any) -> dict[str, Any]:
        """Where the checks run: the runner's word on what the user's code has."""
        return joined(describe(torch), self._connection.environment())

    def _load(self, spec: CandidateSpec, directory: str | None = None) -> Callable[..., Any]:
        """What the plan loads targets with."""
        del directory  # the runner has its own
        from k3check.runners.python import remote

        self._sender.send("phase", phase="target", target=spec.target, origin=spec.origin)
        found = remote.load(self._connection, spec)
        self._sender.send("phase", phase="plan")
        return found

    def _checked(self, check: Check, torch: Any) -> tuple[Finding, bool]:
        """What a check finds, and whether it cost a process."""
        left = self._losses.left.get(check.operator)
        if left is not None:
            return finding_of(check, Outcome.SKIPPED, left, {}, 0.0), False
        lost = self._connection.losses
        self._connection.begin_check(self._request.timeout_s)
        began = time.perf_counter()
        finding = _run(check, torch)
        took = time.perf_counter() - began - self._connection.waited_s
        finding = replace(finding, duration_s=took)
        printed = self._connection.printed()
        if finding.outcome.is_failure and printed:
            finding = replace(finding, evidence={**finding.evidence, "printed": printed})
        finding = replace(finding, notes=(*finding.notes, *self._changes(check)))
        return finding, self._connection.losses > lost

    def _changes(self, check: Check) -> list[Message]:
        """What the operator left changed, once for each thing."""
        found = []
        for what in dict.fromkeys(self._connection.changed):
            if (check.operator, what) not in self._told:
                self._told.add((check.operator, what))
                found.append(Message("K3O-951", {"what": what}))
        return found

    def _amended(self, check: Check, torch: Any) -> Sequence[Finding]:
        """What is known of an operator's findings after its last check.

        Calls of it that are made for that purpose have the time of one check; one that takes the
        process along leaves the findings as they are.
        """
        assert check.amend is not None, "asked only where there is one"
        self._connection.begin_check(self._request.timeout_s)
        try:
            with torch.no_grad():
                return check.amend()
        except CandidateLostError:
            return ()


def without_first_calls(finding: Finding, seconds: Sequence[float]) -> Finding:
    """The finding with what first calls with a shape took beside its own time."""
    if sum(seconds) < TOLD_FROM_S:
        return finding
    taken = round(sum(seconds), 3)
    said = Message("K3O-830", {"count": len(seconds), "seconds": f"{taken:.3g}"})
    return replace(
        finding,
        duration_s=max(0.0, finding.duration_s - taken),
        metrics={**finding.metrics, "first_call_seconds": taken},
        notes=(*finding.notes, said),
    )


def _surely(request: OpsRequest) -> Iterable[CandidateSpec]:
    """The targets that the plan will load, known without planning."""
    for name, spec in request.candidates.items():
        asked = not request.suites or OPERATORS.get(name) in request.suites
        if spec.target is not None and (asked or spec.origin.startswith("--operator")):
            yield spec


def _import_torch() -> Any:
    """Torch, or a usage error."""
    try:
        import torch
    except BaseException as error:
        raise UsageError(
            code="K3C-071",
            what=hints.title("K3C-071"),
            where=sys.executable,
            found=one_line(error),
            accepted="torch >= 2.6",
            fix=hints.fix("K3C-071"),
        ) from error
    return torch


def _planner(
    plan: str, request: OpsRequest
) -> Callable[[OpsRequest, Callable[..., Any]], Sequence[Check]]:
    """The function that plans: ours, or a test's."""
    spec = CandidateSpec("plan", target=plan, origin="k3check")
    try:
        planner: Callable[..., Sequence[Check]] = load_target(spec, request.directory)
    except UsageError as error:  # not the user's target: a mistake of ours
        raise RuntimeError(f"{error.what}\n{error.detail}") from error
    return planner


def _announce(check: Check) -> dict[str, Any]:
    """What the supervisor must know about a check to name it when the judge is gone."""
    return {
        "id": check.id,
        "suite": check.suite,
        "operator": check.operator,
        "case": check.case,
        "title": check.title,
    }


def _run(check: Check, torch: Any) -> Finding:
    """Run a check."""
    try:
        with torch.no_grad():
            return check.run()
    except CandidateLostError as lost:
        return finding_of(check, lost.outcome, lost.message, lost.evidence, 0.0)
    except CandidateError as error:
        finding = _crashed(check, error.kind, error.error, error.traceback)
        return replace(finding, hint=error.hint or finding.hint)
    except (UsageError, NothingToCheck):
        raise
    except BaseException as error:  # noqa: BLE001 - raised again if it is ours
        return _not_ours(check, error)


def _not_ours(check: Check, error: BaseException) -> Finding:
    """The finding of an exception outside of a call that is still no mistake of ours.

    Raises:
        BaseException: ``error``, when it is ours.
    """
    match classify(error):
        case "memory":  # the reference's or the inputs', in float64
            hint = Message("K3O-030", {"error": one_line(error)})
            return finding_of(check, Outcome.SKIPPED, hint, {}, 0.0)
        case "device":  # the built-in on an accelerator
            return _crashed(check, "device", one_line(error), None)
        case _:
            error.add_note(f"while running {check.id}")
            raise error


def _crashed(check: Check, kind: str, error: str, trace: str | None) -> Finding:
    """The finding of an operator that raised."""
    hint = Message(_CRASH_CODES[kind], {"error": error})
    evidence = {"error": error} if trace is None else {"error": error, "traceback": trace}
    return finding_of(check, Outcome.CRASHED, hint, evidence, 0.0)
