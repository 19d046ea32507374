"""What there is to say about one finding, as labelled paragraphs that several formats lay out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from k3check.hints.phrases import phrase
from k3check.model import TOGETHER, Message, Text
from k3check.plain import clean, number, one_line, plain
from k3check.report.sparkline import sparkline
from k3check.report.texts import (
    SavedDiagnosis,
    SavedMessage,
    fix_of,
    hint_of,
    joined,
    label,
    note_of,
    title_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from k3check.model import Diagnosis, Finding

_LEADS = 3
_EVIDENCE_LINES = 12
# Where an exception came from: copied whole, so laid out as it is; the last lines say most.
_TRACES = ("traceback", "stack")
_TRACE_LINES = 30
_SHORT = 40
_SPARKLINE = 40  # a label, the line and its range fill 80 columns


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
        place = ", ".join(
            f"{_word(clean(str(k)), lang)} {_word(plain(v), lang)}"
            for k, v in finding.location.items()
        )
        yield Paragraph("place", label("worst", lang), place)
    yield from series(finding, lang)
    leads = finding.diagnoses if everything else finding.diagnoses[:_LEADS]
    for rank, diagnosis in enumerate(leads):
        name = label(_lead(finding, rank), lang)
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


def warnings(finding: Finding, lang: str) -> Iterator[Paragraph]:
    """What an acceptable finding warns of: for each warning what it is and what to do about it."""
    hint, name = hint_of(finding), label("warning", lang)
    for rank, diagnosis in enumerate(finding.diagnoses):
        if rank == 0 and hint is not None:
            fix = fix_of(hint, lang)
        elif isinstance(diagnosis, SavedDiagnosis):
            fix = ""  # a saved report has the first one's only
        else:
            fix = fix_of(Message(diagnosis.code, diagnosis.values), lang)
        text = joined(title_of(diagnosis, lang), fix, lang)
        yield Paragraph("warning", name, f"{one_line(text)} [{one_line(diagnosis.code)}]")
    if hint is not None and not finding.diagnoses:
        yield Paragraph("warning", name, f"{one_line(note_of(hint, lang))} [{one_line(hint.code)}]")


def _lead(finding: Finding, rank: int) -> str:
    """The label of a diagnosis: an operator has one mistake, an endpoint may have several."""
    if not finding.outcome.is_failure:
        return "warning"
    if rank == 0:
        return "likely"
    if TOGETHER in finding.diagnoses[rank].values:
        return "and"
    return "also" if finding.suite == "link" else "or"


def exceeds(measured: float, limit: float) -> bool:
    """True unless the value is within its limit; NaN never is."""
    return not measured <= limit


def metrics(finding: Finding, lang: str, *, everything: bool) -> Iterator[Paragraph]:
    """One paragraph for each tensor's worst metric, or with ``everything`` for each metric."""
    for name in finding.metrics if everything else _worst(finding):
        measured, limit = finding.metrics[name], finding.limits.get(name)
        text = f"{one_line(name)} {number(measured)}"
        if limit is not None:
            text += f", {label('limit', lang)} {number(limit)}"
            if exceeds(measured, limit) and limit > 0 and math.isfinite(measured):
                text += f" ({label('times', lang, ratio=_rounded(measured / limit))})"
        yield Paragraph("metric", label("measured", lang), text)


def _worst(finding: Finding) -> list[str]:
    """Of each tensor (the name before the dot) the metric that is furthest over its limit.

    An acceptable finding is over no limit: then the closest to it.
    """
    ratios: dict[str, tuple[float, str]] = {}
    for name, limit in finding.limits.items():
        measured = finding.metrics.get(name)
        if measured is None or not (exceeds(measured, limit) or not finding.outcome.is_failure):
            continue
        ratio = measured / limit if limit > 0 and math.isfinite(measured) else math.inf
        tensor = name.partition(".")[0]
        if tensor not in ratios or ratio > ratios[tensor][0]:
            ratios[tensor] = (ratio, name)
    return [name for _, name in ratios.values()]


def series(finding: Finding, lang: str) -> Iterator[Paragraph]:
    """One sparkline per series, with the smallest and largest value."""
    for name, values in finding.series.items():
        finite = [value for value in values if math.isfinite(value)]
        reach = f"{number(min(finite))} .. {number(max(finite))}" if finite else "NaN"
        drawn = sparkline(values, _SPARKLINE)
        yield Paragraph(
            "series", _word(one_line(name).replace("_", " "), lang), f"{drawn}  {reach}"
        )


# What is known of an output stands under its name and one of these.
_OF_OUTPUTS = ("matches", "looks_like", "best_scale", "cosine", "first_bad_token")


def _named(key: str) -> str:
    """A key of the evidence in words."""
    for what in _OF_OUTPUTS:
        if key.endswith(f"_{what}"):
            words = what.replace("_", " ")
            return Text(f"{{name}} {words}", name=one_line(key.removesuffix(f"_{what}")))
    return one_line(key).replace("_", " ")


# Evidence for programs; in words, the finding's texts and the report's notes say it.
_SAID = ("corrected",)


def evidence(finding: Finding, lang: str, *, everything: bool) -> Iterator[Paragraph]:
    """What was seen: short facts in one paragraph, longer texts each in their own.

    Texts are cut to a few lines unless ``everything``.
    """
    facts = list(tensors(finding, lang))
    for key, value in finding.evidence.items():
        if key in _SAID or (facts and key.endswith(_OF_A_TENSOR)) or key in _SAID_BY_TENSOR:
            continue
        name = _word(_named(str(key)), lang)
        text = _word(plain(value).rstrip(), lang)
        if key not in _TRACES and len(text) <= _SHORT and "\n" not in text:
            facts.append(f"{name} {text}")
            continue
        lines = text.split("\n")
        if key in _TRACES:
            hidden = len(lines) - _TRACE_LINES
            if hidden > 0 and not everything:
                head, tail = lines[: _TRACE_LINES // 3], lines[-(_TRACE_LINES * 2 // 3) :]
                lines = [*head, label("cut", lang, count=hidden), *tail]
            yield Paragraph("trace", name, "\n".join(lines))
            continue
        if len(lines) > _EVIDENCE_LINES and not everything:
            hidden = len(lines) - _EVIDENCE_LINES
            lines = [*lines[:_EVIDENCE_LINES], label("cut", lang, count=hidden)]
        yield Paragraph("evidence", name, "\n".join(lines))
    if facts:
        yield Paragraph("facts", label("seen", lang), "; ".join(facts))


#: What is told of a tensor, all in one phrase.
_OF_A_TENSOR = ("_matches", "_looks_like", "_best_scale", "_cosine", "_first_bad_token")
_SAID_BY_TENSOR = ("wrong_tensors",)


def tensors(finding: Finding, lang: str) -> Iterator[str]:
    """A phrase for each output: right, or wrong with the size and the kind of its error."""
    seen = finding.evidence
    for key, value in seen.items():
        if not key.endswith("_matches") or not isinstance(value, bool):
            continue
        name = key.removesuffix("_matches")
        spoken = one_line(name.replace("_", " "))
        if value:
            yield label("tensor_right", lang, tensor=spoken)
            continue
        parts = [label("tensor_wrong", lang, tensor=spoken)]
        kind = seen.get(f"{name}_looks_like")
        if kind in ("rounding", "precision", "structure"):
            parts.append(label(f"like_{kind}", lang))
        parts += [
            label(what, lang, value=one_line(plain(seen[f"{name}_{what}"])))
            for what in ("cosine", "best_scale", "first_bad_token")
            if f"{name}_{what}" in seen
        ]
        yield ", ".join(parts)


def _word(text: str, lang: str) -> str:
    """A name or value of what was seen, where it is a word of ours."""
    return phrase(text, lang, "evidence")


def _rounded(ratio: float) -> str:
    """A ratio, of which nobody needs more than three digits."""
    return number(float(f"{ratio:.3g}"))


def _diagnosis(diagnosis: Diagnosis, lang: str) -> str:
    facts = [label(diagnosis.confidence.value, lang)]
    if diagnosis.residual is not None:
        facts.append(label("residual", lang, residual=_rounded(diagnosis.residual)))
    if diagnosis.margin is not None:
        facts.append(label("margin", lang, margin=_rounded(diagnosis.margin)))
    return f"{title_of(diagnosis, lang)} [{diagnosis.code}] ({', '.join(facts)})"
