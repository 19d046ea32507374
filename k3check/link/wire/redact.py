"""Make text from outside safe to show: no key in any spelling, nothing that drives a terminal.

Source of the rules: section F of the link specification. A server may echo the key whole, shortened
(``sk-ab***wxyz``), reversed, URL-quoted, in hexadecimal or in base64; all of these go.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

from k3check.config.address import hide_in_urls, secrets_in_address

if TYPE_CHECKING:
    from collections.abc import Iterable

MASK = "***"
EXCERPT = 200

# Any run of this many characters of a key is treated as a piece of it.
_GRAM = 8
# Below this length a "key" is too short to be searched for without destroying ordinary words.
_SHORTEST = 5

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # OSC, DCS, SOS, PM, APC with their payload
    r"|\x9b[0-?]*[ -/]*[@-~]"  # CSI, 8 bit
    r"|\x9d.*?(?:\x07|\x9c|$)"  # OSC, 8 bit
    r"|\x1b[ -/]*[0-~]",  # other escapes
    re.DOTALL,
)
_INVISIBLE = re.compile(
    "[\u200b-\u200f\u202a-\u202e\u2060-\u2069\u061c\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
# What rich would take for a style tag or a link; an IPv6 address in brackets is neither.
_MARKUP = re.compile(r"\[(?![0-9a-fA-F]*:[0-9a-fA-F]*:)(/?[a-zA-Z#@][^\[\]]*|/)\]")


def plain(text: str) -> str:
    """Remove what would drive a terminal or hide text; line breaks and tabs stay."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _ESCAPES.sub("", text)
    text = _INVISIBLE.sub("", text)
    text = _CONTROL.sub(" ", text)
    text = _SURROGATE.sub("\ufffd", text)
    return _MARKUP.sub(r"(\1)", text)


def one_line(text: str, limit: int = EXCERPT) -> str:
    """Safe text on one line, cut to ``limit`` characters."""
    # Cut generously first: a hostile body can be megabytes long.
    line = " ".join(plain(text[: 40 * limit]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def without_password(url: str) -> str:
    """A text in whose URLs ``user:password@`` and ``?api_key=...`` are masked."""
    return hide_in_urls(url)


def without_keys(text: str) -> str:
    """An address or a model's id without the keys that were written into it."""
    return Redactor(secrets_in_address(text)).hide(without_password(text))


class Redactor:
    """Replaces every trace of the given secrets."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = tuple(
            dict.fromkeys(s.strip() for s in secrets if len(s.strip()) >= _SHORTEST)
        )

    @cached_property
    def _spellings(self) -> tuple[str, ...]:
        """The secrets as they may be written, longest first."""
        found: set[str] = set()
        for secret in self._secrets:
            raw = secret.encode()
            found |= {secret, quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1]}
            found |= {raw.hex(), raw.hex().upper(), secret[::-1]}
            # Every character percent-encoded, in either case of the digits.
            percent = "%" + raw.hex("%")
            found |= {percent, percent.upper()}
            # Base64 of a text that contains the key at any of the three alignments.
            for shift in range(3):
                whole = base64.b64encode(b"\0" * shift + raw).decode()
                start, end = -(-shift * 4 // 3), len(whole) - (4 if (shift + len(raw)) % 3 else 0)
                found.add(whole[start:end])
            found.add(base64.urlsafe_b64encode(raw).decode().rstrip("="))
        return tuple(sorted((s for s in found if len(s) >= _SHORTEST), key=len, reverse=True))

    @cached_property
    def _grams(self) -> frozenset[str]:
        return frozenset(
            secret[i : i + _GRAM]
            for secret in self._secrets
            if len(secret) >= 2 * _GRAM
            for i in range(len(secret) - _GRAM + 1)
        )

    @cached_property
    def _shortened(self) -> re.Pattern[str] | None:
        """``sk-a***wxyz``: the beginning, a filler and the end of a secret."""
        parts = [
            f"{re.escape(s[:2])}\\S{{0,10}}?[*.…•x]{{2,}}\\S{{0,8}}{re.escape(s[-2:])}"
            for s in self._secrets
            if len(s) >= _GRAM
        ]
        return re.compile("|".join(parts)) if parts else None

    def _without_pieces(self, text: str) -> str:
        grams = self._grams
        if not grams:
            return text
        kept: list[str] = []
        i = 0
        while i < len(text):
            if text[i : i + _GRAM] in grams:
                end = i + 1
                while text[end : end + _GRAM] in grams:
                    end += 1
                i = end + _GRAM - 1
                kept.append(MASK)
            else:
                kept.append(text[i])
                i += 1
        return "".join(kept)

    def hide(self, text: str) -> str:
        """Replace the secrets in a text; nothing else is changed."""
        for spelling in self._spellings:
            text = text.replace(spelling, MASK)
        if self._shortened is not None:
            text = self._shortened.sub(MASK, text)
        return self._without_pieces(text)

    def contains(self, text: str) -> bool:
        """True if a secret, whole and in any spelling, is in the text."""
        return any(spelling in text for spelling in self._spellings)

    def excerpt(self, text: str, limit: int = EXCERPT) -> str:
        """Safe, redacted, on one line and cut: for values and evidence from outside.

        Redacted before it is cut, so that no piece of a key survives at the cut, and again after
        control characters were removed, so that none can split it.
        """
        return self.hide(without_password(one_line(self.hide(text[: 100 * limit]), limit)))

    def value(self, value: Any) -> Any:
        """The same value with every text in it safe and redacted; numbers stay."""
        if isinstance(value, Enum):
            return value
        if isinstance(value, str):
            return self.hide(without_password(plain(value)))
        if isinstance(value, dict):
            return {self.value(k): self.value(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self.value(v) for v in value)
        return value

    def record(self, record: Any) -> Any:
        """A frozen record (a finding, say) with every text in it redacted, however deep."""
        if is_dataclass(record) and not isinstance(record, type):
            return replace(
                record, **{f.name: self.record(getattr(record, f.name)) for f in fields(record)}
            )
        if isinstance(record, (list, tuple)):
            return type(record)(self.record(item) for item in record)
        if isinstance(record, dict):
            return {self.value(k): self.record(v) for k, v in record.items()}
        return self.value(record)
