"""Recognise the software that answered from its headers and the shape of its body.

Source: the table in section C of the link specification; the signs themselves are data, in
``providers.toml``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from k3check.link.apis.errors import is_html
from k3check.link.diagnosis import providers
from k3check.link.wire.jsonsafe import get

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.link.apis.errors import ErrorInfo
    from k3check.link.diagnosis.providers import Provider

UNKNOWN = "unknown"

_REQUEST_ID = re.compile(r"\(request id: \w+\)", re.IGNORECASE)


@dataclass(frozen=True)
class Seen:
    """What a family is recognised by."""

    status: int | None
    headers: Mapping[str, str]
    media_type: str
    document: Any
    error: ErrorInfo
    text: str

    @property
    def server(self) -> str:
        """The Server header in lower case."""
        return self.headers.get("server", "").lower()

    @property
    def html(self) -> bool:
        """The body is a web page."""
        return is_html(self.media_type, self.text)

    def header(self, *prefixes: str) -> bool:
        """Any header starts with one of the prefixes."""
        return any(name.startswith(prefixes) for name in self.headers)


def _cloudflare(s: Seen) -> bool:
    page = s.html and ("cloudflare" in s.text.lower() or "just a moment" in s.text.lower())
    own_status = s.status in (520, 521, 522, 523, 524, 525, 526, 530)
    # A working API behind Cloudflare has the headers too: only its own pages count as its answer.
    return page or (own_status and ("cf-ray" in s.headers or "cloudflare" in s.server))


def _corporate(s: Seen) -> bool:
    marks = ("x-squid-error", "x-zscaler-", "x-bluecoat-")
    words = ("squid", "zscaler", "fortiguard", "fortinet", "bluecoat", "sophos", "tinyproxy")
    return (
        s.status == 407
        or s.header(*marks)
        or (s.html and any(word in s.text[:8192].lower() for word in words))
    )


def _llama_cpp(s: Seen) -> bool:
    if "llama.cpp" in s.server:
        return True
    error = get(s.document, "error")
    return (
        isinstance(error, dict)
        and next(iter(error), "") == "code"
        and isinstance(error["code"], int)
        and "type" in error
        and "metadata" not in error
    )


def _openrouter(s: Seen) -> bool:
    error = get(s.document, "error")
    return ": openrouter processing" in s.text[:65536].lower() or (
        isinstance(error, dict)
        and isinstance(error.get("code"), int)
        and ("metadata" in error or "user_id" in (s.document or {}))
    )


def _flat_object_error(s: Seen) -> bool:
    return get(s.document, "object") == "error" and get(s.document, "message") is not None


def _owned_by(s: Seen) -> str:
    return str(get(s.document, "data", 0, "owned_by") or "").lower()


def _new_api(s: Seen) -> bool:
    named = s.error.type.endswith("_api_error") and s.error.type != "one_api_error"
    return named and s.error.shape == "openai" and bool(_REQUEST_ID.search(s.error.message))


def _nginx(s: Seen) -> bool:
    text = s.text[:8192].lower()
    own = any(name in text for name in ("nginx", "openresty", "tengine"))
    return s.html and "<center>" in text and own


# What no list of words describes, by the name that a row's signs give it.
SHAPES: dict[str, Callable[[Seen], bool]] = {
    "openrouter": _openrouter,
    "cloudflare": _cloudflare,
    "corporate-proxy": _corporate,
    "llama.cpp": _llama_cpp,
    "new-api": _new_api,
    "nginx": _nginx,
    "anthropic": lambda s: s.error.shape == "anthropic" or get(s.document, "type") == "message",
}

# Shapes that several programs share, tried last.
_SHARED: tuple[tuple[str, Callable[[Seen], bool]], ...] = (
    ("vllm-or-sglang", lambda s: _flat_object_error(s)
        or (s.error.shape == "string" and s.error.message == "Unauthorized")),
    ("go-http", lambda s: s.text[:64].strip() == "404 page not found"),
    ("fastapi", lambda s: s.error.shape in ("detail", "list") or "uvicorn" in s.server),
)  # fmt: skip


def _by_types(row: Provider, s: Seen) -> bool:
    fingerprint = str(get(s.document, "system_fingerprint") or "")
    signs = row.signs
    return (
        bool(s.error.type and s.error.type in signs.types)
        or (bool(signs.fingerprint) and fingerprint in signs.fingerprint)
        or (bool(signs.owned_by) and _owned_by(s) in signs.owned_by)
        or s.text[:128].lstrip().startswith(signs.starts or ("\0",))
    )


def _by_words(row: Provider, s: Seen) -> bool:
    pattern = row.signs.message
    said = any(word in s.error.words for word in row.signs.words)
    return said or bool(pattern and re.search(pattern, s.error.message))


# How telling the signs are, the most first: a gateway that passes another one's body on is
# recognised by its own headers.
_PASSES: tuple[Callable[[Provider, Seen], bool], ...] = (
    lambda row, s: bool(row.signs.headers) and s.header(*row.signs.headers),
    _by_types,
    lambda row, s: bool(row.signs.shape) and SHAPES[row.signs.shape](s),
    _by_words,
    lambda row, s: (
        any(part in s.server for part in row.signs.server)
        # A web server in front of an API that speaks for itself has not answered.
        and (row.kind != "web" or not isinstance(s.document, dict))
    ),
)  # fmt: skip
_ORDER = ("gateway", "provider", "server", "web", "common")


def recognise(seen: Seen) -> str:
    """The family's name, ``unknown`` if nothing fits."""
    rows = sorted(providers.table(), key=lambda row: _ORDER.index(row.kind))
    for fits in _PASSES:
        for row in rows:
            if fits(row, seen):
                return row.id
    return next((name for name, fits in _SHARED if fits(seen)), UNKNOWN)


def front(seen: Seen) -> tuple[str, bool]:
    """The web server that answered, and whether by a page that is its own; empty if unknown.

    Without a row for it the Server header is quoted.
    """
    if isinstance(seen.document, (dict, list)):
        return "", False
    rows = [row for row in providers.table() if row.kind == "web"]
    for row in rows:
        shape = SHAPES.get(row.signs.shape)
        if (shape is not None and shape(seen)) or seen.text[:128].lstrip().startswith(
            row.signs.starts or ("\0",)
        ):
            squid = "squid" in seen.server or "x-squid-error" in seen.headers
            return ("Squid" if squid else row.name), True
    for row in rows:
        if any(part in seen.server for part in row.signs.server):
            return row.name, False
    return seen.headers.get("server", "").partition("/")[0].strip()[:40], False
