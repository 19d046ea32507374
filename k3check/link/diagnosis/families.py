"""Recognise the software that answered from its headers and the shape of its body.

Source: the table in section C of the link specification. The order matters: a gateway that passes
another one's body on is recognised by its own headers first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from k3check.link.apis.errors import is_html
from k3check.link.wire.jsonsafe import get

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.link.apis.errors import ErrorInfo

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


_ROWS: tuple[tuple[str, Callable[[Seen], bool]], ...] = (
    ("litellm", lambda s: s.header("x-litellm-") or "litellm" in s.error.words
        or s.error.type == "no_db_connection"),
    ("cc-switch", lambda s: s.error.type == "proxy_error"),
    ("moonshot", lambda s: s.header("msh-")),
    ("one-api", lambda s: s.error.type == "one_api_error" or s.header("x-oneapi-request-id")),
    ("new-api", lambda s: (s.error.type.endswith("_api_error") and s.error.shape == "openai"
        and bool(_REQUEST_ID.search(s.error.message))) or s.error.type == "new_api_error"
        or s.header("x-new-api-version")),
    ("one-api", lambda s: bool(_REQUEST_ID.search(s.error.message))
        or s.error.message.startswith("Invalid URL (")),
    ("openrouter", _openrouter),
    ("cloudflare", _cloudflare),
    ("corporate-proxy", _corporate),
    ("ollama", lambda s: get(s.document, "system_fingerprint") == "fp_ollama"
        or s.text[:64].startswith("Ollama is running") or _owned_by(s) == "library"
        or "try pulling it first" in s.error.words),
    ("llama.cpp", _llama_cpp),
    ("vllm", lambda s: _owned_by(s) == "vllm" or s.error.type in ("NotFoundError",
        "BadRequestError") or "vllm" in s.server),
    ("sglang", lambda s: _owned_by(s) == "sglang"),
    ("vllm-or-sglang", lambda s: _flat_object_error(s)
        or (s.error.shape == "string" and s.error.message == "Unauthorized")),
    ("moonshot", lambda s: s.error.type in ("invalid_authentication_error",
        "incorrect_api_key_error", "resource_not_found_error", "exceeded_current_quota_error",
        "engine_overloaded_error", "rate_limit_reached_error", "access_terminated_error",
        "permission_denied_error")),
    ("anthropic", lambda s: s.error.shape == "anthropic" or s.header("anthropic-")
        or get(s.document, "type") == "message"),
    ("go-http", lambda s: s.text[:64].strip() == "404 page not found"),
    ("fastapi", lambda s: s.error.shape in ("detail", "list") or "uvicorn" in s.server),
    ("nginx", lambda s: s.html and "<center>" in s.text.lower() and (
        "nginx" in s.text.lower() or "openresty" in s.text.lower() or "tengine" in s.text.lower())),
)  # fmt: skip


def recognise(seen: Seen) -> str:
    """The family's name, ``unknown`` if nothing fits."""
    return next((name for name, fits in _ROWS if fits(seen)), UNKNOWN)
