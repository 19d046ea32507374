"""How a process ended, as a finding or as an error of the input."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

from k3check import hints
from k3check.errors import UsageError
from k3check.model import Finding, Message, Outcome, Text
from k3check.runners.wire import PIPE_LOST

if TYPE_CHECKING:
    from collections.abc import Mapping


def of_death(status: int | None, stack: str) -> tuple[Message, dict[str, Any]]:
    """What to say of a process that ended in the middle of a check, and the evidence.

    Args:
        status: its exit status, negative for a signal; None if it lives on without its pipe.
        stack: where it was.
    """
    if status in (None, PIPE_LOST):
        return Message("K3O-028", {}), {}
    assert status is not None, "told apart above"
    if status >= 0:
        return Message("K3O-025", {"status": status}), {"exit_status": status}
    name = signal_name(-status)
    code = "K3O-024" if name == "SIGKILL" else "K3O-023"
    return Message(code, {"signal": name}), {"signal": name, "stack": stack}


def signal_name(number: int) -> str:
    """A signal's name, ``SIGSEGV``."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def in_words(status: int | None) -> str:
    """How a process ended."""
    if status is None or status == PIPE_LOST:
        return "the process closed all of its files"
    if status < 0:
        return Text("killed by {signal}", signal=signal_name(-status))
    return Text("exit status {status}", status=status)


def finding_of(
    check: Any, outcome: Outcome, hint: Message, evidence: Mapping[str, Any], took: float
) -> Finding:
    """The finding of a check that did not make it itself."""
    return Finding(
        id=check.id,
        suite=check.suite,
        operator=check.operator,
        case=check.case,
        outcome=outcome,
        title=check.title,
        hint=hint,
        evidence=evidence,
        duration_s=took,
    )


def usage_error(
    code: str,
    *,
    where: str | None = None,
    found: str | None = None,
    accepted: str | None = None,
    detail: str | None = None,
    **values: str,
) -> UsageError:
    """The usage error of a code, with its texts."""
    return UsageError(
        code=code,
        what=hints.title(code, values=values),
        where=where,
        found=found,
        accepted=accepted,
        fix=hints.fix(code, values=values),
        detail=detail,
    )
