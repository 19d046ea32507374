"""Read a saved JSON report back, to render it in another format."""

from __future__ import annotations

import json
import math
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from k3check.errors import UsageError
from k3check.model import Confidence, Finding, Outcome, Report
from k3check.plain import encodable
from k3check.report.formats.json import SCHEMA_VERSION
from k3check.report.texts import SavedDiagnosis, SavedMessage

if TYPE_CHECKING:
    from pathlib import Path

    from k3check.report import schema

_LARGEST = 256 * 1024 * 1024
# What k3check writes is a handful of levels deep; renderers walk them by recursion.
_DEEPEST = 64
# Characters of a number that are quoted back.
_SHOWN = 24


def read(path: Path) -> Report:
    """Read the report in ``path``, or from standard input where it is ``-``.

    Raises:
        UsageError: K3C-085 when the file cannot be read, K3C-086 when it is not a report,
            K3C-087 when its schema_version is not ours.
    """
    return parse(_text(path), str(path))


def parse(text: str, where: str) -> Report:
    """Rebuild a report from its JSON text; ``where`` names it in messages."""
    try:
        data = _readable(
            json.loads(text, parse_int=_integer, parse_float=_real, parse_constant=_no_constant)
        )
    except json.JSONDecodeError as error:
        found = f"line {error.lineno}, column {error.colno}: {error.msg}"
        raise _broken(where, "the file is not JSON", found) from None
    except ValueError as error:
        raise _broken(where, "the report is damaged", str(error)) from None
    except RecursionError:
        raise _broken(where, "the report is damaged", "values nested too deeply") from None
    if not isinstance(data, dict) or "schema_version" not in data:
        raise _broken(where, "the file is JSON but not a report of k3check", "no schema_version")
    if data["schema_version"] != SCHEMA_VERSION or isinstance(data["schema_version"], bool):
        raise UsageError(
            code="K3C-087",
            what="the report has a schema_version that this k3check cannot read",
            where=f"{where}  schema_version",
            found=json.dumps(data["schema_version"])[:80],
            accepted=str(SCHEMA_VERSION),
            fix="Read it with the version of k3check that wrote it.",
        )
    document = _validated(data, where)
    report = _report(document)
    counted = {outcome.value: number for outcome, number in report.counts().items()}
    claimed = document.summary.model_dump(by_alias=True)
    if claimed != {"verdict": report.verdict.value, **counted}:
        raise _broken(f"{where}  summary", "the summary contradicts the checks", str(claimed))
    return report


def _real(text: str) -> float:
    """A number of a report; one that a float does not hold is none."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"a number out of range: {text[:_SHOWN]}")
    return value


def _integer(text: str) -> int:
    _real(text)  # first: Python refuses to parse an integer of some thousand digits at all
    return int(text)


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"a bare {text}, which k3check writes as a text")


def _readable(value: Any, depth: int = 0) -> Any:
    """A report's data with lone surrogates, which older versions wrote, as their escapes.

    Raises:
        ValueError: it is nested deeper than any report.
    """
    if depth > _DEEPEST:
        raise ValueError("values nested too deeply")
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, dict):
        return {encodable(key): _readable(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_readable(item, depth + 1) for item in value]
    return value


def _text(path: Path) -> str:
    if str(path) == "-" and sys.stdin is None:  # closed by the caller
        raise _unreadable(path, "standard input is closed")
    try:
        if str(path) == "-":
            raw = sys.stdin.buffer.read(_LARGEST + 1)
        else:
            with path.open("rb") as file:
                raw = file.read(_LARGEST + 1)
    except (OSError, ValueError) as error:
        found = getattr(error, "strerror", None) or str(error)
        raise _unreadable(path, found) from None
    if len(raw) > _LARGEST:
        raise _broken(str(path), "the file is too large for a report", f"over {_LARGEST} bytes")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _broken(str(path), "the file is not UTF-8", f"byte {error.start}") from None


def _unreadable(path: Path, found: str) -> UsageError:
    return UsageError(
        code="K3C-085",
        what="the saved report cannot be read",
        where=str(path),
        found=found,
        accepted="a file that k3check wrote with --format json",
        fix="Name the JSON report, or - to read it from standard input.",
    )


def _broken(where: str, what: str, found: str) -> UsageError:
    return UsageError(
        code="K3C-086",
        what=what,
        where=where,
        found=found,
        accepted="a report that k3check wrote with --format json",
        fix="Write it again: k3check ... --format json --output report.json",
    )


def _validated(data: dict[str, Any], where: str) -> schema.Document:
    # pydantic takes a while to import, and only this command needs it
    from pydantic import ValidationError

    from k3check.report.schema import Document

    try:
        return Document.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise _broken(f"{where}  {place}", "the report is damaged", first["msg"]) from None


def _number(value: schema.Number) -> float:
    return float(value) if isinstance(value, str) else value


def _report(document: schema.Document) -> Report:
    return Report(
        findings=[_finding(check) for check in document.checks],
        started_at=document.started_at,
        duration_s=_number(document.duration_s),
        environment=document.environment,
        config_path=document.config.path,
        config_dialect=document.config.dialect,
    )


def _finding(check: schema.Check) -> Finding:
    return Finding(
        id=check.id,
        suite=check.suite,
        operator=check.operator,
        case=check.case,
        outcome=Outcome(check.outcome),
        title=check.title,
        metrics={name: _number(value) for name, value in check.metrics.items()},
        limits={name: _number(value) for name, value in check.limits.items()},
        location=check.location,
        series={name: [_number(v) for v in values] for name, values in check.series.items()},
        diagnoses=[
            SavedDiagnosis(
                code=diagnosis.code,
                confidence=Confidence(diagnosis.confidence),
                residual=None if diagnosis.residual is None else _number(diagnosis.residual),
                margin=None if diagnosis.margin is None else _number(diagnosis.margin),
                slug=diagnosis.slug,
                title=diagnosis.title,
            )
            for diagnosis in check.diagnoses
        ],
        hint=None if check.hint is None else SavedMessage(check.hint.code, text=check.hint.text),
        evidence=check.evidence,
        notes=[SavedMessage(note.code, text=note.text) for note in check.notes],
        duration_s=_number(check.duration_s),
    )
