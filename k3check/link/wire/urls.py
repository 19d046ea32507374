"""What a base URL leads to: pure reasoning about strings, no packet.

Source: sections 0, A1, D1 and E1 of the link specification.
"""

from __future__ import annotations

import ipaddress
import itertools
import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit, urlunsplit

if TYPE_CHECKING:
    from k3check.config.client import Client

ROUTES = {
    "openai": "chat/completions",
    "models": "models",
    "anthropic": "messages",
    "responses": "responses",
}

# What people paste behind the base; longest first.
_ENDPOINTS = (
    "/chat/completions",
    "/completions",
    "/messages/count_tokens",
    "/messages",
    "/responses",
    "/models",
    "/embeddings",
)
_VERSION = re.compile(r"v\d+(?:beta\d*|alpha\d*)?", re.IGNORECASE)

# Official hosts and the bases they serve.
PLATFORM_HOSTS = ("api.moonshot.ai", "api.moonshot.cn")
CODE_HOST = "api.kimi.com"
_OFFICIAL = {
    ("api.moonshot.ai", "openai"): "https://api.moonshot.ai/v1",
    ("api.moonshot.ai", "responses"): "https://api.moonshot.ai/v1",
    ("api.moonshot.ai", "anthropic"): "https://api.moonshot.ai/anthropic",
    ("api.moonshot.cn", "openai"): "https://api.moonshot.cn/v1",
    ("api.moonshot.cn", "responses"): "https://api.moonshot.cn/v1",
    ("api.moonshot.cn", "anthropic"): "https://api.moonshot.cn/anthropic",
    ("api.kimi.com", "openai"): "https://api.kimi.com/coding/v1",
    ("api.kimi.com", "responses"): "https://api.kimi.com/coding/v1",
    ("api.kimi.com", "anthropic"): "https://api.kimi.com/coding",
}
# Web pages that are taken for the API, and the API behind them.
WEB_PAGES = {
    "platform.moonshot.ai": "https://api.moonshot.ai/v1",
    "platform.kimi.ai": "https://api.moonshot.ai/v1",
    "platform.moonshot.cn": "https://api.moonshot.cn/v1",
    "platform.kimi.com": "https://api.moonshot.cn/v1",
    "www.kimi.com": "https://api.kimi.com/coding/v1",
    "kimi.com": "https://api.kimi.com/coding/v1",
    "kimi.moonshot.cn": "https://api.moonshot.cn/v1",
    "www.moonshot.ai": "https://api.moonshot.ai/v1",
    "www.moonshot.cn": "https://api.moonshot.cn/v1",
}
OTHER_REGION = {
    "api.moonshot.ai": "https://api.moonshot.cn/v1",
    "api.moonshot.cn": "https://api.moonshot.ai/v1",
}


# What a terminal acts on or nobody sees: control characters, marks of direction, zero width.
_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]"
)
_UNSEEN = {
    code: None
    for span in (
        (0x00, 0x09), (0x0B, 0x0D), (0x0E, 0x20), (0x7F, 0xA0), (0xAD, 0xAE), (0x200B, 0x2010),
        (0x2028, 0x202F), (0x2060, 0x2070), (0x061C, 0x061D), (0xFEFF, 0xFF00), (0xD800, 0xE000),
    )
    for code in range(*span)
}  # fmt: skip


def visible(text: str) -> str:
    """A text without escape sequences and without what cannot be seen."""
    return _ESCAPE.sub("", text).translate(_UNSEEN)


def hidden(text: str) -> str:
    """The characters of a text that must not be shown, or cannot be seen."""
    return "".join(c for c in text if ord(c) in _UNSEEN or c in "\t\r\n")


@dataclass(frozen=True)
class Base:
    """A configured base URL, taken apart. Never fails: unusable parts are None or empty.

    Attributes:
        raw: the setting as it is written.
        protocol: the API that is asked.
        client: how the configuration's client makes requests; None for our own way.
    """

    raw: str
    protocol: str = "openai"
    client: Client | None = None

    @cached_property
    def text(self) -> str:
        """The URL without blanks and quotes around it."""
        return self.raw.strip(" \t\r\n\u3000\u00a0\ufeff\"'`“”‘’<>")

    @cached_property
    def parts(self) -> SplitResult:
        """The pieces; empty ones if it cannot be split (an open bracket, say)."""
        try:
            return urlsplit(self.text)
        except ValueError:
            return SplitResult("", "", "", "", "")

    @property
    def open_bracket(self) -> bool:
        """True for an IPv6 address whose bracket is not closed, or any other lone bracket."""
        netloc = re.split(r"[/?#]", self.text.partition("://")[2], maxsplit=1)[0]
        return netloc.count("[") != netloc.count("]")

    @property
    def scheme(self) -> str:
        """``http``, ``https``, something else, or empty."""
        scheme, mark, _ = self.text.partition("://")
        return scheme.lower() if mark and scheme.isascii() else ""

    @cached_property
    def host(self) -> str:
        """The host in lower case; empty without one."""
        try:
            return (self.parts.hostname or "").rstrip(".")
        except ValueError:
            return ""

    @cached_property
    def port(self) -> int | None:
        """The port, by the scheme's default where none is written; None if it is no port."""
        try:
            written = self.parts.port
        except ValueError:
            return None
        return written or {"http": 80, "https": 443}.get(self.scheme)

    @property
    def bad_port(self) -> str | None:
        """The written port if it is none that exists."""
        try:
            port = self.parts.port
        except ValueError:
            return self.parts.netloc.rpartition(":")[2]
        return "0" if port == 0 else None

    @property
    def origin(self) -> tuple[str, str, int | None]:
        """Scheme, host and port: where the key may go."""
        return self.scheme, self.host, self.port

    @property
    def has_fragment(self) -> bool:
        """True for ``#...``, an empty fragment included."""
        return "#" in self.text

    @property
    def has_password(self) -> bool:
        """True for ``user:password@host``."""
        return "@" in self.parts.netloc

    @cached_property
    def loopback(self) -> bool:
        """True for this machine."""
        if self.host == "localhost" or self.host.endswith(".localhost"):
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @cached_property
    def private(self) -> bool:
        """True for this machine and for addresses of local networks."""
        if self.loopback or ("." not in self.host.strip("[]") and ":" not in self.host):
            return True
        try:
            return ipaddress.ip_address(self.host).is_private
        except ValueError:
            return self.host.endswith((".local", ".internal", ".lan", ".intranet", ".home.arpa"))

    @property
    def pasted_endpoint(self) -> str:
        """The endpoint path that was pasted into the base, or empty."""
        path = self.parts.path.rstrip("/").lower()
        return next((e for e in _ENDPOINTS if path.endswith(e) and not _a_base(path, e)), "")

    @property
    def doubled_version(self) -> bool:
        """True for ``/v1/v1``."""
        segments = [s.lower() for s in self.parts.path.split("/") if s]
        return any(a == b and _VERSION.fullmatch(a) for a, b in itertools.pairwise(segments))

    @property
    def has_version(self) -> bool:
        """True if the path ends in a version such as ``v1``."""
        return bool(_VERSION.fullmatch(self.parts.path.rstrip("/").rpartition("/")[2]))

    @property
    def anthropic_path(self) -> bool:
        """True for a base that is meant for Anthropic clients."""
        path = self.parts.path.rstrip("/").lower()
        return path.endswith(("/anthropic", "/anthropic/v1")) or (
            self.host == CODE_HOST
            and path in (("/coding", "/coding/v1") if self.keeps_version else ("/coding",))
        )

    @cached_property
    def tidy(self) -> str | None:
        """The base with its spelling corrected alone: blanks, scheme, query, slashes at the end.

        None where that leaves no address.
        """
        text = "".join(visible(self.text).split())
        text = text.replace("。", ".").replace("：", ":")
        text = re.sub(
            r"(?i)(?<=://)\[([0-9a-f:]+:(?!\d{2,5}(?:[/?#]|$))[0-9a-f]*)(?=[/?#]|$)", r"[\1]", text
        )
        if "://" not in text:
            text = ("http://" if _local_text(text) else "https://") + text.lstrip("/:")
        try:
            parts = urlsplit(text)
            host = parts.hostname
        except ValueError:
            return None
        if not host or parts.scheme.lower() not in ("http", "https"):
            return None
        path = parts.path.rstrip("/")
        return urlunsplit((parts.scheme.lower(), parts.netloc, path, "", ""))

    @cached_property
    def corrected(self) -> str:
        """The base as it should be written, or the same text if nothing is wrong with it.

        Nothing is guessed beyond what the text shows: the host stays, except for the known web
        pages of the official service.
        """
        text = "".join(visible(self.text).split())
        text = text.replace("。", ".").replace("：", ":")
        # An IPv6 address without the bracket's end, and nothing at its end that may be a port.
        text = re.sub(
            r"(?i)(?<=://)\[([0-9a-f:]+:(?!\d{2,5}(?:[/?#]|$))[0-9a-f]*)(?=[/?#]|$)", r"[\1]", text
        )
        if "://" not in text:
            text = re.sub(r"^(https?):?/{0,2}(?=[\w.-]+\.\w)", r"\1://", text, flags=re.IGNORECASE)
        if "://" not in text or text.startswith(":"):
            text = ("http://" if _local_text(text) else "https://") + text.lstrip("/:")
        try:
            parts = urlsplit(text)
            host = (parts.hostname or "").lower()
        except ValueError:
            return text
        scheme = parts.scheme.lower()
        if scheme not in ("http", "https"):
            scheme = "https"
        if host in WEB_PAGES:
            page = urlsplit(WEB_PAGES[host]).netloc
            return self._fitted(_OFFICIAL.get((page, self.protocol), WEB_PAGES[host]))
        netloc = parts.netloc.rpartition("@")[2]
        path = re.sub(r"/{2,}", "/", parts.path).rstrip("/")
        takes_endpoint = self.client is not None and (self.client.whole or self.client.once)
        for endpoint in () if takes_endpoint else _ENDPOINTS:
            if path.lower().endswith(endpoint) and not _a_base(path.lower(), endpoint):
                path = path[: -len(endpoint)].rstrip("/")
                break
        path = re.sub(r"(/v\d+\w*)\1+(?=/|$)", r"\1", path, flags=re.IGNORECASE)
        if self.client is not None and self.client.whole:
            return urlunsplit((scheme, netloc, path, "", ""))
        if self.protocol == "anthropic":
            if not self.may_have_version:
                path = re.sub(rf"/(?:{_VERSION.pattern})$", "", path, flags=re.IGNORECASE)
            if (host, "anthropic") in _OFFICIAL:
                return self._fitted(_OFFICIAL[host, "anthropic"])
        elif re.search(r"/anthropic(/v1)?$", path, re.IGNORECASE):
            path = re.sub(r"/anthropic(/v1)?$", "/v1", path, flags=re.IGNORECASE)
        if host == CODE_HOST:
            return _OFFICIAL[host, self.protocol]
        return urlunsplit((scheme, netloc, path, "", ""))

    def url(self, route: str) -> str:
        """Where a request really goes with the base as it is written.

        A client that joins strings is followed: a query or fragment in the base swallows the
        path. Only slashes at the end and the version are settled: exactly one ``/v1``.
        """
        if self.client is not None and route == self.client.wire:
            return self.client.url(self.text)
        if self.client is not None and route == "models":
            return self.client.models_url(self.text)
        return _join(self.text, route, self.has_version)

    @property
    def keeps_version(self) -> bool:
        """Whether a base of Anthropic's API ends in a version: its client appends none."""
        anthropic = self.client is not None and self.client.wire == "anthropic"
        return anthropic and self.client is not None and not self.client.versioned

    @property
    def may_have_version(self) -> bool:
        """Whether a base of Anthropic's API is right with a version at its end."""
        return self.keeps_version or (self.client is not None and bool(self.client.drops))

    def _fitted(self, base: str) -> str:
        """An official base as the client wants it."""
        if self.client is not None and self.client.whole:
            return _join(base, self.protocol, Base(base).has_version)
        return base + "/v1" if self.protocol == "anthropic" and self.keeps_version else base

    def corrected_url(self, route: str) -> str:
        """Where a request goes with the corrected base."""
        return replace(self, raw=self.corrected).url(route)

    @property
    def sdk_base(self) -> str:
        """The corrected base as an SDK of the protocol wants it: OpenAI's with the version."""
        base = self.corrected.rstrip("/")
        if self.protocol == "anthropic" or self.client or Base(base, self.protocol).has_version:
            return base
        return base + "/v1"

    @property
    def shown(self) -> str:
        """The base for messages: without a password."""
        if not self.has_password:
            return self.text
        parts = self.parts
        return urlunsplit(parts._replace(netloc="***@" + parts.netloc.rpartition("@")[2]))


def _a_base(path: str, endpoint: str) -> bool:
    """A path that ends as an endpoint does and is some provider's base: ``/models`` at Azure's."""
    before = path.removesuffix(endpoint).rpartition("/")[2]
    return endpoint == "/models" and not _VERSION.fullmatch(before)


def _local_text(text: str) -> bool:
    """True for a host without scheme that is this machine."""
    return text.lower().startswith(("localhost", "127.", "[::1]", "0.0.0.0"))  # noqa: S104 - compared, not bound


def _join(base: str, route: str, versioned: bool) -> str:
    tail = ROUTES[route]
    return base.rstrip("/") + ("/" if versioned else "/v1/") + tail
