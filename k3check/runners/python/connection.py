"""The judge's side of the Python runner: start it, ask it, and say how it was lost.

Torch-free: the process is started before the judge imports torch, so that both import side by side.
"""

from __future__ import annotations

import collections
import contextlib
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k3check.errors import UsageError
from k3check.model import Message, Outcome, Text
from k3check.nouns.candidate_error import CandidateLostError
from k3check.runners.endings import in_words, of_death, usage_error
from k3check.runners.process import Child, DeadlineError
from k3check.runners.wire import BrokenWireError, usage_from_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from k3check.nouns.request import CandidateSpec, OpsRequest

MAIN = "k3check.runners.python.worker"
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - files without a name, readable by nobody else


class Connection:
    """A runner's process; started anew when it is lost, with the callables that are needed.

    Attributes:
        deadline: when the current check must be over, in the time of :func:`time.monotonic`.
        waited_s: what of its time was spent on replacing a process; it is given that back.
        losses: how many processes were lost.
        changed: what callables left changed in the current check.
        live: outputs that later calls may still change, by call and name.
    """

    def __init__(
        self, request: OpsRequest, starting_limit_s: float, beat: Callable[[], None] = lambda: None
    ) -> None:
        """Nothing is started yet.

        Args:
            request: directory, hidden variables and memory limit are used.
            starting_limit_s: seconds for importing torch, and for each callable.
            beat: called while a lost process is replaced: that takes no check's time.
        """
        self._request = request
        self._starting_limit_s = starting_limit_s
        self._beat = beat
        self._child: Child | None = None
        self._expected: collections.deque[int] = collections.deque()
        self._answers: dict[int, dict[str, Any]] = {}
        self._loading: dict[int, CandidateSpec] = {}
        self._asked: dict[str, int] = {}  # key -> number of the message that loads it
        self._number = 0
        self._heard = time.monotonic()
        self._poisoned = False
        self.deadline = float("inf")
        self.limit_s = 0.0
        self.waited_s = 0.0
        self.losses = 0
        self.live: dict[str, Any] = {}
        self.changed: list[str] = []
        self.files = contextlib.ExitStack()
        self.inputs, self.outputs = (self._file(name) for name in ("inputs", "outputs"))

    def _file(self, name: str) -> int:
        """A file without a name, in memory where there is such a thing: nothing to remove."""
        if hasattr(os, "memfd_create"):
            fd = os.memfd_create(f"k3check-{name}")
            self.files.callback(os.close, fd)
            return fd
        where = str(_SHARED_MEMORY) if _SHARED_MEMORY.is_dir() else None
        return self.files.enter_context(tempfile.TemporaryFile(dir=where, buffering=0)).fileno()

    def open(self, specs: Iterable[CandidateSpec] = ()) -> None:
        """Start the process, and have it load callables as soon as it can."""
        if self._child is not None:
            return
        self._expected.clear()
        self._answers.clear()
        self._loading.clear()
        self._asked.clear()
        self._poisoned = False
        order = {
            "directory": self._request.directory,
            "memory_limit": self._request.memory_limit,
        }
        self._child = Child(
            MAIN,
            order,
            directory=self._request.directory,
            hidden=self._request.hidden,
            files=(self.inputs, self.outputs),
            listens=True,
        )
        self._heard = time.monotonic()
        for spec in specs:
            self._ask_for(spec)

    def close(self) -> None:
        """End the process, and everything that it started."""
        child, self._child = self._child, None
        if child is not None:
            child.close()

    def end(self) -> None:
        """Close everything."""
        self.close()
        self.files.close()

    # Asking.

    def tell(self, kind: str, **values: Any) -> int:
        """Send a message; returns its number."""
        assert self._child is not None, "opened before"
        if not self._expected:
            self._heard = time.monotonic()
        self._number += 1
        self._expected.append(self._number)
        self._child.tell(kind, number=self._number, **values)
        return self._number

    def answer(self, number: int, deadline: float) -> dict[str, Any]:
        """The answer to a message.

        Raises:
            DeadlineError: it did not come in time.
            BrokenWireError: what came is no answer to what was asked.
            EOFError: the process has ended.
        """
        assert self._child is not None, "opened before"
        while number not in self._answers:
            message = self._child.receive(deadline)
            if message is None:
                raise EOFError
            self._heard = time.monotonic()
            if message["kind"] == "failed":
                raise EOFError
            if not self._expected or message.get("number") != self._expected[0]:
                kind = str(message["kind"])[:40]
                raise BrokenWireError(f"a message of the kind {kind!r} out of turn")
            self._answers[self._expected.popleft()] = message
        return self._answers.pop(number)

    def settle(self) -> None:
        """Wait for answers that nobody waits for any more: their files are used again.

        Raises:
            CandidateLostError: the process is lost meanwhile.
        """
        calls = [number for number in self._expected if number not in self._loading]
        if calls:
            self.result(calls[-1])
        self._answers = {n: m for n, m in self._answers.items() if n in self._loading}

    def result(self, number: int) -> dict[str, Any]:
        """The answer to a message within the check's time.

        Raises:
            CandidateLostError: there will be none.
        """
        try:
            message = self.answer(number, self.deadline)
        except (DeadlineError, BrokenWireError, EOFError) as error:
            raise self.lost(error) from None
        if message.get("as") == "device":
            self._poisoned = True  # nothing can be called in it any more
            self.losses += 1
        return message

    def lost(self, error: Exception) -> CandidateLostError:
        """How the process was lost; it is ended, with everything that it started."""
        child = self._child
        assert child is not None, "only what was opened can be lost"
        evidence: dict[str, Any] = {}
        outcome = Outcome.CRASHED
        if isinstance(error, DeadlineError):
            outcome = Outcome.TIMED_OUT
            hint = Message("K3O-022", {"seconds": f"{self.limit_s:g}"})
            evidence = {"stack": child.ask_for_stack()}
        elif isinstance(error, BrokenWireError):
            hint, evidence = Message("K3O-028", {}), {"received": str(error)}
        else:
            hint, evidence = of_death(child.exit_status(), child.stack())
        evidence["printed"] = child.printed()
        self.close()
        self.losses += 1
        self.open()  # in the meantime it can import torch
        return CandidateLostError(outcome, hint, {k: v for k, v in evidence.items() if v != ""})

    # Loading.

    def _ask_for(self, spec: CandidateSpec) -> None:
        values = {"operator": spec.operator, "target": spec.target, "origin": spec.origin}
        number = self.tell("load", key=spec.target, **values)
        self._loading[number] = spec
        self._asked[str(spec.target)] = number

    def load(self, spec: CandidateSpec) -> Mapping[str, Any]:
        """Load a callable; returns what it shows of itself.

        Raises:
            UsageError: it cannot be loaded, its import dies or hangs.
        """
        self.open()
        number = self._asked.get(str(spec.target))
        if number is None or (number not in self._loading and number not in self._answers):
            self._ask_for(spec)
            number = self._asked[str(spec.target)]
        try:
            while number not in self._answers:
                first = self._expected[0]
                message = self.answer(first, self._heard + self._starting_limit_s)
                self._answers[first] = message
        except (DeadlineError, EOFError, BrokenWireError) as error:
            raise self._not_loaded(error, spec) from None
        message = self._answers.pop(number)
        del self._loading[number]
        if message["kind"] == "refused":
            refused = usage_from_plain(message.get("error") or {})
            refused.where = f"{spec.origin}  {spec.target}"
            raise refused
        shown = message.get("shown")
        if not isinstance(shown, dict):
            raise self._not_loaded(BrokenWireError("a callable that is not described"), spec)
        return shown

    def probe(self, spec: CandidateSpec, device: str) -> str | None:
        """Why a device cannot be used where a loaded callable is; None if it can.

        Raises:
            UsageError: the process was lost over that.
        """
        number = self.tell("probe", device=device)
        try:
            message = self.answer(number, self._heard + self._starting_limit_s)
        except (DeadlineError, EOFError, BrokenWireError) as error:
            raise self._not_loaded(error, spec) from None
        problem = message.get("error")
        return None if problem is None else str(problem)[:200]

    def environment(self, patience_s: float = 5.0) -> Mapping[str, Any]:
        """What the process says about where it runs; empty if it does not."""
        if self._child is None or self._poisoned:
            return {}
        try:
            message = self.answer(self.tell("describe"), time.monotonic() + patience_s)
        except (DeadlineError, EOFError, BrokenWireError):
            self.close()
            return {}
        told = message.get("environment")
        return told if isinstance(told, dict) else {}

    def begin_check(self, limit_s: float) -> None:
        """A check starts: its time runs, and what is printed from here on is its own."""
        self.limit_s = limit_s
        self.waited_s = 0.0
        self.deadline = time.monotonic() + limit_s
        self.changed.clear()
        if self.live:
            self.live.clear()
            if self._child is not None and not self._poisoned:
                self.tell("forget")
        if self._child is not None:
            self._child.mark()

    def restart(self, limit_s: float) -> None:
        """The check's time starts again, with another limit."""
        self.limit_s = limit_s
        self.deadline = time.monotonic() + limit_s

    def _not_loaded(self, error: Exception, spec: CandidateSpec) -> UsageError:
        """The process was lost while it loaded something."""
        child = self._child
        assert child is not None, "only what was opened can be lost"
        hung = isinstance(error, DeadlineError)
        stack = child.ask_for_stack() if hung else child.stack()
        found: str = Text("nothing happened for {seconds} s", seconds=f"{self._starting_limit_s:g}")
        if not hung:
            status = child.exit_status()
            found = str(error) if isinstance(error, BrokenWireError) else in_words(status)
        detail = "\n".join(filter(None, [stack, child.printed()])) or None
        spec = next((self._loading[n] for n in self._expected if n in self._loading), spec)
        self.close()
        self.losses += 1
        return usage_error(
            "K3C-070" if hung else "K3C-069",
            where=f"{spec.origin}  {spec.target}",
            found=found,
            detail=detail,
            target=str(spec.target),
            how=found,
        )

    def ready(self, spec: CandidateSpec) -> None:
        """Have a process in which a callable can be called, and which waits for a message.

        Raises:
            CandidateLostError: there cannot be one: what could be loaded once cannot be any more.
        """
        if self._poisoned:
            self.close()
        if self._child is not None:
            self.settle()
        number = self._asked.get(str(spec.target))
        if self._child is not None and number is not None and number not in self._loading:
            return
        began = time.monotonic()
        self._beat()
        try:
            self.load(spec)
        except UsageError as error:
            evidence = {"error": error.found or error.what, "traceback": error.detail or ""}
            raise CandidateLostError(
                Outcome.CRASHED,
                Message("K3O-950", {"error": evidence["error"]}),
                {k: v for k, v in evidence.items() if v},
            ) from None
        self._beat()
        took = time.monotonic() - began
        self.deadline += took
        self.waited_s += took

    # What it printed.

    def printed(self) -> str:
        """The tail of what was printed since."""
        return "" if self._child is None else self._child.printed()
