"""Make text from outside safe to show, and numbers short enough to read."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping

_KEPT = "\n\t"
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def clean(text: str) -> str:
    """Remove what could drive a terminal or break XML: escape sequences, bidi marks, surrogates.

    Line ends are unified and tabs become blanks. Everything else that is not printable shows as
    its escape in hexadecimal, so that the reader sees that something was there.
    """
    if text.isprintable():
        return text
    unified = text.replace("\r\n", "\n").replace("\r", "\n").expandtabs(4)
    return "".join(
        char
        if char in _KEPT or unicodedata.category(char) not in _HIDDEN
        else char.encode("unicode_escape", "surrogatepass").decode("ascii")
        for char in unified
    )


def encodable(text: str) -> str:
    """A text that every encoding of Unicode can carry: a lone surrogate shows as its escape."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def one_line(text: str) -> str:
    """Cleaned text with every run of white space as one blank."""
    return " ".join(clean(text).split())


def number(value: float) -> str:
    """A measured value in at most nine characters: ``0``, ``12``, ``0.035``, ``3.21e-07``."""
    if not math.isfinite(value):
        return {math.inf: "inf", -math.inf: "-inf"}.get(value, "NaN")
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    if 1e3 <= abs(value) < 1e6:
        return str(round(value))
    if 1e-3 <= abs(value) < 1e3:
        return f"{value:.4g}"
    return f"{value:.2e}"


def seconds(value: float) -> str:
    """A duration: ``0.03 s``, ``4.2 s``, ``2 min 05 s``."""
    if value < 1:
        return f"{value:.2f} s"
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest:02d} s"


def plain(value: object) -> str:
    """Any value of an evidence or location as cleaned text."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return number(value)
    if isinstance(value, Mapping | list | tuple) and not value:
        return "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{plain(key)} {plain(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(plain(item) for item in value)
    return clean(str(value))
