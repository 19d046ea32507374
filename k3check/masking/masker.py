"""Replace every trace of known secrets, in a text, a value or a whole report."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from k3check.masking.spellings import spellings
from k3check.model import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

#: What stands in the place of a secret.
MASK = "***"
#: A shorter secret cannot be told from ordinary words in a text.
SHORTEST = 6

# Any run of this many characters of a secret may be a piece of it.
_PIECE = 8
# Names of our own, which no secret of a user's may change.
_OWN = frozenset({"id", "suite", "operator", "case", "code"})


class Masker:
    """Knows a run's secrets.

    Args:
        secrets: as written; blanks around them do not count, and short ones are left out.
        public: texts that are shown whatever they have in common with a secret: the host of the
            configured address. A secret that stands there whole is masked all the same.
    """

    def __init__(self, secrets: Iterable[str], public: Iterable[str] = ()) -> None:
        known = dict.fromkeys(s.strip() for s in secrets if len(s.strip()) >= SHORTEST)
        self._secrets = tuple(sorted(known, key=len, reverse=True))
        self._public = tuple(text.lower() for text in public)

    def hide(self, text: str) -> str:
        """Replace the secrets in a text; nothing else is changed."""
        if not self._secrets or not text:
            return text
        for pattern in self._found(text):
            text = pattern.sub(MASK, text)
        if self._shortened is not None:
            text = self._shortened.sub(MASK, text)
        return self._without_pieces(text)

    def contains(self, text: str) -> bool:
        """Whether a secret, whole and in any spelling, is in a text."""
        return any(True for _ in self._found(text))

    def value(self, value: Any, clean: Callable[[str], str] | None = None) -> Any:
        """A value with every text in it masked, however deep; numbers stay.

        Args:
            value: texts, tables, lists, and records (frozen dataclasses) of them.
            clean: what to do with each text before it is searched.
        """
        if isinstance(value, Enum):
            return value
        if isinstance(value, Text):
            return value.with_values(lambda item: self.value(item, clean))
        if isinstance(value, str):
            return self.hide(clean(value) if clean else value)
        if is_dataclass(value) and not isinstance(value, type):
            if clean is None:
                # One search of everything is far quicker than one of every text.
                whole = "\0".join(_texts(value))
                if self.hide(whole) == whole:
                    return value
            return replace(
                value,
                **{
                    item.name: self.value(getattr(value, item.name), clean)
                    for item in fields(value)
                    if item.init and item.name not in _OWN
                },
            )
        if hasattr(value, "items"):
            return {self.value(key, clean): self.value(item, clean) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self.value(item, clean) for item in value)
        return value

    @cached_property
    def _spellings(self) -> dict[Callable[[str], str], list[tuple[str, Callable[[], str]]]]:
        """(needle, pattern) by how a text is squeezed to look for the needle."""
        found: dict[Callable[[str], str], list[tuple[str, Callable[[], str]]]] = {}
        for secret in self._secrets:
            for spelling in spellings(secret):
                found.setdefault(spelling.squeeze, []).append((spelling.needle, spelling.pattern))
        return found

    @cached_property
    def _compiled(self) -> dict[Callable[[], str], re.Pattern[str]]:
        return {}

    def _found(self, text: str) -> Iterator[re.Pattern[str]]:
        """What matches the secrets that are in a text, whole and in any spelling."""
        for squeeze, needles in self._spellings.items():
            left = squeeze(text)
            for needle, pattern in needles:
                if needle in left:
                    if pattern not in self._compiled:
                        self._compiled[pattern] = re.compile(pattern())
                    yield self._compiled[pattern]

    @cached_property
    def _pieces(self) -> tuple[str, ...]:
        pieces = {
            secret[i : i + _PIECE]
            for secret in self._secrets
            if len(secret) >= 2 * _PIECE
            for i in range(len(secret) - _PIECE + 1)
        }
        return tuple(p for p in pieces if not any(p.lower() in text for text in self._public))

    @cached_property
    def _shortened(self) -> re.Pattern[str] | None:
        """``sk-a***wxyz``: the beginning, a filler and the end of a secret."""
        parts = [
            f"{re.escape(s[:2])}\\S{{0,10}}?[*.…•x]{{2,}}\\S{{0,8}}{re.escape(s[-2:])}"
            for s in self._secrets
            if len(s) >= _PIECE
        ]
        return re.compile("|".join(parts)) if parts else None

    def _without_pieces(self, text: str) -> str:
        """Mask the runs of a secret's characters that are no words of their own."""
        here = {piece for piece in self._pieces if piece in text}
        if not here:
            return text
        kept: list[str] = []
        i = 0
        while i < len(text):
            end = i
            while text[end : end + _PIECE] in here:
                end += 1
            if end == i:
                kept.append(text[i])
                i += 1
                continue
            end += _PIECE - 1
            run = text[i:end]
            kept.append(MASK if self._telling(run) else run)
            i = end
        return "".join(kept)

    def _telling(self, run: str) -> bool:
        """Whether a piece gives something away: chance characters, or half of a secret."""
        if any(char.isdigit() for char in run) or not (run.islower() or run.isupper()):
            return True
        return any(2 * len(run) >= len(secret) for secret in self._secrets if run in secret)


def _texts(value: Any) -> Iterator[str]:
    """Every text in a value, however deep."""
    if isinstance(value, str):
        yield value
    elif is_dataclass(value) and not isinstance(value, type):
        for item in fields(value):
            yield from _texts(getattr(value, item.name))
    elif hasattr(value, "items"):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
