"""Keys in what a configuration holds.

Two lines of defence: a value is masked by the name of its key, and every finished text is
searched for the secrets that are known and for what looks like one.
"""

from __future__ import annotations

import difflib
import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from k3check.masking.address import KEY, hide_in_urls
from k3check.masking.masker import MASK, Masker
from k3check.plain import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_NAME = re.compile(
    r"(?i)api[_-]?key|_key$|token$|^tokens$|secret|passw|bearer|authori[sz]ation|credential"
    r"|private[_-]?key|^cookie$"
)
_SHAPES = (
    re.compile(rf"\b(?:{KEY})"),
    re.compile(r"(?i)\bbearer\s+\S{4,}"),
)

# A quoted value that follows a word, whatever sign stands between them. Words are taken whole: to
# try every tail of a long one takes time in proportion to its square.
_QUOTED = re.compile(r"(?<![\w\-])([\w\-]+)[\"']?\s*(?:[=:]\s*)?(?:[\[{]\s*)?[\"']+([^\"'\n]+)")
_WORD = re.compile(r"[\w+/\-]{16,}")
_NAMES = ("apikey", "authtoken", "accesstoken", "password", "secret")

# Names of variables have capitals and underscores; a key has not.
VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")

_SHOWN = 60


def is_secret_key(name: object) -> bool:
    """Whether a key's name says that its value is a secret (``api_key``, ``authToken`` ...)."""
    return isinstance(name, str) and _NAME.search(name) is not None


def nearly_secret_key(name: str) -> bool:
    """Whether a name is a secret's or a misspelt one's (``api_kye``)."""
    if is_secret_key(name):
        return True
    plain = name.casefold().replace("_", "").replace("-", "")[:40]
    return bool(difflib.get_close_matches(plain, _NAMES, n=1, cutoff=0.8))


def hide_opaque(text: str) -> str:
    """Blank what looks like a key in text whose meaning is not known; lengths stay.

    A key is long and has letters and digits; a word does not.
    """
    return _WORD.sub(_blanked, text)


def _blanked(match: re.Match[str]) -> str:
    word = match[0]
    ascii_letters = any(char.isascii() and char.isalpha() for char in word)
    return "*" * len(word) if ascii_letters and any(map(str.isdecimal, word)) else word


def is_secret_path(path: Iterable[object]) -> bool:
    """Whether any part of a key path names a secret."""
    return any(is_secret_key(part) for part in path)


def escaped(text: str) -> str:
    """A text as one line that is safe to print; a line break in a value is worth seeing."""
    return clean(text.replace("\r", "\\r").replace("\n", "\\n").replace("\t", "\\t"))


def scrub(text: str, known: Iterable[str] = ()) -> str:
    """Remove known secrets and everything that looks like one from a text.

    Args:
        text: any text that is about to be shown.
        known: the values of secrets; each is replaced wherever it stands.
    """
    text = _masker(tuple(known)).hide(text)
    for shape in _SHAPES:
        text = shape.sub(MASK, text)
    return hide_in_urls(text)


@lru_cache(maxsize=8)
def _masker(known: tuple[str, ...]) -> Masker:
    return Masker(known)


def _names_variable(key: object, value: object) -> bool:
    """Whether a value is the name of the variable with the key, as in Codex's ``env_key``."""
    return (
        isinstance(key, str)
        and isinstance(value, str)
        and key.endswith("env_key")
        and VARIABLE.fullmatch(value) is not None
    )


def secrets_in(data: Any) -> tuple[str, ...]:
    """Every text in parsed data that stands under a secret's name."""
    found: list[str] = []
    todo: list[tuple[Any, bool]] = [(data, False)]
    while todo:
        value, hidden = todo.pop()
        if isinstance(value, dict):
            todo += [
                (child, hidden or is_secret_key(key))
                for key, child in value.items()
                if not _names_variable(key, child)
            ]
        elif isinstance(value, list):
            todo += [(child, hidden) for child in value]
        elif hidden and isinstance(value, str):
            # A key is often shown without the blanks and quotes that were pasted around it.
            found += [value, value.strip(" \t\r\n\"'")]
    return tuple(found)


def masked(value: Any, path: Sequence[object] = (), known: Iterable[str] = ()) -> Any:
    """A value as plain JSON-able data with its secrets masked.

    Args:
        value: what a configuration holds: texts, numbers, tables, lists.
        path: the key path of the value; a secret's name in it masks all texts and numbers below.
        known: secrets to remove from texts under other names.

    Returns:
        The same structure; NaN and infinity become texts.
    """
    if isinstance(value, dict):
        return {
            scrub(escaped(str(key)), known): masked(child, (*path, key), known)
            for key, child in value.items()
        }
    if isinstance(value, list | tuple):
        return [masked(child, path, known) for child in value]
    if is_secret_path(path) and value is not None:
        return MASK  # none of its characters, and not its length
    if isinstance(value, str):
        return escaped(scrub(value, known))
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def shown(value: Any, path: Sequence[object] = (), known: Iterable[str] = ()) -> str:
    """A value as one short line of text with its secrets masked."""
    value = masked(value, path, known)
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "not set"
    text = value if isinstance(value, str) else _inline(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _inline(value: Any) -> str:
    if isinstance(value, dict | list):
        import json

        return json.dumps(value, ensure_ascii=False)
    return str(value)


def secrets_in_text(text: str) -> tuple[str, ...]:
    """The quoted values after secrets' names in a text that may not parse."""
    return tuple(
        m[2]
        for m in _QUOTED.finditer(text)
        if nearly_secret_key(m[1]) and not _names_variable(m[1], m[2])
    )


def known_secrets(*sources: Mapping[str, Any] | str | None) -> tuple[str, ...]:
    """Collect the secrets of parsed data and of single values."""
    found: list[str] = []
    for source in sources:
        if isinstance(source, str):
            found += [source, source.strip(" \t\r\n\"'")]
        elif source is not None:
            found += secrets_in(source)
    return tuple(dict.fromkeys(secret for secret in found if secret))
