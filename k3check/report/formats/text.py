"""Text for people: one line a suite, then notes, failures whole, and the summary last."""

from __future__ import annotations

import io
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.cells import cell_len as cells
from rich.text import Text

from k3check import __version__
from k3check.model import Outcome
from k3check.plain import one_line, plain, seconds
from k3check.report.formats import Verbosity
from k3check.report.formats.lines import Paragraph, metrics, paragraphs, series, warnings
from k3check.report.repeats import ending
from k3check.report.terminal import console as make_console
from k3check.report.terminal import to_ascii, wrapped
from k3check.report.texts import (
    check_title,
    label,
    note_of,
    other_notes,
    outcome_word,
    reason_of,
    summary_line,
    title_of,
    verdict_word,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from rich.console import Console

    from k3check.model import Finding, Message, Report
    from k3check.report.formats import Options

_SIGNS = {
    Outcome.PASS: ("✓", "green"),
    Outcome.ACCEPTABLE: ("≈", "yellow"),
    Outcome.FAIL: ("✗", "bold red"),
    Outcome.SKIPPED: ("-", "yellow"),
    Outcome.CRASHED: ("✗", "bold red"),
    Outcome.TIMED_OUT: ("✗", "bold red"),
}
_STYLES = {"diagnosis": "bold", "fix": "bold", "more": "cyan", "evidence": "dim", "facts": "dim",
           "trace": "dim", "warning": "yellow"}  # fmt: skip
# Printed line by line as they are: a traceback that is wrapped cannot be copied.
_AS_IT_IS = ("trace",)
_INDENT = 4
_LABEL = 11
_ID = 30
_SUITE = 9
_FOLLOWERS = 3
_TOGETHER = ("cache", "dist")
#: A suite's sign is that of the worst in it; one that was skipped as a whole says why.
_WORST = (Outcome.FAIL, Outcome.CRASHED, Outcome.TIMED_OUT, Outcome.ACCEPTABLE, Outcome.PASS)


@dataclass
class _Told:
    """What was told so far: nothing is said twice.

    Attributes:
        alike: by operator and ending, how many crashes or time-outs are the same.
        endings: those that are told.
    """

    alike: Counter[Hashable]
    endings: set[Hashable] = field(default_factory=set)


def render(report: Report, options: Options) -> str:
    """The report as text, with colour only where ``options.look`` has it."""
    buffer = io.StringIO()
    print_report(make_console(buffer, options.look), report, options)
    # rich leaves the blank at which it broke a line
    text = re.sub(r" +$", "", buffer.getvalue(), flags=re.MULTILINE)
    return to_ascii(text) if options.look.ascii else text


def print_report(console: Console, report: Report, options: Options) -> None:
    """Print the report on a console."""
    quiet = options.verbosity is Verbosity.QUIET
    if not quiet:
        console.print(_heading(report, options.lang))
        if options.verbosity is Verbosity.VERBOSE:
            for name, value in report.environment.items():
                _print_labelled(console, one_line(str(name)), plain(value), "dim", indent=2)
        console.print()
        for suite in dict.fromkeys(finding.suite for finding in report.findings):
            _print_suite(console, suite, report, options)
        _print_notes(console, report, options)
    _print_failures(console, report, options)
    if not quiet:
        console.print()
    if report.built_in_note is not None:
        said = one_line(note_of(report.built_in_note, options.lang))
        for line in wrapped(console, said, console.width):
            console.print(Text(line, style="yellow"), no_wrap=True)
    console.print(last_line(report, options.lang))


def _heading(report: Report, lang: str) -> Text:
    text = Text(f"k3check {__version__}", style="bold")
    for name in ("python", "torch", "devices"):
        if report.environment.get(name):
            text.append(f" · {name} {one_line(plain(report.environment[name]))}", style="not bold")
    if report.config_path is not None:
        dialect = f" ({one_line(report.config_dialect)})" if report.config_dialect else ""
        path = one_line(report.config_path)
        text.append(f"\n{label('config', lang)} {path}{dialect}", style="not bold")
    return text


def _print_suite(console: Console, suite: str, report: Report, options: Options) -> None:
    """One line a suite, with what is acceptable below it; all its checks where asked for."""
    findings = [finding for finding in report.findings if finding.suite == suite]
    counts = Counter(finding.outcome for finding in findings)
    worst = next((o for o in _WORST if counts[o]), Outcome.SKIPPED)
    sign, style = _SIGNS[worst]
    line = Text("  ").append(sign, style=style).append(f" {one_line(suite):<{_SUITE}} ")
    said = summary_line({o: counts[o] for o in Outcome}, options.lang)
    console.print(line.append(said), no_wrap=True, overflow="ellipsis")
    for finding in findings:
        if options.verbosity is Verbosity.VERBOSE or finding.outcome is Outcome.ACCEPTABLE:
            _print_finding(console, finding, options)
    if worst is Outcome.SKIPPED and options.verbosity is not Verbosity.VERBOSE:
        for reason in dict.fromkeys(one_line(reason_of(f, options.lang)) for f in findings):
            _print_labelled(console, "", reason, "dim")


def _print_failures(console: Console, report: Report, options: Options) -> None:
    """Every failure whole, those with a named cause first; what repeats one in a line below it."""
    failures = [finding for finding in report.findings if finding.outcome.is_failure]
    # What operators do together follows from what one of them does alone.
    failures.sort(key=lambda finding: (finding.suite in _TOGETHER, not finding.diagnoses))
    told = _Told(Counter(map(_ending, report.findings)))
    verbose = options.verbosity is Verbosity.VERBOSE
    groups: dict[Hashable, list[Finding]] = {}
    for finding in failures:
        groups.setdefault(finding.id if verbose else _cause(finding), []).append(finding)
    for first, *others in groups.values():
        if options.verbosity is not Verbosity.QUIET:
            console.print()
        _print_failure(console, first, options, told)
        if others:
            named = _names(others, options.lang)
            alike = _ending(first) is not None  # their number is told already
            said = named if alike else _followers(len(others), named, options.lang)
            name = "" if alike else label("and", options.lang)
            _print_labelled(console, name, said, "cyan")


def _cause(finding: Finding) -> Hashable:
    """What failures have in common that are told together; an endpoint's stand alone."""
    end = _ending(finding)
    if end is not None:
        return end
    message = next(iter(finding.diagnoses), None) or finding.hint
    if message is None or finding.operator is None:
        return finding.id
    return finding.operator, message.code


def _names(others: Sequence[Finding], lang: str) -> str:
    """The checks that are told with another one; a few of them where they are many."""
    shown = [one_line(other.id) for other in others[:_FOLLOWERS]]
    if len(others) > len(shown):
        shown.append(label("unlisted", lang, count=len(others) - len(shown)))
    return ", ".join(shown)


def _followers(count: int, named: str, lang: str) -> str:
    """How many checks fail with the same cause, and which."""
    return f"{label('follows' if count == 1 else 'follow', lang, count=count)}{named}"


def _print_failure(console: Console, finding: Finding, options: Options, told: _Told) -> None:
    """A failure with everything that is needed to mend it."""
    lang, verbose = options.lang, options.verbosity is Verbosity.VERBOSE
    sign, style = _SIGNS[finding.outcome]
    head = Text("  ").append(sign, style=style).append(f" {one_line(finding.id)} ", style="bold")
    said = f"{outcome_word(finding.outcome, lang)}: {one_line(check_title(finding, lang))}"
    if head.cell_len + cells(said) <= console.width:
        console.print(head.append(said, style=style), no_wrap=True, overflow="ellipsis")
    else:
        console.print(head, no_wrap=True, overflow="fold")
        for line in wrapped(console, said, console.width - _INDENT):
            console.print(Text(" " * _INDENT).append(line, style=style), no_wrap=True)
    for part in _failure(finding, told, lang, verbose=verbose):
        if part.kind in _AS_IT_IS:
            _print_as_it_is(console, part)
        else:
            _print_labelled(console, part.label, part.text, _STYLES.get(part.kind, ""))
    for note in _notes_shown(finding, verbose=verbose):
        _print_labelled(console, label("note", lang), one_line(note_of(note, lang)), "yellow")


def _print_finding(console: Console, finding: Finding, options: Options) -> None:
    """Print one finding in its suite; a failure's details come later, all together."""
    lang, verbose = options.lang, options.verbosity is Verbosity.VERBOSE
    console.print(_line(finding, console.width, lang), no_wrap=True, overflow="ellipsis")
    if finding.outcome.is_failure:
        return
    if finding.outcome is Outcome.ACCEPTABLE:
        parts = (
            paragraphs(finding, lang, everything=True) if verbose else _acceptable(finding, lang)
        )
        for part in parts:
            _print_labelled(console, part.label, part.text, _STYLES.get(part.kind, "dim"))
    else:
        if finding.outcome is Outcome.SKIPPED:
            _print_labelled(console, "", one_line(reason_of(finding, lang)), "dim")
        measured = metrics(finding, lang, everything=True) if verbose else ()
        for part in (*measured, *series(finding, lang)):
            _print_labelled(console, part.label, part.text, "dim")
    for note in _notes_shown(finding, verbose=verbose):
        _print_labelled(console, label("note", lang), one_line(note_of(note, lang)), "yellow")


def _acceptable(finding: Finding, lang: str) -> Iterator[Paragraph]:
    """An acceptable result's details: how close it is, and what it warns of."""
    yield from metrics(finding, lang, everything=False)
    yield from series(finding, lang)
    yield from warnings(finding, lang)


def _notes_shown(finding: Finding, *, verbose: bool) -> Sequence[Message]:
    """The notes that stand at a finding; an acceptable one has its reason there or in a warning."""
    warned = finding.diagnoses or finding.hint is not None
    if verbose or (finding.outcome is Outcome.ACCEPTABLE and not warned):
        return other_notes(finding)
    return ()


def _failure(finding: Finding, told: _Told, lang: str, *, verbose: bool) -> Iterator[Paragraph]:
    """A failure's details; one that repeats an earlier one's is measured and refers to it."""
    end = _ending(finding)
    if end is not None and not verbose:
        if end not in told.endings:
            told.endings.add(end)
            yield from paragraphs(finding, lang, everything=False)
            if told.alike[end] > 1:
                name = "same_one" if told.alike[end] == 2 else "same"
                if finding.outcome is Outcome.TIMED_OUT:
                    name = "timed_out_too"  # where each was stopped may differ
                text = label(name, lang, count=told.alike[end] - 1)
                yield Paragraph("again", label("and", lang), text)
        return
    yield from paragraphs(finding, lang, everything=verbose)


def _ending(finding: Finding) -> Hashable:
    """By what crashes and time-outs of an operator are the same; None for everything else."""
    if finding.operator is None or finding.outcome not in (Outcome.CRASHED, Outcome.TIMED_OUT):
        return None
    return finding.operator, ending(finding)


def _line(finding: Finding, width: int, lang: str) -> Text:
    """A check in one line: sign, id, outcome unless it passed, title."""
    sign, style = _SIGNS[finding.outcome]
    line = Text("  ").append(sign, style=style).append(f" {one_line(finding.id):<{_ID}} ")
    if finding.outcome is not Outcome.PASS:
        line.append(f"{outcome_word(finding.outcome, lang)}: ", style=style)
    line.append(one_line(check_title(finding, lang)))
    line.truncate(width, overflow="ellipsis")
    return line


def _print_as_it_is(console: Console, part: Paragraph) -> None:
    """Print a text below its label, each line of it as one, however long it is."""
    left = " " * _INDENT
    console.print(Text(left).append(part.label, style="dim"), no_wrap=True, overflow="ellipsis")
    for line in part.text.split("\n"):
        said = Text(f"{left}  {line}".rstrip(), style=_STYLES.get(part.kind, ""))
        console.print(said, soft_wrap=True)


def _print_labelled(
    console: Console, name: str, text: str, style: str, *, indent: int = _INDENT
) -> None:
    """Print ``text`` with a hanging indent behind a label; a long label gets its own line."""
    left = indent + _LABEL
    head = Text(" " * indent).append(name, style="dim")
    if head.cell_len >= left:
        console.print(head, no_wrap=True, overflow="ellipsis")
        head = Text()
    head.append(" " * (left - head.cell_len))
    for line in wrapped(console, text, console.width - left):
        console.print(head.append(line, style=style), no_wrap=True, overflow="ignore", crop=False)
        head = Text(" " * left)


def _print_notes(console: Console, report: Report, options: Options) -> None:
    verbose = options.verbosity is Verbosity.VERBOSE
    hidden = sum(
        len(other_notes(finding)) - len(_notes_shown(finding, verbose=verbose))
        for finding in report.findings
    )
    if report.config_notes or hidden:
        console.print()
    for note in report.config_notes:
        text = note_of(note, options.lang) if verbose else title_of(note, options.lang)
        text = f"{one_line(text)} [{one_line(note.code)}]"
        _print_labelled(console, label("note", options.lang), text, "", indent=0)
    if hidden:
        name = "hidden_note" if hidden == 1 else "hidden_notes"
        console.print(Text(label(name, options.lang, count=hidden), style="dim"))


def last_line(report: Report, lang: str) -> Text:
    """The summary: the verdict, what became of how many checks, and the time it took."""
    _, style = _SIGNS[report.verdict]
    text = Text(verdict_word(report, lang), style=f"bold {style}".replace("bold bold", "bold"))
    counted = summary_line(report.counts(), lang)
    when = f"{label('in', lang)} {seconds(report.duration_s)}"
    return text.append(f": {counted} {when}" if counted else f": {when}", style="not bold default")
