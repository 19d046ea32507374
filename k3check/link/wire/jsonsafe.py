"""Parse JSON from a server that may be wrong or hostile: says what is odd instead of raising."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

_MOST_DIGITS = 400


@dataclass(frozen=True)
class Parsed:
    """A parsed body.

    Attributes:
        document: the value, None if there is none (``null`` too: see ``ok``).
        ok: a document was found.
        oddities: what a strict parser would refuse: ``bom``, ``nan``, ``duplicate-keys``,
            ``trailing``, ``encoding``.
        error: why there is none: ``empty``, ``truncated``, ``too-deep``, ``giant-number``,
            ``syntax``; empty if there is one.
    """

    document: Any = None
    ok: bool = False
    oddities: tuple[str, ...] = ()
    error: str = ""


class _GiantNumberError(ValueError):
    """A number with more digits than any real answer has."""


def parse(body: bytes) -> Parsed:
    """Parse a body."""
    oddities: list[str] = []
    if body.startswith(b"\xef\xbb\xbf"):
        oddities.append("bom")
        body = body[3:]
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        oddities.append("encoding")
        text = body.decode("utf-8", "replace")
    text = text.strip()
    if not text:
        return Parsed(error="empty", oddities=tuple(oddities))

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(items)
        if len(made) != len(items):
            oddities.append("duplicate-keys")
        return made

    def number(digits: str) -> int:
        if len(digits) > _MOST_DIGITS:
            raise _GiantNumberError
        return int(digits)

    def constant(_: str) -> None:
        oddities.append("nan")

    decoder = json.JSONDecoder(
        object_pairs_hook=pairs, parse_int=number, parse_constant=constant, strict=False
    )
    try:
        document, end = decoder.raw_decode(text)
    except RecursionError:
        return Parsed(error="too-deep", oddities=_once(oddities))
    except _GiantNumberError:
        return Parsed(error="giant-number", oddities=_once(oddities))
    except json.JSONDecodeError as error:
        return Parsed(error=_kind(text, error), oddities=_once(oddities))
    if end != len(text):
        oddities.append("trailing")
    return Parsed(document, ok=True, oddities=_once(oddities))


def _once(oddities: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(oddities))


def _kind(text: str, error: json.JSONDecodeError) -> str:
    """Cut off, or no JSON at all."""
    starts = text[0] in '{["'
    at_end = error.pos >= len(text) - 1 or error.msg.startswith("Unterminated string")
    # A cut inside true, false, null or a number is reported at the beginning of that word.
    at_word = re.fullmatch(r"[a-z]{0,4}", text[error.pos :]) is not None
    return "truncated" if starts and (at_end or at_word) else "syntax"


def get(document: Any, *path: str | int) -> Any:
    """The value at a path, None wherever the shape does not fit."""
    for step in path:
        if isinstance(step, int):
            if not isinstance(document, list) or not -len(document) <= step < len(document):
                return None
            document = document[step]
        else:
            if not isinstance(document, dict):
                return None
            document = document.get(step)
    return document
