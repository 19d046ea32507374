"""What there is to say about one finding, as labelled paragraphs that several formats lay out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from k3check.report.clean import clean, number, one_line, plain
from k3check.report.sparkline import sparkline
from k3check.report.texts import SavedMessage, fix_of, hint_of, label, title_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from k3check.report.model import Diagnosis, Finding

_LEADS = 3
_EVIDENCE_LINES = 12


@dataclass(frozen=True)
class Paragraph:
    """A label and its text; ``kind`` tells a format how to style it."""

    kind: str
    label: str
    text: str


def details(finding: Finding, lang: str) -> list[str]:
    """The paragraphs of a failure as plain lines, for formats without a layout of their own."""
    return [f"{p.label}: {p.text}" for p in paragraphs(finding, lang, everything=True)]


def paragraphs(finding: Finding, lang: str, *, everything: bool = False) -> Iterator[Paragraph]:
    """Everything worth reading about a failed finding, in the order to read it.

    Args:
        finding: the finding; it may have passed.
        lang: the language.
        everything: also metrics within their limits, all leads, and evidence in full.
    """
    yield from metrics(finding, lang, everything=everything)
    if finding.location:
        place = ", ".join(f"{clean(str(k))} {plain(v)}" for k, v in finding.location.items())
        yield Paragraph("place", label("worst", lang), place)
    yield from series(finding)
    leads = finding.diagnoses if everything else finding.diagnoses[:_LEADS]
    for rank, diagnosis in enumerate(leads):
        name = label("or" if rank else "likely", lang)
        yield Paragraph("diagnosis", name, one_line(_diagnosis(diagnosis, lang)))
    hint = hint_of(finding)
    if hint is not None and not finding.diagnoses and not isinstance(hint, SavedMessage):
        found = f"{one_line(title_of(hint, lang))} [{one_line(hint.code)}]"
        yield Paragraph("diagnosis", label("found", lang), found)
    yield from evidence(finding, lang, everything=everything)
    fix = fix_of(hint, lang) if hint is not None else ""
    if hint is not None and fix:
        yield Paragraph("fix", label("fix", lang), f"{one_line(fix)}")
    code = finding.diagnoses[0].code if finding.diagnoses else hint.code if hint else None
    if code is not None:
        yield Paragraph("more", label("more", lang), f"k3check explain {clean(code)}")


def exceeds(measured: float, limit: float) -> bool:
    """True unless the value is within its limit; NaN never is."""
    return not measured <= limit


def metrics(finding: Finding, lang: str, *, everything: bool) -> Iterator[Paragraph]:
    """One paragraph per metric over its limit, or with ``everything`` per metric."""
    for name, measured in finding.metrics.items():
        limit = finding.limits.get(name)
        over = limit is not None and exceeds(measured, limit)
        if not (over or everything):
            continue
        text = f"{one_line(name)} {number(measured)}"
        if limit is not None:
            text += f", {label('limit', lang)} {number(limit)}"
            if over and limit > 0 and math.isfinite(measured):
                text += f" ({label('times', lang, ratio=number(measured / limit))})"
        yield Paragraph("metric", label("measured", lang), text)


def series(finding: Finding) -> Iterator[Paragraph]:
    """One sparkline per series, with the smallest and largest value."""
    for name, values in finding.series.items():
        finite = [value for value in values if math.isfinite(value)]
        reach = f"{number(min(finite))} .. {number(max(finite))}" if finite else "NaN"
        yield Paragraph("series", one_line(name), f"{sparkline(values)}  {reach}")


def evidence(finding: Finding, lang: str, *, everything: bool) -> Iterator[Paragraph]:
    """What was seen, cut to a few lines unless ``everything``."""
    for name, value in finding.evidence.items():
        lines = plain(value).rstrip().split("\n")
        if len(lines) > _EVIDENCE_LINES and not everything:
            hidden = len(lines) - _EVIDENCE_LINES
            lines = [*lines[:_EVIDENCE_LINES], label("cut", lang, count=hidden)]
        yield Paragraph("evidence", one_line(str(name)).replace("_", " "), "\n".join(lines))


def _diagnosis(diagnosis: Diagnosis, lang: str) -> str:
    facts = [label(diagnosis.confidence.value, lang)]
    if diagnosis.residual is not None:
        facts.append(label("residual", lang, residual=number(diagnosis.residual)))
    if diagnosis.margin is not None:
        facts.append(label("margin", lang, margin=number(diagnosis.margin)))
    return f"{title_of(diagnosis, lang)} [{diagnosis.code}] ({', '.join(facts)})"
