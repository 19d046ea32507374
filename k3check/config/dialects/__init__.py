"""The dialects that a configuration may be written in; one module each.

A module in this folder that defines ``DIALECT`` is found by itself: adding a dialect is adding a
file. See :mod:`k3check.config.dialects.base` for what it defines.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from k3check import hints
from k3check.config.document import dotted
from k3check.config.json_text import json5_as_json, without_comments
from k3check.config.parse import parse
from k3check.config.problems import combined, problem
from k3check.errors import UsageError
from k3check.model import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from k3check.config.dialects.base import Dialect
    from k3check.config.document import Document
    from k3check.config.source import Source


# A misspelt table among two or three keys is ours; one similar word among a foreign file's is not.
_NEAR = 0.3
_ANYBODYS = ("model", "models", "name", "version", "timeout", "stream", "logging", "cache")
# A comment, and a comma before the end.
_LENIENT = ("K3C-013", "K3C-014")
# Besides: a key without quotes, a text in single ones.
_TAKEN_AS = "K3C-157"
_JSON5 = "K3C-012"
# A file of which most keys are foreign is not ours, whatever one key is called.
_MOSTLY = 0.5


@cache
def discover() -> tuple[Dialect, ...]:
    """All dialects, by name."""
    modules = (
        importlib.import_module(f"{__name__}.{info.name}")
        for info in pkgutil.iter_modules(__path__)
    )
    found = (getattr(module, "DIALECT", None) for module in modules)
    return tuple(sorted((d for d in found if d is not None), key=lambda dialect: dialect.name))


def parse_text(source: Source) -> Document:
    """Parse a text as a dialect that has a syntax of its own, or as TOML, JSON or YAML.

    JSON with comments is read where the client of the file reads it too.

    Raises:
        UsageError: as :func:`k3check.config.parse.parse`.
    """
    for dialect in discover():
        document = dialect.parse(source) if dialect.parse else None
        if document is not None:
            return document
    try:
        return parse(source)
    except UsageError as error:
        if error.code not in (*_LENIENT, _JSON5):
            raise
        document = _relaxed(source, json5=error.code == _JSON5)
        if document is None:
            raise
        return document


def _relaxed(source: Source, *, json5: bool) -> Document | None:
    """JSON with comments, or JSON5, if it is a dialect's whose client accepts it, or nobody's."""
    for form in (without_comments,) if not json5 else (json5_as_json,):
        try:
            document = parse(replace(source, text=form(source.text)))
        except UsageError:
            continue
        matching = [dialect for dialect in discover() if matches(dialect, document)]
        if all(dialect.json5 if json5 else dialect.comments for dialect in matching):
            # What is nobody's is told so; its comments are not the mistake.
            foreign = document.data and not _near(document)
            return document if matching or foreign else None
    if not json5:
        return _relaxed(source, json5=True)
    return None


def _near(document: Document) -> Dialect | None:
    """The closed dialect that an unrecognised document comes near, if it does."""
    near = max(discover(), key=lambda dialect: _nearness(dialect, document), default=None)
    return near if near is not None and _nearness(near, document) >= _NEAR else None


def _nearness(dialect: Dialect, document: Document) -> float:
    """A dialect's likeness without the keys that any tool has."""
    if dialect.clients or document.syntax not in dialect.syntaxes:
        return 0.0  # a tool's own file holds the tool's own keys
    telling = {key: value for key, value in document.data.items() if key not in _ANYBODYS}
    return dialect.likeness(telling) * len(telling) / (len(document.data) or 1)


def matches(dialect: Dialect, document: Document) -> bool:
    """Whether a document is written in a dialect."""
    return (
        document.syntax in dialect.syntaxes
        and dialect.recognise(document.data)
        and dialect.fits(document)
        and (not dialect.closed or dialect.likeness(document.data) >= _MOSTLY)
    )


def taken_as(dialect: Dialect, document: Document) -> str:
    """Why a file with mistakes was read as a dialect, and what to do if it is none of it."""
    evidence = ", ".join(dialect.evidence(document.data)) or "nearly its keys"
    values = {"dialect": dialect.title, "evidence": evidence}
    return f"{hints.title(_TAKEN_AS, values=values)}. {hints.fix(_TAKEN_AS)}"


def recognise(document: Document, dialects: Sequence[Dialect] | None = None) -> Dialect:
    """The one dialect that a document is written in, judged by its content.

    Args:
        document: the parsed file.
        dialects: the dialects to choose from; all by default.

    Raises:
        UsageError: no dialect (K3C-020; where the content comes near one, the unknown keys of
            that one instead, K3C-021) or several (K3C-023).
    """
    known = discover() if dialects is None else dialects
    matching = [dialect for dialect in known if matches(dialect, document)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        titles = " and ".join(dialect.title for dialect in matching)
        keys = "; ".join(f"{d.name}: {', '.join(d.evidence(document.data))}" for d in matching)
        raise problem("K3C-023", where=document.file, found=keys, titles=titles)
    near = max(known, key=lambda dialect: _nearness(dialect, document), default=None)
    if near is not None and _nearness(near, document) >= _NEAR:
        problems = near.read(document).problems
        if problems:
            doubtful = near.likeness(document.data) < _MOSTLY
            raise combined(problems, taken_as(near, document) if doubtful else "")
    raise problem(
        "K3C-020",
        where=document.file,
        found=Text(
            "keys {names}",
            names=", ".join(dotted((key,)) for key in list(document.data)[:8]),
        ),
        detail="\n".join(
            ["what each file would have:", *(f"  {d.title}: {d.looks_for}" for d in known)]
        ),
    )
