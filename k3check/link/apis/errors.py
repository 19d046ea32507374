"""Find the error message in whatever a gateway answers.

Order and shapes: section C of the link specification, "Generic extractor".
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, replace
from html import unescape
from typing import TYPE_CHECKING, Any

from k3check.link.wire.jsonsafe import get, parse

if TYPE_CHECKING:
    from collections.abc import Iterator

_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_HEADING = re.compile(r"<h1[^>]*>(.*?)</h1>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_DEPTH = 3
_MOST_TEXTS = 12
_MOST_TEXT = 2000


@dataclass(frozen=True)
class ErrorInfo:
    """An error as a server put it; every text as received.

    Attributes:
        message: the sentence.
        type, code, param: the fields of that name as text, empty where missing.
        shape: how it was written: ``openai``, ``anthropic``, ``string``, ``flat``, ``success``,
            ``detail``, ``list``, ``errors``, ``msg``, ``html``, ``text``, ``other`` for a document
            whose texts are all that is known of it, or empty for none.
        field: the request field that a validation error names.
        provider: the upstream that a router names.
        inner: the error of an upstream that is passed on inside this one, in lower case.
    """

    message: str = ""
    type: str = ""
    code: str = ""
    param: str = ""
    shape: str = ""
    field: str = ""
    provider: str = ""
    inner: str = ""

    @property
    def relayed(self) -> bool:
        """It was passed on from further behind."""
        return bool(self.inner)

    @property
    def words(self) -> str:
        """Everything that can be searched, in lower case."""
        return " | ".join((self.message, self.type, self.code, self.param)).lower()


def _text(value: Any) -> str:
    if value is None or isinstance(value, (dict, list)):
        return ""
    return str(value)


def is_error(document: Any) -> bool:
    """True if a JSON document says that it is an error, whatever the status."""
    if not isinstance(document, dict):
        return False
    if document.get("error") not in (None, "", False, {}, []):
        return True
    return (
        document.get("success") is False
        or document.get("object") == "error"
        or document.get("type") == "error"
        # MiniMax's way, also of what went well.
        or get(document, "base_resp", "status_code") not in (None, 0)
    )


def from_document(document: Any, depth: int = 0) -> ErrorInfo:
    """The error in a JSON document; shape is empty if none is recognised."""
    error = get(document, "error")
    if isinstance(error, dict):
        shape = "anthropic" if get(document, "type") == "error" else "openai"
        found = _fields(error, shape)
        raw = get(error, "metadata", "raw")
        if raw and depth < _DEPTH:
            inner = _inner(raw, depth)
            provider = _text(get(error, "metadata", "provider_name"))
            if inner.message:
                return ErrorInfo(
                    f"{found.message}: {inner.message}",
                    inner.type or found.type,
                    found.code or inner.code,
                    inner.param or found.param,
                    shape,
                    provider=provider,
                    inner=inner.words,
                )
        return _unpacked(found, depth)
    if isinstance(error, str) and error:
        message = _text(get(document, "message"))
        return ErrorInfo(f"{error}: {message}" if message else error, shape="string")
    if get(document, "success") is False:
        return _fields(document, "success")
    if get(document, "message") and isinstance(get(document, "message"), str):
        return _fields(document, "flat")
    detail = get(document, "detail")
    if isinstance(detail, str) and detail:
        return ErrorInfo(detail, shape="detail")
    if isinstance(detail, dict):
        return from_document(detail if "error" in detail else {"error": detail}, depth + 1)
    if isinstance(detail, list) and detail:
        return _validation(detail)
    first = get(document, "errors", 0)
    if isinstance(first, dict):
        return _fields(first, "errors")
    if isinstance(first, str):
        return ErrorInfo(first, shape="errors")
    if isinstance(get(document, "msg"), str):
        return ErrorInfo(get(document, "msg"), code=_text(get(document, "code")), shape="msg")
    texts = list(_texts(document))
    return ErrorInfo(": ".join(texts)[:_MOST_TEXT], shape="other") if texts else ErrorInfo()


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    """The texts of a document in whose shape nothing is known, a few of them."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in itertools.islice(items, _MOST_TEXTS):
        if isinstance(item, str) and item.strip():
            yield item.strip()
        elif depth < _DEPTH:
            yield from _texts(item, depth + 1)


def _unpacked(error: ErrorInfo, depth: int) -> ErrorInfo:
    """An error whose sentence ends in a JSON document: what a router was told further behind."""
    start = error.message.find("{")
    if start <= 0 or depth >= _DEPTH:
        return error
    parsed = parse(error.message[start:].strip().encode("utf-8", "replace"))
    if not parsed.ok or not isinstance(parsed.document, dict):
        return error
    inner = from_document(parsed.document, depth + 1)
    return replace(error, inner=inner.words) if inner.shape else error


def _fields(error: dict[str, Any], shape: str) -> ErrorInfo:
    message = _text(error.get("message")) or _text(error.get("detail")) or _text(error.get("msg"))
    return ErrorInfo(
        message,
        _text(error.get("type")),
        _text(error.get("code")),
        _text(error.get("param")),
        shape,
    )


def _inner(raw: Any, depth: int) -> ErrorInfo:
    """An upstream's error that a router passes on, often as a string of JSON."""
    if isinstance(raw, str):
        parsed = parse(raw.encode("utf-8", "replace"))
        if not parsed.ok or not isinstance(parsed.document, dict):
            return ErrorInfo(raw, shape="text")
        raw = parsed.document
    return from_document(raw, depth + 1)


def _validation(detail: list[Any]) -> ErrorInfo:
    """FastAPI's list of ``loc, msg, type``."""
    first = detail[0]
    where = get(first, "loc")
    names = [str(n) for n in where if n != "body"] if isinstance(where, list) else []
    name = ".".join(names)
    message = _text(get(first, "msg")) or _text(first)
    return ErrorInfo(
        f"{name}: {message}" if name else message,
        _text(get(first, "type")),
        param=names[0] if names else "",
        shape="list",
        field=names[0] if names else "",
    )


def is_html(media_type: str, text: str) -> bool:
    """True for a web page, whatever the content type claims."""
    start = text[:512].lstrip("\ufeff \t\r\n").lower()
    if start.startswith(("<!doctype html", "<html", "<head", "<body", "<center>", "<h1", "<title")):
        return True
    return media_type in ("text/html", "application/xhtml+xml") and "<" in start


def page_title(text: str) -> str:
    """A web page's title or first heading."""
    for pattern in (_TITLE, _HEADING):
        if match := pattern.search(text[:65536]):
            title = " ".join(unescape(_TAG.sub(" ", match.group(1))).split())
            if title:
                return title
    return ""


def from_text(media_type: str, text: str) -> ErrorInfo:
    """The error in a body that is no JSON."""
    if is_html(media_type, text):
        return ErrorInfo(page_title(text) or _TAG.sub(" ", text[:2000]), shape="html")
    return ErrorInfo(text.strip(), shape="text") if text.strip() else ErrorInfo()
