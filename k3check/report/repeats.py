"""Findings that end in one and the same way: told once, and after a few not tried again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.model import Outcome

if TYPE_CHECKING:
    from collections.abc import Hashable

    from k3check.model import Finding

_FRAME = '  File "'


def ending(finding: Finding) -> Hashable:
    """How a crash or time-out came about, equal for two that are the same.

    Two time-outs are: where a check is when its time is over depends on the machine's load. Two
    crashes are if the exception's type (or the signal, or the exit status) and the last frame
    are the same; the message may differ, as it names the shapes of each case.
    """
    if finding.outcome is Outcome.TIMED_OUT:
        return (finding.outcome,)
    evidence = finding.evidence
    trace = str(evidence.get("traceback") or evidence.get("stack") or "")
    frames = [line for line in trace.splitlines() if line.startswith(_FRAME)]
    return (
        finding.outcome,
        finding.hint.code if finding.hint is not None else None,
        str(evidence.get("error", "")).partition(":")[0],
        str(evidence.get("signal")),
        str(evidence.get("exit_status")),
        frames[-1] if frames else None,
    )
