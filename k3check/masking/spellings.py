"""How a secret may be written: what a server, a proxy or a trace can turn a key into.

Each kind of spelling is a way to squeeze a text until only the code is left (escapes decoded,
blanks and separators gone), the needle to look for in it, and the pattern that finds the place in
the text as it stands. Squeezing is one pass of substitutions and takes time in proportion to the
text; the patterns are built only where something was found.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from functools import partial
from html.entities import html5
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_INVISIBLE = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff"
_BLANKS = re.compile(rf"[\s{_INVISIBLE}]|\\[nrt]")
_BLANK = rf"(?:[\s{_INVISIBLE}]|\\[nrt])*"
_ESCAPE = re.compile(
    r"&#x0*([0-9a-f]{1,6});?|&#0*([0-9]{1,7});?|&([a-z0-9]{2,30};)|%([0-9a-f]{2})"
    r"|\\{1,8}u\{?0*([0-9a-f]{2,4})\}?|\\{1,8}x([0-9a-f]{2})|\\+",
    re.IGNORECASE,
)
_NOT_HEX = re.compile(r"\\{1,8}u(?:00|\{0*)|0x|\\{1,8}x|&?#x|[^0-9a-z]", re.IGNORECASE)
_HEX_LEAD = r"(?:\\{1,8}u00|\\{1,8}u\{0*|0x|\\{1,8}x|&?#x|%)?"
_NOT_NUMBER = re.compile(r"\D+0*|^0+")
_DENSE = "0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-"
_NAMED: dict[str, list[str]] = {}


@dataclass(frozen=True)
class Spelling:
    """One way to write a secret.

    Attributes:
        squeeze: what is left of a text to look for the needle in.
        needle: the secret as it stands there.
        pattern: matches it in the text itself.
    """

    squeeze: Callable[[str], str]
    needle: str
    pattern: Callable[[], str]


def spellings(secret: str) -> Iterator[Spelling]:
    """Every spelling of a secret.

    Literally, in any case, forwards and backwards, with any character escaped (percent, JSON,
    character reference) or with blanks and line ends between; its bytes as hexadecimal, decimal,
    octal or binary numbers with any separators; base64, base32, base85 and Ascii85, wherever it
    stands in the text that was encoded and however the lines were broken.
    """
    raw = secret.encode("utf-8", "surrogatepass")
    for way in (secret, secret[::-1]):
        yield Spelling(_literal, _BLANKS.sub("", way).lower(), partial(_any_escape, way))
    yield Spelling(_hex, raw.hex(), partial(_hex_pattern, raw))
    for form in ("d", "o", "b"):
        numbers = [format(byte, form) for byte in raw]
        needle = f" {' '.join(numbers)} "
        yield Spelling(_numbers, needle, partial(_number_pattern, numbers))
    for code in _encoded(raw, 3, 4, base64.b64encode):
        yield Spelling(_base64, code, partial(_run, code, "A-Za-z0-9+/_=-"))
    for code in _encoded(raw, 5, 8, base64.b32encode):
        yield Spelling(_upper, code, partial(_run, code, "A-Za-z2-7="))
    for code in _encoded(raw, 4, 5, base64.b85encode):
        yield Spelling(_dense, code, partial(_run, code, _DENSE))
    for code in _encoded(raw, 4, 5, base64.a85encode):
        yield Spelling(_unbroken, code, partial(_run, code, _DENSE))


def _literal(text: str) -> str:
    return _BLANKS.sub("", _ESCAPE.sub(_decoded, text)).lower()


def _decoded(match: re.Match[str]) -> str:
    reference, decimal, name, *codes = match.groups()
    if name is not None:
        return html5.get(name, match[0])
    digits = next((code for code in (reference, *codes) if code is not None), None)
    if digits is None and decimal is None:
        return match[0] if match[0][:1] != "\\" else ""
    point = int(digits, 16) if digits is not None else int(decimal)
    return chr(point) if point < 0x110000 else match[0]


def _hex(text: str) -> str:
    return _NOT_HEX.sub("", text).lower()


def _numbers(text: str) -> str:
    return f" {_NOT_NUMBER.sub(' ', text)} "


def _base64(text: str) -> str:
    return _dense(text).replace("-", "+").replace("_", "/")


def _upper(text: str) -> str:
    return _dense(text).upper()


def _dense(text: str) -> str:
    return _BLANKS.sub("", text)


def _unbroken(text: str) -> str:
    """Without blanks; a backslash is a character of Ascii85."""
    return "".join(text.split())


def _encoded(raw: bytes, size: int, width: int, encode: Callable[[bytes], bytes]) -> Iterator[str]:
    """The characters that depend on a secret alone, at every place in an encoded text.

    An encoding turns groups of ``size`` bytes into ``width`` characters, so a secret in the middle
    of a text has ``size`` alignments; the first and the last group may hold neighbours' bytes too.
    """
    for shift in range(size):
        start = -shift % size
        whole = (len(raw) - start) // size
        for end in (len(raw), start + whole * size):  # first as the end of the text
            code = encode(raw[start:end]).decode("ascii").rstrip("=")
            if len(code) >= 2 * width:
                yield code


def _any_escape(secret: str) -> str:
    chars = (char for char in secret if not _BLANKS.fullmatch(char))
    return f"(?i:{_BLANK.join(map(_escaped_forms, chars))})"


def _escaped_forms(char: str) -> str:
    """A character in any case, as itself or as any escape of it."""
    if not _NAMED:
        for name, text in html5.items():
            if len(text) == 1 and text.isascii():
                _NAMED.setdefault(text, []).append(re.escape(name))
    forms = []
    for one in {char, char.lower(), char.upper()}:
        if len(one) != 1:
            continue
        code = f"{ord(one):x}"
        forms += [
            re.escape(one),
            rf"(?:%|\\{1, 8}x|\\{1, 8}u0*|\\{1, 8}u\{{0*){code}\}}?",
            rf"&\#x0*{code};?|&\#0*{ord(one)};?",
        ]
        forms += [f"&{name}" for name in _NAMED.get(one, ())]
    return rf"\\*(?:{'|'.join(forms)})"


def _hex_pattern(raw: bytes) -> str:
    return r"(?i:" + r"(?:[^0-9a-z]|\\{1,8}u)*?".join(f"{_HEX_LEAD}{b:02x}" for b in raw) + ")"


def _number_pattern(numbers: list[str]) -> str:
    return r"(?<!\d)" + r"\D+".join(f"0*{number}" for number in numbers) + r"(?!\d)"


def _run(code: str, alphabet: str) -> str:
    """A code with line ends in it, and what of its alphabet stands beside it.

    Its first and last bytes may be the secret's too. Base32 has no case, the others have.
    """
    chars = {"+": "[+-]", "/": "[/_]"} if "_=" in alphabet else {}
    body = _BLANK.join(chars.get(char, re.escape(char)) for char in code)
    found = f"[{alphabet}]{{0,8}}{body}[{alphabet}]{{0,8}}"
    return f"(?i:{found})" if "2-7" in alphabet else found
