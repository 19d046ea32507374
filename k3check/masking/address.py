"""Keys that were written where an address or a model's id belongs.

A key inside a URL, or in a field that is shown, is no less a key. What is found here is added to a
run's known secrets before anything is shown, so that the usual masking finds it everywhere.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, unquote_plus

from k3check.masking.masker import MASK, SHORTEST

if TYPE_CHECKING:
    from collections.abc import Iterator

# What services' keys begin with, and how a signed token looks. How far it looks ahead is bounded,
# or a long text of such beginnings would take time in proportion to its square.
KEY = (
    r"sk-[\w\-]{4,}|(?:gsk|hf|gh[pousr])_(?=\w{0,200}\d)\w{12,}"
    r"|xai-(?=[\w\-]{0,200}\d)[\w\-]{12,}"
    r"|AIza(?=[\w\-]{0,200}\d)[\w\-]{12,}|eyJ[\w\-]{8,2000}+\.[\w.\-]+"
)
_KEY = re.compile(rf"(?i:bearer[\s:+]+)?(?:{KEY})", re.ASCII)
_INSIDE = re.compile(rf"(?<![A-Za-z0-9])(?:{KEY})", re.ASCII)
_BEARER = re.compile(r"(?i)bearer[\s:+]+(\S{4,})")
# Long, of letters and digits without any sign between them: no word, version or model is.
_OPAQUE = re.compile(r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{24,}", re.ASCII)
_NAME = re.compile(
    r"(?i)(?:^|[_.\-])(?:(?:api|access|auth|id|refresh|client|private|secret|subscription)?"
    r"(?:key|token|secret)|auth|authorization|sig|signature|passw\w*|pwd|pass|credentials?|bearer)$"
)
_USERINFO = re.compile(r"(?<=//)[^/\s@?#\"'<>]*(?:@[^/\s@?#\"'<>]*)*@")
_FIELD = re.compile(r"(?<=[?&;#])([\w.\-\[\]%]+)=([^&;\s#\"'<>]+)")


def looks_like_key(text: str) -> bool:
    """Whether a whole text looks like a key, and not like a word, a host or a model."""
    text = text.strip(" \t\r\n\"'")
    return bool(_KEY.fullmatch(text) or _BEARER.fullmatch(text) or _OPAQUE.fullmatch(text))


def _key_name(name: str) -> bool:
    return _NAME.search(unquote(name).strip("[]")) is not None


def hide_in_urls(text: str) -> str:
    """Mask user names, passwords and the values of keys' names in the URLs of a text."""
    if "//" not in text and "=" not in text:
        return text
    text = _USERINFO.sub(f"{MASK}@", text)
    return _FIELD.sub(lambda m: f"{m[1]}={MASK}" if _key_name(m[1]) else m[0], text)


def secrets_in_address(text: str | None) -> tuple[str, ...]:
    """The secrets inside a URL, a host without scheme, or a model's id.

    Args:
        text: the value as configured; anything, a bare key too.

    Returns:
        Each secret as written, decoded, and in lower case, as hosts are shown.
    """
    found: list[str] = []
    for piece in _pieces(text or ""):
        for spelling in (piece, unquote(piece), unquote_plus(piece)):
            found += [s for s in (spelling, spelling.lower()) if len(s) >= SHORTEST]
    return tuple(dict.fromkeys(found))


def _pieces(text: str) -> Iterator[str]:
    text = text.strip()
    if looks_like_key(text):
        yield text
        if bearer := _BEARER.match(text):
            yield bearer[1]
    scheme, mark, rest = text.partition("://")
    if not mark:
        rest = scheme
    ends = re.search(r"[/?#]", rest)
    netloc, tail = (rest[: ends.start()], rest[ends.start() :]) if ends else (rest, "")
    if "@" in netloc:
        user, colon, password = netloc.rpartition("@")[0].partition(":")
        yield from (password, f"{user}:{password}") if password else ()
        if not colon or not password or any(map(looks_like_key, (user, unquote(user)))):
            yield user
    for match in _FIELD.finditer(tail):
        if _key_name(match[1]):
            yield match[2]
    for part in re.split(r"[/?#&;=:@]", f"{netloc}/{tail}"):
        if looks_like_key(part) or looks_like_key(unquote(part)):
            yield part
            if bearer := _BEARER.match(unquote_plus(part)):
                yield bearer[1]
    yield from (match[0] for match in _INSIDE.finditer(unquote(text)))


def secrets_in_values(data: Any) -> tuple[str, ...]:
    """The secrets inside the URLs of parsed data, and its texts that begin as keys do."""
    found: list[str] = []
    todo = [data]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            todo += value.values()
        elif isinstance(value, list):
            todo += value
        elif isinstance(value, str) and ("://" in value or _KEY.fullmatch(value.strip())):
            found += secrets_in_address(value)
    return tuple(dict.fromkeys(found))


def hosts(*addresses: str | None) -> tuple[str, ...]:
    """The hosts of configured addresses: they may share words with a key, and are shown."""
    found = []
    for address in addresses:
        netloc = (address or "").rpartition("//")[2].partition("/")[0]
        found.append(netloc.rpartition("@")[2].partition(":")[0])
    return tuple(host for host in found if host)
