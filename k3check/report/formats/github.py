"""Workflow commands of GitHub Actions: every cause of a failure becomes an annotation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.model import Outcome
from k3check.plain import one_line, seconds
from k3check.report.formats.lines import details, warnings
from k3check.report.texts import (
    check_title,
    label,
    note_of,
    other_notes,
    outcome_word,
    summary_line,
    verdict_word,
)

if TYPE_CHECKING:
    from k3check.model import Finding, Report
    from k3check.report.formats import Options


def render(report: Report, options: Options) -> str:
    """Annotations, then the summary as a plain line.

    A cause is one error, whatever number of checks fail by it; acceptable results are warnings;
    notes are plain lines. A finding whose location
    names a file is shown at that file and line.
    """
    lang = options.lang
    lines = []
    failures = [finding for finding in report.findings if finding.outcome.is_failure]
    causes: dict[object, list[Finding]] = {}
    for finding in failures:
        causes.setdefault(_cause(finding), []).append(finding)
    for first, *others in causes.values():
        said = details(first, lang)
        if others:
            count = label("follows" if len(others) == 1 else "follow", lang, count=len(others))
            said.append(count + ", ".join(one_line(other.id) for other in others))
        lines.append(_command("error", first, "\n".join(said), lang))
    lines += [
        _command("warning", finding, "\n".join(_warned(finding, lang)), lang)
        for finding in report.findings
        if finding.outcome is Outcome.ACCEPTABLE
    ]
    notes = [note for finding in report.findings for note in other_notes(finding)]
    lines += [
        f"{label('note', lang)}: {one_line(note_of(note, lang))} [{one_line(note.code)}]"
        for note in (*notes, *report.config_notes)
    ]
    if report.built_in_note is not None:
        text = one_line(note_of(report.built_in_note, lang))
        lines.append(f"::notice title={report.built_in_note.code}::{_data(text)}")
    verdict = verdict_word(report, lang)
    lines.append(
        f"k3check: {verdict}: {summary_line(report.counts(), lang)}, {seconds(report.duration_s)}"
    )
    return "\n".join(lines) + "\n"


def _cause(finding: Finding) -> object:
    """What the checks of one annotation have in common."""
    message = next(iter(finding.diagnoses), None) or finding.hint
    alone = message is None or finding.operator is None or finding.location.get("file")
    return finding.id if alone or message is None else (finding.operator, message.code)


def _warned(finding: Finding, lang: str) -> list[str]:
    """What an acceptable result warns of; its measured values where it has nothing to say."""
    return [part.text for part in warnings(finding, lang)] or details(finding, lang)


def _command(kind: str, finding: Finding, message: str, lang: str) -> str:
    word = outcome_word(finding.outcome, lang)
    properties = {
        "title": f"{one_line(finding.id)}: {word}: {one_line(check_title(finding, lang))}"
    }
    for name in ("file", "line"):
        if name in finding.location:
            properties[name] = one_line(str(finding.location[name]))
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{kind} {listed}::{_data(message)}"


def _data(text: str) -> str:
    """Escape a command's message as the runner's toolkit does."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Escape a command's property."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
