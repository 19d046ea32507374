"""What a failed call alone does not tell, asked once more without the key."""

from __future__ import annotations

import socket
from dataclasses import replace
from typing import TYPE_CHECKING

from k3check.link.wire.exchange import FailureKind

if TYPE_CHECKING:
    from k3check.link.request import LinkRequest
    from k3check.link.wire.exchange import Failure
    from k3check.link.wire.proxies import ProxyChoice
    from k3check.link.wire.urls import Base

_SNIFF_S = 1.0
_TIMES = (FailureKind.TLS_EXPIRED, FailureKind.TLS_NOT_YET_VALID)
_SILENT = (FailureKind.CLOSED, FailureKind.NOT_HTTP)
# What may stand for a port whose server speaks first, as those of SSH, mail and FTP do.
_GREETED = (*_SILENT, FailureKind.RESET, FailureKind.TLS_NOT_TLS, FailureKind.TLS_OTHER)
_GREETING_S = 0.3
_TRIES = 3


def refined(failure: Failure, request: LinkRequest, base: Base, proxy: ProxyChoice) -> Failure:
    """A failure, told apart further where that needs another look at the port.

    Behind a proxy nothing is asked: the server is not to be reached past it.
    """
    if proxy.url:
        return failure
    if failure.kind in _TIMES:
        from k3check.link.wire import clock

        return clock.refined(failure, base, request)
    if failure.kind in _GREETED and _greeting(base):
        return replace(failure, kind=FailureKind.NOT_HTTP)
    if failure.kind in _SILENT and base.scheme == "http":
        kind = _spoken(base)
        return replace(failure, kind=kind) if kind else failure
    return failure


def _greeting(base: Base) -> bool:
    """The server speaks before it is asked: no HTTP server and no TLS server does."""
    default = 443 if base.scheme == "https" else 80
    return any(_first_bytes(base.host, base.port or default) for _ in range(_TRIES))


def _first_bytes(host: str, port: int) -> bool:
    """Bytes came unasked, and not those of HTTP.

    Some servers reset the connection at once; what they said before waits to be read all the same.
    """
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, proto) as sock:
            sock.settimeout(_GREETING_S)
            sock.connect_ex(address)
            first = sock.recv(64)
    except OSError:
        return False
    return bool(first) and not first.startswith(b"HTTP/")


def _spoken(base: Base) -> FailureKind | None:
    """What a port that closed without a response speaks instead of HTTP, if it tells.

    h11 drops the bytes of what is no response, a TLS alert for instance; so the port is asked once
    more, and its first bytes are looked at.
    """
    try:
        address = (base.host, base.port or 80)
        with socket.create_connection(address, timeout=_SNIFF_S) as sock:
            sock.sendall(b"GET / HTTP/1.0\r\n\r\n")
            first = sock.recv(64)
    except OSError:
        return None
    if first.startswith((b"\x15\x03", b"\x16\x03")):
        return FailureKind.TLS_EXPECTED
    return FailureKind.NOT_HTTP if first and not first.startswith(b"HTTP/") else None
