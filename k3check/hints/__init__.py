"""Every text behind a code: title, one-sentence fix, and the long explanation, in each language.

The texts are data, one TOML file per area in ``texts/``. An entry::

    [K3O-013]
    slug = "output.scale"
    title = { en = "output is off by a constant factor {factor}", zh = "..." }
    fix = { en = "Multiply ... by ...", zh = "..." }
    what = { en = "..." }       # what is checked
    why = { en = "..." }        # why it matters
    tell = { en = "..." }       # how to tell
    cause = { en = "..." }      # typical cause
    sketch = "short code"       # optional
    origin = ["owner/repo#123"] # optional

``title`` and ``fix`` are required in English and Chinese; the long sections need English and fall
back to it. Placeholders in braces are filled from the finding's values; a missing value leaves
the placeholder's name in angle brackets instead of failing. ``{n:try/tries}`` is a number with
its noun.
"""

from __future__ import annotations

import re
import string
import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LANGUAGES = ("en", "zh")
SECTIONS = ("what", "why", "tell", "cause")


@dataclass(frozen=True)
class Entry:
    """The texts of one code."""

    code: str
    slug: str
    title: Mapping[str, str]
    fix: Mapping[str, str]
    sections: Mapping[str, Mapping[str, str]]
    sketch: str | None = None
    origin: tuple[str, ...] = field(default=())


class _Filler(string.Formatter):
    """Formats what it can: a text that explains a failure must never be one itself."""

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The value, or the placeholder's name in angle brackets."""
        try:
            return super().get_field(field_name, args, kwargs)
        except (KeyError, IndexError, AttributeError, TypeError, ValueError):
            return f"<{field_name}>", field_name

    def format_field(self, value: Any, format_spec: str) -> str:
        """The value in its format, or plainly where the format is for another type.

        ``{n:try/tries}`` is a number with its noun: ``1 try``, ``2 tries``.
        """
        one, slash, many = format_spec.partition("/")
        if slash:
            return f"{value} {one if value == 1 else many}"
        try:
            return str(super().format_field(value, format_spec))
        except (TypeError, ValueError):
            return str(value)


def fill(template: str, values: Mapping[str, Any]) -> str:
    """Fill a text's placeholders; missing values show as ``<name>``."""
    return _Filler().vformat(template, (), values)


@cache
def _texts() -> Mapping[str, str]:
    """The files of texts by name."""
    folder = resources.files(__package__).joinpath("texts")
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".toml"))
    return {name: folder.joinpath(name).read_text("utf-8") for name in names}


@cache
def _entries() -> Mapping[str, Entry]:
    """All entries by code.

    Raises:
        ValueError: two files use one code (caught by the test suite, never seen by users).
    """
    found: dict[str, Entry] = {}
    for name, text in _texts().items():
        for code, raw in tomllib.loads(text).items():
            if code in found:
                raise ValueError(f"{code} is defined twice, the second time in {name}")
            found[code] = _entry(code, raw)
    return found


@cache
def _one(code: str) -> Entry | None:
    """The entry of one code, None if there is none.

    Only its own table is parsed: all of them take longer than a whole run of ``link``.
    """
    table = re.compile(rf"^\[{re.escape(code)}\]$.*?(?=^\[K3|\Z)", re.MULTILINE | re.DOTALL)
    for text in _texts().values():
        match = table.search(text)
        if match is not None:
            return _entry(code, tomllib.loads(match.group())[code])
    return None


def _entry(code: str, raw: Mapping[str, Any]) -> Entry:
    """An entry of its table."""
    return Entry(
        code=code,
        slug=raw["slug"],
        title=raw["title"],
        fix=raw["fix"],
        sections={name: raw[name] for name in SECTIONS if name in raw},
        sketch=raw.get("sketch"),
        origin=tuple(raw.get("origin", ())),
    )


def codes() -> tuple[str, ...]:
    """Every code, sorted."""
    return tuple(sorted(_entries()))


def get(code: str) -> Entry:
    """The entry of a code.

    Raises:
        KeyError: there is no such code.
    """
    entry = _one(code)
    if entry is None:
        raise KeyError(code)
    return entry


def find(code_or_slug: str) -> Entry | None:
    """Look an entry up by code (any case) or by slug."""
    wanted = code_or_slug.strip()
    entry = _one(wanted.upper())
    if entry is not None:
        return entry
    return next((e for e in _entries().values() if e.slug == wanted.lower()), None)


def title(code: str, lang: str = "en", values: Mapping[str, Any] | None = None) -> str:
    """A code's title with its placeholders filled."""
    entry = get(code)
    return fill(entry.title.get(lang, entry.title["en"]), values or {})


def fix(code: str, lang: str = "en", values: Mapping[str, Any] | None = None) -> str:
    """A code's one imperative sentence with its placeholders filled."""
    entry = get(code)
    return fill(entry.fix.get(lang, entry.fix["en"]), values or {})
