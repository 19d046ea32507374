"""What is said without a code, in the reader's language: titles of checks, reasons, usage errors.

English is the text itself, wherever it is made; ``phrases.toml`` has the Chinese for it. What is
not in there (names, codes, the user's own words) stays as it is.
"""

from __future__ import annotations

import re
import string
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Literal

from k3check import hints

if TYPE_CHECKING:
    from collections.abc import Mapping

Section = Literal["titles", "reasons", "evidence", "usage", "mutants"]


@dataclass(frozen=True)
class _Template:
    pattern: re.Pattern[str]
    chinese: str


@cache
def _phrases() -> Mapping[str, Mapping[str, str]]:
    file = resources.files(__package__).joinpath("phrases.toml")
    return tomllib.loads(file.read_text("utf-8"))


@cache
def _templates(section: str) -> tuple[_Template, ...]:
    """A section's phrases with placeholders; those with the most words of their own come first."""
    found = [english for english in _phrases()[section] if "{" in english]
    found.sort(key=lambda english: -len(re.sub(r"\{.*?\}", "", english)))
    return tuple(_Template(_pattern(e), _phrases()[section][e]) for e in found)


def _pattern(template: str) -> re.Pattern[str]:
    """What matches a filled template; a placeholder that stands there twice is the same twice."""
    parts: list[str] = []
    seen: set[str] = set()
    for literal, name, _spec, _conversion in string.Formatter().parse(template):
        parts.append(re.escape(literal))
        if name is None:
            continue
        group = re.sub(r"\W", "_", name)
        parts.append(f"(?P={group})" if group in seen else f"(?P<{group}>.+?)")
        seen.add(group)
    return re.compile("".join(parts), re.DOTALL)


def phrase(text: str, lang: str, section: Section) -> str:
    """A text of ours in a language; one that is no phrase of the section stays as it is."""
    if lang != "zh":
        return text
    said = _phrases()[section].get(text)
    if said is not None:
        return said
    for template in _templates(section):
        match = template.pattern.fullmatch(text)
        if match is not None:
            inner = {k: phrase(v, lang, section) for k, v in match.groupdict().items()}
            return hints.fill(template.chinese, inner)
    parts = text.split(", ")
    told = [_phrases()[section].get(part) for part in parts]
    return "、".join(filter(None, told)) if len(parts) > 1 and all(told) else text


def retold(code: str, text: str, lang: str, part: Literal["title", "fix"]) -> str | None:
    """A code's sentence that was filled in English, in a language; None if it is another text."""
    entry = hints.find(code)
    if entry is None or lang not in hints.LANGUAGES:
        return None
    texts = entry.title if part == "title" else entry.fix
    match = _pattern(texts["en"]).fullmatch(text)
    if match is None:
        return None
    inner = {k: phrase(v, lang, "usage") for k, v in match.groupdict().items()}
    return hints.fill(texts[lang], inner)
