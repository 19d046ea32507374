"""Make text from outside safe to show: no key in any spelling, nothing that drives a terminal.

Source of the rules: section F of the link specification. What a key is and how it may be written is
:mod:`k3check.masking`'s business; here is what else a server's text may hold.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from k3check.masking import Masker
from k3check.masking.address import hide_in_urls, secrets_in_address

if TYPE_CHECKING:
    from collections.abc import Callable

EXCERPT = 200

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


class Redactor(Masker):
    """Replaces every trace of the given secrets in texts from outside."""

    def excerpt(self, text: str, limit: int = EXCERPT) -> str:
        """Safe, redacted, on one line and cut: for values and evidence from outside.

        Redacted before it is cut, so that no piece of a key survives at the cut, and again after
        control characters were removed, so that none can split it.
        """
        return self.hide(without_password(one_line(self.hide(text[: 100 * limit]), limit)))

    def value(self, value: Any, clean: Callable[[str], str] | None = None) -> Any:
        """A value, or a frozen record (a finding, say), with every text in it safe and redacted."""
        return super().value(value, clean or _safe)


def _safe(text: str) -> str:
    return without_password(plain(text))
