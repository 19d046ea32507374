"""From an exception to the kind of failure: what an operating system or a TLS library says.

Source: section D2 of the link specification, measured with httpx 0.28 and OpenSSL 3.
"""

from __future__ import annotations

import errno
import socket
import ssl
from typing import TYPE_CHECKING

from k3check.link.wire.exchange import Failure, FailureKind, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

K = FailureKind

# X509_V_ERR_* of OpenSSL.
_VERIFY_CODES = {
    9: K.TLS_NOT_YET_VALID,
    10: K.TLS_EXPIRED,
    18: K.TLS_SELF_SIGNED,
    19: K.TLS_UNKNOWN_CA,  # a self-signed root at the end of the chain: a private authority
    20: K.TLS_UNKNOWN_CA,
    21: K.TLS_UNKNOWN_CA,
    62: K.TLS_HOSTNAME,
    64: K.TLS_HOSTNAME,
}
_TLS_REASONS = (
    (("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG",
      "UNEXPECTED_MESSAGE"), K.TLS_NOT_TLS),
    (("PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL", "HANDSHAKE_FAILURE", "NO_SHARED_CIPHER",
      "NO_PROTOCOLS_AVAILABLE", "VERSION_TOO_LOW"), K.TLS_VERSION),
    (("CERTIFICATE_REQUIRED",), K.TLS_CLIENT_CERTIFICATE),
    (("CERTIFICATE_EXPIRED",), K.TLS_EXPIRED),
    (("CERTIFICATE_VERIFY_FAILED", "UNKNOWN_CA"), K.TLS_UNKNOWN_CA),
)  # fmt: skip
_UNREACHABLE = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL, errno.ENETDOWN)
_RESET = (errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception and its causes, outermost first."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def os_kind(error: BaseException) -> FailureKind | None:
    """The kind by the operating system's or the TLS library's own error; None if it is neither."""
    if isinstance(error, socket.gaierror):
        unavailable = (socket.EAI_AGAIN, getattr(socket, "EAI_FAIL", None))
        return K.DNS_UNAVAILABLE if error.errno in unavailable else K.DNS_NOT_FOUND
    if isinstance(error, UnicodeError):
        return K.BAD_URL  # a label that no host name may have (idna)
    if isinstance(error, ssl.SSLCertVerificationError):
        return _VERIFY_CODES.get(error.verify_code, K.TLS_OTHER)
    if isinstance(error, ssl.SSLError):
        reason = (error.reason or str(error)).upper().replace(" ", "_")
        for words, kind in _TLS_REASONS:
            if any(word in reason for word in words):
                return kind
        return K.TLS_OTHER
    if isinstance(error, ConnectionRefusedError):
        return K.REFUSED
    if isinstance(error, OSError) and error.errno in _UNREACHABLE:
        return K.UNREACHABLE
    if isinstance(error, OSError) and error.errno in _RESET:
        return K.RESET
    return None


_PROTOCOL_WORDS = (
    ("without sending a response", K.CLOSED),
    ("receive buffer too long", K.HEADERS_TOO_LARGE),
    ("closed connection without sending complete message body", K.BODY_CUT),
    ("incomplete chunked read", K.BODY_CUT),
    ("illegal header value", K.ILLEGAL_HEADER),
    ("illegal header name", K.ILLEGAL_HEADER),
    (r"\x15\x03", K.TLS_EXPECTED),  # a TLS alert where a status line belongs
    ("illegal status line", K.NOT_HTTP),
    ("illegal request line", K.NOT_HTTP),  # h11's word for a response that starts with a control
    ("illegal header line", K.NOT_HTTP),
    ("illegal chunk header", K.NOT_HTTP),
)


def explain(
    error: BaseException, stage: Stage, peer: str = "", *, at_proxy: bool = False
) -> Failure:
    """The failure behind an exception of httpx, or of building its client.

    Args:
        error: what was raised.
        stage: how far the call had got.
        peer: ``host:port`` that the call was talking to.
        at_proxy: that peer is the proxy.
    """
    # httpx is loaded by then: whoever calls this has caught one of its exceptions.
    import httpx

    chain = list(_chain(error))
    text = str(error)
    name = type(error).__name__

    def failure(kind: FailureKind, *, proxy: bool = at_proxy) -> Failure:
        return Failure(kind, stage, name, text, peer, proxy)

    if isinstance(error, httpx.ProxyError):
        auth = "407" in text or "authentication" in text.lower()
        return failure(K.PROXY_AUTH if auth else K.PROXY_DENIED, proxy=True)
    if isinstance(error, (httpx.UnsupportedProtocol, httpx.InvalidURL)):
        return failure(K.BAD_URL)
    if isinstance(error, httpx.DecodingError):
        return failure(K.BAD_ENCODING)
    if isinstance(error, httpx.ConnectTimeout):
        tls = stage is Stage.TLS
        return failure(K.READ_TIMEOUT if tls else K.CONNECT_TIMEOUT)
    if isinstance(error, (httpx.ReadTimeout, httpx.PoolTimeout)):
        return failure(K.READ_TIMEOUT)
    if isinstance(error, httpx.WriteTimeout):
        return failure(K.WRITE_TIMEOUT)
    if stage is Stage.SETUP and isinstance(error, ImportError):
        return failure(K.PROXY_SOCKS, proxy=True)
    if stage is Stage.SETUP and isinstance(error, ValueError) and "proxy" in text.lower():
        return failure(K.PROXY_SCHEME, proxy=True)
    if stage is Stage.SETUP and isinstance(error, (OSError, ssl.SSLError)):
        return failure(K.CA_FILE)
    lowered = text.lower()
    if isinstance(error, (httpx.ProtocolError, ValueError)):
        for words, kind in _PROTOCOL_WORDS:
            if words in lowered:
                return failure(kind)
    for link in chain:
        found = os_kind(link)
        if found is not None:
            return failure(found)
    if isinstance(error, httpx.ReadError):
        return failure(K.RESET)
    if isinstance(error, httpx.ConnectError) and stage is Stage.TLS:
        return failure(K.TLS_OTHER)
    return failure(K.OTHER)
