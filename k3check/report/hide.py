"""Take secrets out of a finished report, whoever let them in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from k3check.model import Finding, Message, Report

HIDDEN = "***"
# a shorter one cannot be told from ordinary words
_SHORTEST = 6


def without(report: Report, secrets: Sequence[str]) -> Report:
    """The report with every known secret replaced, in whatever text it stands.

    This is the last line of defence: link and the worker take keys out where they enter.
    """
    known = sorted({s for s in secrets if len(s) >= _SHORTEST}, key=len, reverse=True)
    if not known:
        return report
    return replace(
        report,
        findings=[_finding(finding, known) for finding in report.findings],
        environment=_hidden(report.environment, known),
        config_notes=_messages(report.config_notes, known),
    )


def _finding(finding: Finding, known: Sequence[str]) -> Finding:
    return replace(
        finding,
        title=_hidden(finding.title, known),
        location=_hidden(finding.location, known),
        diagnoses=[replace(d, values=_hidden(d.values, known)) for d in finding.diagnoses],
        hint=None if finding.hint is None else _messages([finding.hint], known)[0],
        evidence=_hidden(finding.evidence, known),
        notes=_messages(finding.notes, known),
    )


def _messages(messages: Sequence[Message], known: Sequence[str]) -> list[Message]:
    return [replace(message, values=_hidden(message.values, known)) for message in messages]


def _hidden(value: Any, known: Sequence[str]) -> Any:
    if isinstance(value, str):
        for secret in known:
            value = value.replace(secret, HIDDEN)
        return value
    if hasattr(value, "items"):
        items: Mapping[Any, Any] = value
        return {_hidden(key, known): _hidden(item, known) for key, item in items.items()}
    if isinstance(value, list | tuple):
        return [_hidden(item, known) for item in value]
    return value
