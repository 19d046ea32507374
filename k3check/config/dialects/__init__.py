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

from k3check.config.document import dotted
from k3check.config.json_text import without_comments
from k3check.config.parse import parse
from k3check.config.problems import combined, problem
from k3check.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from k3check.config.dialects.base import Dialect
    from k3check.config.document import Document
    from k3check.config.source import Source


# A misspelt table among two or three keys is ours; one similar word among a foreign file's is not.
_NEAR = 0.3
# A comment, and a comma before the end.
_LENIENT = ("K3C-013", "K3C-014")


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
        if error.code not in _LENIENT:
            raise
        document = _with_comments(source)
        if document is None:
            raise
        return document


def _with_comments(source: Source) -> Document | None:
    """JSON with comments, if it is a dialect's whose client accepts them."""
    try:
        document = parse(replace(source, text=without_comments(source.text)))
    except UsageError:
        return None
    matching = [dialect for dialect in discover() if matches(dialect, document)]
    return document if matching and all(dialect.comments for dialect in matching) else None


def matches(dialect: Dialect, document: Document) -> bool:
    """Whether a document is written in a dialect."""
    return (
        document.syntax in dialect.syntaxes
        and dialect.recognise(document.data)
        and dialect.fits(document)
    )


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
    near = max(known, key=lambda dialect: dialect.likeness(document.data), default=None)
    if near is not None and near.likeness(document.data) >= _NEAR:
        problems = near.read(document).problems
        if problems:
            raise combined(problems)
    raise problem(
        "K3C-020",
        where=document.file,
        found="keys " + ", ".join(dotted((key,)) for key in list(document.data)[:8]),
        detail="\n".join(
            ["what each file would have:", *(f"  {d.title}: {d.looks_for}" for d in known)]
        ),
    )
