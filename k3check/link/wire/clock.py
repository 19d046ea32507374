"""This machine's clock against the server's.

A clock that is wrong makes certificates look expired and signed keys look forged; the header Date
tells it. Source: section D2 (49) of the link specification.
"""

from __future__ import annotations

import re
import socket
import ssl
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from k3check.link.wire.exchange import FailureKind
from k3check.link.wire.proxies import ProxyChoice
from k3check.link.wire.tls import tls_context

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.link.request import LinkRequest
    from k3check.link.wire.exchange import Failure
    from k3check.link.wire.urls import Base

# Signed keys usually live for minutes, and whoever checks them allows for about one.
SIGNATURE_S = 90.0
_PEEK_S = 3.0
_HEAD_BYTES = 16 * 1024
# X509_V_FLAG_NO_CHECK_TIME of OpenSSL, which the module ssl has no name for.
_NO_CHECK_TIME = 0x200000
_DATE = re.compile(rb"\r\ndate:[ \t]*([^\r\n]{1,60})", re.IGNORECASE)
_AGE = re.compile(r"[0-9]{1,9}")


def server_time(headers: Mapping[str, str]) -> float | None:
    """When a response was made by its server's clock; None if it does not say."""
    text = headers.get("date", "")
    if not text:
        return None
    from email.utils import parsedate_to_datetime

    try:
        made = parsedate_to_datetime(text[:60]).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
    # A cache keeps the date of the answer that it repeats.
    age = headers.get("age", "").strip()
    return made + int(age) if _AGE.fullmatch(age) else made


def shown(seconds: float) -> str:
    """A point in time for messages."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))
    except (OverflowError, OSError, ValueError):
        return "unreadable"


def refined(failure: Failure, base: Base, request: LinkRequest) -> Failure:
    """The same failure, or the clock's, if a certificate is refused only by our clock.

    The server is asked for its date without the key. Its certificate must be right in all but its
    time, so that nobody else can answer.
    """
    kinds = (FailureKind.TLS_EXPIRED, FailureKind.TLS_NOT_YET_VALID)
    if failure.kind not in kinds or failure.at_proxy:
        return failure
    try:
        since, until, theirs = _peek(base, request)
    except (OSError, ValueError):
        return failure
    if theirs is None or not since <= theirs <= until:
        return failure
    return replace(failure, kind=FailureKind.TLS_CLOCK, server_time=theirs)


def _peek(base: Base, request: LinkRequest) -> tuple[float, float, float | None]:
    """From when to when a server's certificate is valid, and the server's time.

    Raises:
        OSError: it cannot be reached, speaks no TLS, or its certificate is wrong in another way.
        ValueError: its certificate's times cannot be read.
    """
    context = tls_context(request, "https", ProxyChoice())
    context.verify_flags |= _NO_CHECK_TIME
    end = time.monotonic() + _PEEK_S
    address = (base.host, base.port or 443)
    head = b""
    with (
        socket.create_connection(address, timeout=_PEEK_S) as plain,
        context.wrap_socket(plain, server_hostname=base.host) as sock,
    ):
        certificate = sock.getpeercert() or {}
        host = f"[{base.host}]" if ":" in base.host else base.host
        sock.sendall(f"HEAD / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        while b"\r\n\r\n" not in head and len(head) < _HEAD_BYTES and time.monotonic() < end:
            data = sock.recv(4096)
            if not data:
                break
            head += data
    since, until = (
        ssl.cert_time_to_seconds(str(certificate.get(name))) for name in ("notBefore", "notAfter")
    )
    found = _DATE.search(head.partition(b"\r\n\r\n")[0])
    date = found.group(1).decode("latin-1") if found else ""
    return since, until, server_time({"date": date})
