"""What one worker says from its start to its end, and what its end means."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from k3check.errors import InternalError, NothingToCheck
from k3check.model import Message, Outcome, Text
from k3check.runners.endings import finding_of, in_words, of_death, usage_error
from k3check.runners.process import Child, DeadlineError
from k3check.runners.wire import BrokenWireError, finding_from_plain, usage_from_plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.runners.run import Planned, Run


class Conversation:
    """What one worker says, from its start to its end."""

    def __init__(self, run: Run, worker: Child) -> None:
        self._run = run
        self._worker = worker
        self._phase: Mapping[str, Any] = {"phase": "start"}
        self._target: Mapping[str, Any] | None = None
        self._check: Planned | None = None
        self._compiling = False
        self._began = time.monotonic()

    def follow(self) -> None:
        """Listen until the worker is done, must be replaced, or is dead."""
        while True:
            limit = self._run.check_limit_s if self._check else self._run.starting_limit_s
            if self._compiling:
                limit += self._run.compiling_limit_s
            try:
                message = self._worker.receive(self._began + limit)
                if message is None:
                    return self._died()
                if self._handle(message):
                    return None
            except DeadlineError:
                return self._hung(limit)
            except BrokenWireError as error:
                return self._garbled(error)

    def _handle(self, message: dict[str, Any]) -> bool:
        """Act on a message; True when it was the worker's last."""
        match message["kind"]:
            case "phase":
                self._phase = message
                self._target = message if message["phase"] == "target" else self._target
                if message["phase"] == "diagnose":
                    self._run.diagnosing(message["operator"])
            case "amended":
                self._run.amend(finding_from_plain(plain) for plain in message["findings"])
            case "environment":
                self._run.learn(message["environment"])
            case "planned":
                self._run.accept_plan(message["checks"])
            case "started":
                self._check = self._run.start()
                self._compiling = False
                self._worker.mark()
            case "compiling" | "compiled":
                self._compiling = message["kind"] == "compiling"
                if self._check is not None:
                    self._run.told(self._check, compiling=self._compiling)
            case "finished":
                self._finished(message)
                self._check = None
            case "usage":
                raise usage_from_plain(message["error"])
            case "nothing":
                raise NothingToCheck(message["why"])
            case "internal":
                raise InternalError(message["what"], message["trace"])
            case "done":
                return True
            case other:
                raise BrokenWireError(f"a message of the unknown kind {other[:40]!r}")
        self._began = time.monotonic()
        return False

    def _finished(self, message: Mapping[str, Any]) -> None:
        """Pass a finding on."""
        finding = finding_from_plain(message["finding"])
        if self._check is None or finding.id != self._check.id:
            raise BrokenWireError(f"a finding of {finding.id[:80]!r} out of turn")
        self._run.add(finding)

    def _hung(self, limit_s: float) -> None:
        """The deadline has passed."""
        stack = self._worker.ask_for_stack()
        if self._check is None:
            return self._no_start(
                Text("nothing happened for {seconds} s", seconds=f"{limit_s:g}"), stack, hung=True
            )
        hint = Message("K3O-022", {"seconds": f"{self._run.request.timeout_s:g}"})
        return self._lost(Outcome.TIMED_OUT, hint, {"stack": stack})

    def _died(self) -> None:
        """The process has ended, or has closed its pipe."""
        status = self._worker.exit_status()
        stack = self._worker.stack()
        if self._check is None:
            return self._no_start(in_words(status), stack, hung=False)
        hint, evidence = of_death(status, stack)
        return self._lost(Outcome.CRASHED, hint, evidence)

    def _garbled(self, error: BrokenWireError) -> None:
        """Something else than the worker wrote into the pipe."""
        if self._check is None:
            raise InternalError(f"the worker cannot be understood: {error}") from error
        self._lost(Outcome.CRASHED, Message("K3O-028", {}), {"received": str(error)})

    def _lost(self, outcome: Outcome, hint: Message, evidence: dict[str, Any]) -> None:
        """The worker is lost to its current check, and that is the check's finding."""
        assert self._check is not None, "only a check that started can lose its worker"
        evidence["printed"] = self._worker.printed()
        evidence = {key: value for key, value in evidence.items() if value != ""}
        took = time.monotonic() - self._began
        self._run.add(finding_of(self._check, outcome, hint, evidence, took), lost=True)

    def _no_start(self, found: str, stack: str, *, hung: bool) -> None:
        """The worker is lost between checks: an error of the input if it is the first one.

        A later one has proven that torch and the targets load; it is replaced.
        """
        if not self._run.is_first:
            return
        detail = "\n".join(filter(None, [stack, self._worker.printed()])) or None
        if self._phase["phase"] == "torch":
            raise usage_error("K3C-071", found=found, accepted="torch >= 2.6", detail=detail)
        if self._target is None:
            raise InternalError(f"the worker process did not start: {found}", detail)
        raise usage_error(
            "K3C-070" if hung else "K3C-069",
            where=f"{self._target['origin']}  {self._target['target']}",
            found=found,
            detail=detail,
            target=self._target["target"],
            how=found,
        )
