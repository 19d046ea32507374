"""A text without straight quotes around it: the commonest mistake in a setting's value."""

from __future__ import annotations

import re
from dataclasses import dataclass

from k3check.masking.settings import is_secret_key, scrub

_QUOTES = "“”„‟‘’«»「」"
# Words that were meant as such, not as a text.
_WORDS = (
    "true",
    "false",
    "yes",
    "no",
    "on",
    "off",
    "null",
    "none",
    "nil",
    "nan",
    "inf",
    "infinity",
)
_BARE = re.compile(r"[A-Za-z][^\s\"'#,;{}\[\]]*")


@dataclass(frozen=True)
class Unquoted:
    """What stands in a text's place.

    Attributes:
        reason: what is wrong with it.
        text: the text that was meant; empty if that is not clear.
    """

    reason: str
    text: str

    def fix(self, key: str, sign: str = " = ") -> str | None:
        """The right line of a key, or a sentence without the value where that is a secret."""
        key = key.strip().strip("\"'")
        if not self.text or not key or is_secret_key(key) or scrub(self.text) != self.text:
            return 'Put the text in straight double quotes: "...".'
        quoted = f'"{key}"' if sign.startswith(":") else key
        return f'Write: {quoted}{sign}"{self.text}"'


def unquoted(rest: str) -> Unquoted | None:
    """What a line's rest shows where a value is expected; None if it is something else.

    Args:
        rest: the line from the place where reading stopped.
    """
    rest = rest.strip()
    if rest and rest[0] in _QUOTES:
        text = re.split(f"[{_QUOTES}]", rest[1:], maxsplit=1)[0]
        return Unquoted("typographic quotes; texts stand in straight double quotes", text)
    bare = _BARE.match(rest)
    if bare is None or bare[0].casefold() in _WORDS:
        return None
    return Unquoted("a text without double quotes", bare[0])
