"""Markdown, for a comment on a pull request or a job's summary page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from k3check import __version__
from k3check.model import Outcome
from k3check.plain import one_line, seconds
from k3check.report.formats.lines import paragraphs, warnings
from k3check.report.texts import (
    check_title,
    label,
    note_of,
    other_notes,
    outcome_word,
    reason_of,
    summary_line,
    verdict_word,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from k3check.model import Finding, Report
    from k3check.report.formats import Options

_MARK = {
    Outcome.PASS: "✅",
    Outcome.ACCEPTABLE: "🟡",
    Outcome.FAIL: "❌",
    Outcome.SKIPPED: "⏭️",
    Outcome.CRASHED: "💥",
    Outcome.TIMED_OUT: "⌛",
}
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&!@])")


def render(report: Report, options: Options) -> str:
    """The report as Markdown: the verdict, a section per failure, a table of all checks."""
    text = "\n".join(_lines(report, options.lang))
    return text.replace("\n\n\n", "\n\n").rstrip("\n") + "\n"


def _lines(report: Report, lang: str) -> Iterator[str]:
    verdict = verdict_word(report, lang)
    yield f"## {_MARK[report.verdict]} k3check: {verdict}"
    yield ""
    counted = summary_line(report.counts(), lang)
    yield f"{counted} {label('in', lang)} {seconds(report.duration_s)} · k3check {__version__}"
    if report.built_in_note is not None:
        yield ""
        yield _escape(note_of(report.built_in_note, lang))
    for finding in report.findings:
        if finding.outcome.is_failure:
            yield from _section(finding, lang)
    if report.findings:
        yield ""
        yield f"| | {label('check', lang)} | | {label('outcome', lang)} |"
        yield "|---|---|---|---|"
    for finding in report.findings:
        word = outcome_word(finding.outcome, lang)
        if finding.outcome is Outcome.SKIPPED and reason_of(finding, lang):
            word += f": {_escape(reason_of(finding, lang))}"
        yield (
            f"| {_MARK[finding.outcome]} | {_code(finding.id)} "
            f"| {_escape(check_title(finding, lang))} | {word} |"
        )
    warned = [f for f in report.findings if f.outcome is Outcome.ACCEPTABLE]
    said = [(part.text, f.id) for f in warned for part in warnings(f, lang)]
    if said:
        yield ""
        yield f"### {label('warnings', lang)}"
        yield ""
    for text, check in said:
        yield f"- {_code(check)}: {_escape(text)}"
    notes = [(note, finding.id) for finding in report.findings for note in other_notes(finding)]
    if notes or report.config_notes:
        yield ""
        yield f"### {label('notes', lang)}"
        yield ""
    for note in report.config_notes:
        yield f"- {_escape(note_of(note, lang))} ({_escape(note.code)})"
    for note, check in notes:
        yield f"- {_code(check)}: {_escape(note_of(note, lang))} ({_escape(note.code)})"


def _section(finding: Finding, lang: str) -> Iterator[str]:
    yield ""
    yield f"### {_MARK[finding.outcome]} {_code(finding.id)}: {_escape(check_title(finding, lang))}"
    yield ""
    for part in paragraphs(finding, lang, everything=True):
        if part.kind in ("evidence", "trace", "series"):
            yield f"- **{_escape(part.label)}**"
            yield ""
            yield from _block(part.text)
            yield ""
        elif part.kind == "more":
            yield f"- **{part.label}** {_code(part.text)}"
        else:
            yield f"- **{_escape(part.label)}** {_escape(part.text)}"


def _block(text: str) -> Iterator[str]:
    """A fenced block inside a list item; the fence is longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"  {fence}text"
    yield from (f"  {line}" for line in text.split("\n"))
    yield f"  {fence}"


def _code(text: str) -> str:
    """Inline code that holds whatever the text is, also in a table."""
    flat = one_line(text).replace("|", "\\|")
    longest = max((len(run) for run in re.findall(r"`+", flat)), default=0)
    ticks = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{ticks}{pad}{flat}{pad}{ticks}"


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", one_line(text))
