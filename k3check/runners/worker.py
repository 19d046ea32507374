"""The worker process: import torch and the targets, run the checks, report over a private pipe.

Everything that the user's code can do happens in here. Nothing that it prints is mistaken for a
result, because results travel over a pipe of their own; how it may die is the supervisor's affair.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import json
import os
import signal
import sys
import time
import traceback
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from k3check import hints
from k3check.errors import NothingToCheck, UsageError
from k3check.model import Finding, Message, Outcome
from k3check.nouns.candidate_error import CandidateError, classify, guarded, one_line
from k3check.nouns.request import CandidateSpec, OpsRequest
from k3check.runners.built_in import told_apart
from k3check.runners.environment import describe
from k3check.runners.target import load_target
from k3check.runners.wire import PIPE_LOST, Sender, finding_to_plain, usage_to_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from k3check.nouns.check import Check

_CRASH_CODES = {
    "raised": "K3O-020",
    "memory": "K3O-021",
    "device": "K3O-026",
    "exit": "K3O-027",
}
_PR_SET_PDEATHSIG = 1


def main(argv: Sequence[str]) -> NoReturn:
    """Run a request.

    Args:
        argv: numbers of the inherited files (the request, the pipe, the stack of a crash), the
            supervisor's process id, and where the planning function is.
    """
    order_fd, pipe_fd, stack_fd, parent = map(int, argv[:4])
    for fd in (order_fd, pipe_fd, stack_fd):
        os.set_inheritable(fd, False)
    _die_with(parent)
    with open(order_fd, "rb") as file:  # noqa: PTH123 - a file number
        order = json.load(file)
    request = OpsRequest.from_json(order["request"])
    sys.argv = ["k3check"]  # a target that parses arguments must not see ours
    faulthandler.enable(stack_fd, all_threads=False)
    faulthandler.register(signal.SIGUSR1, stack_fd, all_threads=False)
    sender = Sender(pipe_fd)
    os.register_at_fork(after_in_child=lambda: _close(pipe_fd, stack_fd))
    try:
        _work(request, order["skip"], order["omit"], argv[4], sender)
    except UsageError as error:
        sender.send("usage", error=usage_to_plain(error))
    except NothingToCheck as error:
        sender.send("nothing", why=error.why)
    except BaseException as error:  # noqa: BLE001 - ours, whatever it is: the supervisor tells
        sender.send("internal", what=one_line(error), trace=traceback.format_exc())
    # Nothing may delay the end: no exit handler and no thread of the user's.
    os._exit(0)


def _work(request: OpsRequest, skip: int, omit: Sequence[str], plan: str, sender: Sender) -> None:
    """Plan the checks and run those that are not done yet, of operators that are not left."""
    output = _Output()
    sender.send("phase", phase="torch")
    torch = _import_torch()
    sender.send("phase", phase="plan")
    checks = told_apart(_planner(plan, request)(request, _loader(request, sender)), request)
    sender.send("environment", environment=describe(torch))
    sender.send("planned", checks=[_announce(check) for check in checks])
    for check in checks[skip:]:
        if check.operator in omit:
            continue
        _restore(torch, request.directory)
        output.restore()
        sender.send("started", offset=output.size())
        began = time.perf_counter()
        finding, broken = _run(check, torch)
        finding = replace(finding, duration_s=time.perf_counter() - began)
        plain = finding_to_plain(finding)
        sender.send("finished", finding=plain, offset=output.size(), replace=broken)
        if check.amend is not None and not broken:
            sender.send("phase", phase="diagnose", operator=check.operator)
            with torch.no_grad():
                amended = [finding_to_plain(finding) for finding in check.amend()]
            sender.send("amended", findings=amended)
    sender.send("environment", environment=describe(torch))
    sender.send("done")


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
    """The function that plans."""
    spec = CandidateSpec("plan", target=plan, origin="k3check")
    try:
        planner: Callable[..., Sequence[Check]] = load_target(spec, request.directory)
    except UsageError as error:  # not the user's target: a mistake of ours
        raise RuntimeError(f"{error.what}\n{error.detail}") from error
    return planner


def _loader(request: OpsRequest, sender: Sender) -> Callable[..., Callable[..., Any]]:
    """What the plan loads targets with: says which one it is, and guards it."""

    def load(spec: CandidateSpec, directory: str | None = None) -> Callable[..., Any]:
        sender.send("phase", phase="target", target=spec.target, origin=spec.origin)
        target = guarded(load_target(spec, directory or request.directory))
        sender.send("phase", phase="plan")
        return target

    return load


def _announce(check: Check) -> dict[str, Any]:
    """What the supervisor must know about a check to name it when the worker is gone."""
    return {
        "id": check.id,
        "suite": check.suite,
        "operator": check.operator,
        "case": check.case,
        "title": check.title,
    }


def _run(check: Check, torch: Any) -> tuple[Finding, bool]:
    """Run a check; also says whether the accelerator's context is broken by now."""
    try:
        with torch.no_grad():
            finding = check.run()
    except CandidateError as error:
        finding = _crashed(check, error.kind, error.error, error.traceback)
        finding = replace(finding, hint=error.hint or finding.hint)
    except (UsageError, NothingToCheck):
        raise
    except BaseException as error:  # noqa: BLE001 - raised again if it is ours
        finding = _not_ours(check, error)
    broken = _device_error(torch)
    if broken and not finding.outcome.is_failure:
        # The kernel failed after it was started, and nobody looked until now.
        finding = _crashed(check, "device", broken, None)
    return finding, broken is not None


def _not_ours(check: Check, error: BaseException) -> Finding:
    """The finding of an exception outside of the user's call that is still no mistake of ours.

    Raises:
        BaseException: ``error``, when it is ours.
    """
    match classify(error):
        case "memory":  # the reference's or the inputs', in float64
            hint = Message("K3O-030", {"error": one_line(error)})
            return _outcome(check, Outcome.SKIPPED, hint, {})
        case "device":  # accelerators report a kernel's failure at the next call
            return _crashed(check, "device", one_line(error), None)
        case "exit":  # from a thread of the user's: nothing of ours raises these
            return _crashed(check, "exit", one_line(error), None)
        case _:
            error.add_note(f"while running {check.id}")
            raise error


def _crashed(check: Check, kind: str, error: str, trace: str | None) -> Finding:
    """The finding of an operator that raised."""
    hint = Message(_CRASH_CODES[kind], {"error": error})
    evidence = {"error": error} if trace is None else {"error": error, "traceback": trace}
    return _outcome(check, Outcome.CRASHED, hint, evidence)


def _outcome(check: Check, outcome: Outcome, hint: Message, evidence: dict[str, Any]) -> Finding:
    return Finding(
        id=check.id,
        suite=check.suite,
        operator=check.operator,
        case=check.case,
        outcome=outcome,
        title=check.title,
        hint=hint,
        evidence=evidence,
    )


def _device_error(torch: Any) -> str | None:
    """Wait for the accelerator; what it says if its context is broken (it stays broken)."""
    if not torch.cuda.is_initialized():
        return None
    try:
        torch.cuda.synchronize()
    except BaseException as error:  # noqa: BLE001 - anything here means that it cannot be used
        return one_line(error)
    return None


def _restore(torch: Any, directory: str) -> None:
    """Undo what an operator may have left changed, so that the next check is not about that."""
    os.chdir(directory)
    torch.set_default_dtype(torch.float32)
    if torch.get_default_device() != torch.device("cpu"):
        torch.set_default_device(None)


class _Output:
    """The worker's output files: what they hold, and that they are there."""

    def __init__(self) -> None:
        self._fd = os.dup(1)
        self._libc = ctypes.CDLL(None)
        self.restore()

    def restore(self) -> None:
        """Make both outputs write into the captured file again, whatever was done to them.

        Line by line: what stands in a buffer is lost when a process dies.
        """
        for number, name in ((1, "stdout"), (2, "stderr")):
            try:
                os.dup2(self._fd, number)
            except OSError:
                os._exit(PIPE_LOST)
            stream = getattr(sys, f"__{name}__")
            if stream is None or stream.closed:
                stream = open(number, "w", closefd=False)  # noqa: SIM115 - lives on
                setattr(sys, f"__{name}__", stream)
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
            setattr(sys, name, stream)

    def size(self) -> int:
        """Bytes printed so far, with what stands in buffers of Python's and of C's."""
        for stream in (sys.stdout, sys.stderr):
            # Whatever the user's code put there; it may be closed, or no stream at all.
            with contextlib.suppress(Exception):
                stream.flush()
        self._libc.fflush(None)
        try:
            return os.fstat(self._fd).st_size
        except OSError:
            os._exit(PIPE_LOST)


def _die_with(parent: int) -> None:
    """End with the supervisor, even if that is killed (on Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _close(*fds: int) -> None:
    """Close what a fork of the user's has no business with."""
    for fd in fds:
        with contextlib.suppress(OSError):
            os.close(fd)
