"""Workflow commands of GitHub Actions: every failure becomes an annotation of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.model import Outcome
from k3check.plain import one_line, seconds
from k3check.report.formats.lines import details, warnings
from k3check.report.texts import (
    check_title,
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

    Failures are errors, acceptable results warnings, notes notices. A finding whose location
    names a file is shown at that file and line.
    """
    lang = options.lang
    lines = []
    for finding in report.findings:
        if finding.outcome.is_failure:
            lines.append(_command("error", finding, "\n".join(details(finding, lang)), lang))
        elif finding.outcome is Outcome.ACCEPTABLE:
            lines.append(_command("warning", finding, "\n".join(_warned(finding, lang)), lang))
        lines += [
            _command("notice", finding, one_line(note_of(note, lang)), lang)
            for note in other_notes(finding)
        ]
    lines += [
        f"::notice title={_property(one_line(note.code))}::{_data(one_line(note_of(note, lang)))}"
        for note in report.config_notes
    ]
    if report.built_in_note is not None:
        said = one_line(note_of(report.built_in_note, lang))
        lines.append(f"::notice title={report.built_in_note.code}::{_data(said)}")
    verdict = verdict_word(report, lang)
    lines.append(
        f"k3check: {verdict}: {summary_line(report.counts(), lang)}, {seconds(report.duration_s)}"
    )
    return "\n".join(lines) + "\n"


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
