"""Which proxy a request takes, and who said so.

Follows httpx (and with it the official SDKs): a proxy in the configuration first, then the
variables, lower-case spelling before upper-case, scheme before ALL_PROXY; NO_PROXY by suffix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from k3check.link.wire.redact import without_password

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.link.wire.urls import Base

SCHEMES = ("http", "https", "socks5", "socks5h")


@dataclass(frozen=True)
class ProxyChoice:
    """The proxy for one origin.

    Attributes:
        url: the proxy, empty for a direct connection.
        source: the variable or the configuration's key that named it.
        bypassed: the NO_PROXY entry that keeps it from being used, or empty.
        ignored: variables that the configuration's proxy overrules.
    """

    url: str = ""
    source: str = ""
    bypassed: str = ""
    ignored: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The proxy without its password."""
        return without_password(self.url)

    @property
    def scheme(self) -> str:
        """The proxy's scheme in lower case."""
        return self.url.partition("://")[0].lower() if "://" in self.url else ""

    @property
    def peer(self) -> str:
        """``host:port`` of the proxy, as far as it can be told."""
        try:
            parts = urlsplit(self.url)
            port = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 1080)
        except ValueError:
            return self.shown
        return f"{parts.hostname}:{port}"


def _variable(env: Mapping[str, str], name: str) -> tuple[str, str]:
    """Name and value of a variable in the spelling that wins."""
    for spelling in (name.lower(), name.upper()):
        if value := env.get(spelling, "").strip():
            return spelling, value
    return name.upper(), ""


def _bypass(host: str, env: Mapping[str, str]) -> str:
    """The NO_PROXY entry that covers a host, or empty."""
    _, value = _variable(env, "NO_PROXY")
    for entry in (part.strip() for part in value.split(",")):
        bare = entry.partition("://")[2] or entry
        bare = bare.lower().strip("[]")
        if not bare:
            continue
        if bare == "*" or host == bare:
            return entry
        suffix = bare if bare.startswith(".") else "." + bare
        if bare.replace(".", "").isdigit() or ":" in bare or bare == "localhost":
            continue  # addresses and localhost are compared whole
        if host.endswith(suffix):
            return entry
    return ""


def choose(base: Base, configured: str | None, env: Mapping[str, str]) -> ProxyChoice:
    """The proxy that a request to ``base`` takes."""
    found = [
        (name, value)
        for name, value in (_variable(env, f"{base.scheme}_proxy"), _variable(env, "ALL_PROXY"))
        if value
    ]
    if configured:
        others = tuple(name for name, value in found if value != configured)
        return ProxyChoice(_with_scheme(configured), "proxy", ignored=others)
    if not found:
        return ProxyChoice()
    name, value = found[0]
    if entry := _bypass(base.host, env):
        return ProxyChoice("", name, bypassed=entry)
    return ProxyChoice(_with_scheme(value), name)


def _with_scheme(url: str) -> str:
    url = url.strip()
    return url if "://" in url else f"http://{url}"
