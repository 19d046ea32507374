"""One HTML page without scripts, fonts or anything else from outside."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from k3check import __version__
from k3check.model import Outcome
from k3check.plain import clean, number, one_line, plain, seconds
from k3check.report.formats.lines import metrics, paragraphs, warnings
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
    from collections.abc import Iterator, Sequence

    from k3check.model import Finding, Report
    from k3check.report.formats import Options

_STYLE = """
:root { color-scheme: light dark; --pass: #1a7f37; --fail: #cf222e; --near: #9a6700; }
@media (prefers-color-scheme: dark) { :root { --pass: #3fb950; --fail: #f85149; --near: #d29922; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin: 2rem 0 .5rem; font-size: 1.1rem; }
details, .row { border-top: 1px solid #8884; padding: .35rem 0; }
summary { cursor: pointer; }
.id, pre, code { font-family: ui-monospace, monospace; font-size: .9em; }
.id { display: inline-block; min-width: 16rem; }
.word { display: inline-block; min-width: 6.5rem; font-weight: 600; }
.pass { color: var(--pass); } .fail, .crashed, .timed_out { color: var(--fail); }
.acceptable, .skipped { color: var(--near); }
dl { display: grid; grid-template-columns: 9rem 1fr; gap: .2rem .8rem; margin: .5rem 0 .8rem 1rem; }
dt { opacity: .7; } dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }
pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.diagnosis, .fix { font-weight: 600; }
svg { display: block; width: 100%; max-width: 30rem; height: 4rem; }
polyline { fill: none; stroke: currentColor; stroke-width: 1.5; vector-effect: non-scaling-stroke; }
circle { fill: var(--fail); }
"""
_WIDTH, _HEIGHT = 480, 60


def render(report: Report, options: Options) -> str:
    """The report as one page; failures are open, the rest folded."""
    return "\n".join(_page(report, options.lang)) + "\n"


def _page(report: Report, lang: str) -> Iterator[str]:
    verdict = verdict_word(report, lang)
    yield "<!doctype html>"
    yield f'<html lang="{"zh-CN" if lang == "zh" else "en"}"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>k3check: {escape(verdict)}</title><style>{_STYLE}</style></head><body>"
    yield f'<h1>k3check: <span class="{report.verdict.value}">{escape(verdict)}</span></h1>'
    counted = summary_line(report.counts(), lang)
    yield f"<p>{escape(counted)} {label('in', lang)} {seconds(report.duration_s)}</p>"
    if report.built_in_note is not None:
        yield f"<p>{_text(note_of(report.built_in_note, lang))}</p>"
    failures = [finding for finding in report.findings if finding.outcome.is_failure]
    if failures:
        yield f'<section><h2 class="fail">{label("fail", lang)}</h2>'
        for finding in failures:
            yield from _finding(finding, lang)
        yield "</section>"
    for suite in dict.fromkeys(finding.suite for finding in report.findings):
        others = [f for f in report.findings if f.suite == suite and not f.outcome.is_failure]
        if others:
            yield f"<section><h2>{_text(suite)}</h2>"
            for finding in others:
                yield from _finding(finding, lang)
            yield "</section>"
    if report.config_notes:
        yield f"<h2>{label('notes', lang)}</h2><ul>"
        for note in report.config_notes:
            yield f"<li>{_text(note_of(note, lang))} <code>{_text(note.code)}</code></li>"
        yield "</ul>"
    yield from _environment(report, lang)
    yield "</body></html>"


def _finding(finding: Finding, lang: str) -> Iterator[str]:
    kind = finding.outcome.value
    row = (
        f'<span class="word {kind}">{escape(outcome_word(finding.outcome, lang))}</span> '
        f'<span class="id">{_text(finding.id)}</span> {_text(check_title(finding, lang))}'
    )
    rows = list(_rows(finding, lang))
    if not rows:
        yield f'<div class="row">{row}</div>'
        return
    yield f"<details{' open' if finding.outcome.is_failure else ''}><summary>{row}</summary><dl>"
    for css, name, body in rows:
        yield f'<dt>{_text(name)}</dt><dd class="{css}">{body}</dd>'
    yield "</dl></details>"


def _rows(finding: Finding, lang: str) -> Iterator[tuple[str, str, str]]:
    """Class, label and HTML of everything that is known about a finding."""
    if finding.outcome.is_failure:
        parts = list(paragraphs(finding, lang, everything=True))
    else:
        parts = list(metrics(finding, lang, everything=True))
    if finding.outcome is Outcome.ACCEPTABLE:
        parts += warnings(finding, lang)
    for part in parts:
        if part.kind in ("evidence", "trace"):
            yield part.kind, part.label, f"<pre>{escape(part.text)}</pre>"
        elif part.kind != "series":
            yield part.kind, part.label, _text(part.text)
    if finding.outcome is Outcome.SKIPPED:
        yield "reason", label("skipped", lang), _text(reason_of(finding, lang))
    for name, values in finding.series.items():
        yield "series", name, _plot(values)
    for note in other_notes(finding):
        yield "note", label("note", lang), _text(note_of(note, lang))


def _plot(values: Sequence[float]) -> str:
    """A series as a line; positions that are not finite as dots at the top."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return "NaN"
    low, high = min(finite), max(finite)
    step = _WIDTH / max(1, len(values) - 1)
    span = (high - low) or 1.0
    line, dots = [], []
    for index, value in enumerate(values):
        x = round(index * step, 1)
        if math.isfinite(value):
            line.append(f"{x},{round(_HEIGHT - (value - low) / span * _HEIGHT, 1)}")
        else:
            dots.append(f'<circle cx="{x}" cy="0" r="3"/>')
    return (
        f'<svg viewBox="0 -4 {_WIDTH} {_HEIGHT + 8}" preserveAspectRatio="none" role="img">'
        f'<polyline points="{" ".join(line)}"/>{"".join(dots)}</svg>'
        f"{number(low)} .. {number(high)}"
    )


def _environment(report: Report, lang: str) -> Iterator[str]:
    rows = {"k3check": __version__, **report.environment}
    if report.config_path is not None:
        rows[label("config", lang)] = report.config_path
    yield f"<h2>{label('environment', lang)}</h2><dl>"
    for name, value in rows.items():
        yield f"<dt>{_text(str(name))}</dt><dd>{escape(plain(value))}</dd>"
    yield f"<dt>started_at</dt><dd>{escape(clean(report.started_at))}</dd></dl>"


def _text(text: str) -> str:
    return escape(one_line(text))
