"""What is said without a code, in the reader's language: titles of checks, reasons, usage errors.

English stands where it is said, as a template with values (:class:`k3check.model.Text`);
``phrases.toml`` has the Chinese for the template. What is not in there (names, codes, the user's
own words) stays as it is.
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
from k3check.model import Text

if TYPE_CHECKING:
    from collections.abc import Mapping

Section = Literal["titles", "reasons", "evidence", "usage", "mutants"]


# Sections whose sentences are still taken apart; none may be added.
_MATCHED = frozenset({"mutants"})


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
    """A text of ours in a language; one that is no phrase of the section stays as it is.

    A :class:`~k3check.model.Text` is found by its template, and each of its values is said for
    itself; any other text only as a whole. No finished sentence is taken apart.
    """
    if lang != "zh":
        return str(text)
    words = _phrases().get(section, {})
    if isinstance(text, Text):
        said = words.get(text.template)
        if said is None:
            return str(text)
        return hints.fill(said, {k: _value(v, lang, section) for k, v in text.values.items()})
    if text in words:
        return words[text]
    return _matched(text, lang, section) if section in _MATCHED else text


def _value(value: object, lang: str, section: Section) -> object:
    if isinstance(value, str):
        return phrase(value, lang, section)
    if isinstance(value, tuple):
        return "、".join(str(_value(item, lang, section)) for item in value)
    return value


def coded(code: str, text: str, lang: str) -> str:
    """A usage error's sentence: its code's own where that is what it says, else a phrase."""
    if lang != "en" and isinstance(text, Text):
        entry = hints.find(code)
        for texts in (entry.title, entry.fix) if entry is not None else ():
            if texts["en"] == text.template and lang in texts:
                values = {k: _value(v, lang, "usage") for k, v in text.values.items()}
                return hints.fill(texts[lang], values)
    return phrase(text, lang, "usage")


def _matched(text: str, lang: str, section: Section) -> str:
    for template in _templates(section):
        match = template.pattern.fullmatch(text)
        if match is not None:
            inner = {k: phrase(v, lang, section) for k, v in match.groupdict().items()}
            return hints.fill(template.chinese, inner)
    return text
