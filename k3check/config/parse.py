"""From a file's text to a document: which syntax it is, and what no setting may contain."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from k3check.config import json_text, toml_text, yaml_text
from k3check.config.document import Document
from k3check.config.problems import combined, problem, type_of
from k3check.errors import UsageError
from k3check.masking.settings import is_secret_path

if TYPE_CHECKING:
    from k3check.config.document import Path_
    from k3check.config.source import Source

_INT64 = 1 << 63
# Nothing in TOML starts so.
_JSON_STARTS = ("{", "//", "/*")
_JSON_NAMES = (".json", ".jsonc")
# There a colon in place of the equals sign is a mistake to be named, not another syntax.
_NO_YAML = (*_JSON_NAMES, ".toml")
_DATES = (datetime.date, datetime.time)


def parse(source: Source) -> Document:
    """Parse a text as TOML, JSON or YAML, whichever it is.

    Raises:
        UsageError: a syntax error with line, column and caret; or content that no dialect has.
    """
    if _looks_like_json(source):
        try:
            data, positions = json_text.parse(source)
        except UsageError:
            if source.text.lstrip().startswith(_JSON_STARTS):
                raise
            document = _toml_after_all(source)
            if document is None:
                raise
            return _checked(document)
        document = Document(data if isinstance(data, dict) else {}, positions, source.file, "JSON")
        if not isinstance(data, dict):
            raise problem("K3C-017", where=source.file, found=type_of(data), accepted="a table")
    elif source.file.endswith(yaml_text.NAMES):
        document = _yaml(source)
    else:
        document = _toml_or_yaml(source)
    return _checked(document)


def _toml_or_yaml(source: Source) -> Document:
    """TOML; YAML under a name that promises nothing, if it starts like it."""
    try:
        data, positions = toml_text.parse(source)
    except UsageError:
        if source.file.endswith(_NO_YAML) or not yaml_text.looks_like(source):
            raise
        return _yaml(source)
    if not data:
        raise problem("K3C-007", where=source.file, found="comments only")
    return Document(data, positions, source.file, "TOML")


def _yaml(source: Source) -> Document:
    data, positions = yaml_text.parse(source)
    if not isinstance(data, dict):
        raise problem("K3C-017", where=source.file, found=type_of(data), accepted="a table")
    return Document(data, positions, source.file, "YAML")


def _checked(document: Document) -> Document:
    problems = _bad_values(document)
    if problems:
        raise combined(problems)
    return document


def _looks_like_json(source: Source) -> bool:
    """By content; the name only decides whose errors are shown where both would be errors."""
    return source.text.lstrip().startswith(_JSON_STARTS) or source.file.endswith(_JSON_NAMES)


def _toml_after_all(source: Source) -> Document | None:
    """A TOML text under the name of a JSON file, if it is one."""
    try:
        data, positions = toml_text.parse(source)
    except UsageError:
        return None
    return Document(data, positions, source.file, "TOML")


def _bad_values(document: Document) -> list[UsageError]:
    """Values that would fail later and far from here: dates, NUL, lone surrogates, huge numbers."""
    found: list[UsageError] = []

    def check(value: Any, path: Path_) -> None:
        where = document.where(path)
        if isinstance(value, dict):
            for key, child in value.items():
                bad = _bad_text(key)
                if bad:
                    found.append(problem("K3C-019", where=document.where(path), found=bad))
                else:
                    check(child, (*path, key))
        elif isinstance(value, list):
            for index, child in enumerate(value):
                check(child, (*path, index))
        elif isinstance(value, str):
            bad = _bad_text(value)
            if bad:
                found.append(problem("K3C-019", where=where, found=bad))
        elif isinstance(value, int) and not -_INT64 <= value < _INT64:
            digits = "an integer of more than 64 bits"
            found.append(problem("K3C-018", where=where, found=digits))
        elif isinstance(value, _DATES):
            shown = "a date or time" if is_secret_path(path) else f"a date or time, {value}"
            found.append(
                problem(
                    "K3C-022", where=where, found=shown, accepted="a text", fix="Put it in quotes."
                )
            )

    check(document.data, ())
    return found


def _bad_text(text: str) -> str | None:
    if "\0" in text:
        return "a NUL character"
    if any("\ud800" <= char <= "\udfff" for char in text):
        return "half of a surrogate pair"
    return None
