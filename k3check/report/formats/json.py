"""JSON, schema_version 1: converted field by field, never dumped from the internal classes.

The shape is frozen: ``schema-v1.json`` describes it, :mod:`k3check.report.saved` reads it back. A
change of the internal model must not change it; a change of it is a new schema_version.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from k3check import __version__
from k3check.model import Outcome
from k3check.plain import encodable
from k3check.report.texts import fix_of, hint_of, note_of, slug_of, title_of

if TYPE_CHECKING:
    from k3check.model import Finding, Message, Report
    from k3check.report.formats import Options

SCHEMA_VERSION = 1


def render(report: Report, options: Options) -> str:
    """The report as JSON, one line end after it; ASCII only, so that any pipe can carry it."""
    return json.dumps(document(report, options.lang), indent=2, allow_nan=False) + "\n"


def document(report: Report, lang: str = "en") -> dict[str, Any]:
    """The report as plain data; NaN and infinities are strings."""
    written: dict[str, Any] = _plain(_document(report, lang))
    return written


def _document(report: Report, lang: str) -> dict[str, Any]:
    counts = report.counts()
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "k3check", "version": __version__},
        "started_at": report.started_at,
        "duration_s": report.duration_s,
        "environment": report.environment,
        "config": {"path": report.config_path, "dialect": report.config_dialect},
        "summary": {
            "verdict": report.verdict.value,
            **{outcome.value: counts[outcome] for outcome in Outcome},
        },
        "checks": [_check(finding, lang) for finding in report.findings],
    }


def _check(finding: Finding, lang: str) -> dict[str, Any]:
    hint = hint_of(finding)
    return {
        "id": finding.id,
        "suite": finding.suite,
        "operator": finding.operator,
        "case": finding.case,
        "outcome": finding.outcome.value,
        "title": finding.title,
        "metrics": finding.metrics,
        "limits": finding.limits,
        "location": finding.location,
        "series": finding.series,
        "diagnoses": [
            {
                "code": diagnosis.code,
                "slug": slug_of(diagnosis),
                "title": title_of(diagnosis, lang),
                "confidence": diagnosis.confidence.value,
                "residual": diagnosis.residual,
                "margin": diagnosis.margin,
            }
            for diagnosis in finding.diagnoses
        ],
        "hint": None if hint is None else {"code": hint.code, "text": _hint(finding, hint, lang)},
        "evidence": finding.evidence,
        "notes": [{"code": note.code, "text": note_of(note, lang)} for note in finding.notes],
        "duration_s": finding.duration_s,
    }


def _hint(finding: Finding, hint: Message, lang: str) -> str:
    """The fix; where no diagnosis says what is wrong, that comes first."""
    return fix_of(hint, lang) if finding.diagnoses else note_of(hint, lang)


def _number(value: float) -> float | str:
    try:
        wide = float(value)
    except OverflowError:  # an integer that no float holds
        wide = math.inf if value > 0 else -math.inf
    if math.isfinite(wide):
        return value
    if math.isnan(wide):
        return "NaN"
    return "Infinity" if wide > 0 else "-Infinity"


def _plain(value: Any) -> Any:
    """Plain JSON data for any value a finding may carry; unknown classes by their text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, str):
        return encodable(value)
    if hasattr(value, "items"):
        return {encodable(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    return encodable(str(value))
