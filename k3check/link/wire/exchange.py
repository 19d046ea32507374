"""What one call to the endpoint yielded: plain frozen records, no network code.

Everything here is as received. Nothing of it may be shown before :mod:`k3check.link.wire.redact`
has seen it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class FailureKind(StrEnum):
    """Why there is no complete response."""

    DNS_NOT_FOUND = "dns-not-found"
    DNS_UNAVAILABLE = "dns-unavailable"
    REFUSED = "refused"
    CONNECT_TIMEOUT = "connect-timeout"
    UNREACHABLE = "unreachable"
    TLS_NOT_TLS = "tls-not-tls"
    TLS_SELF_SIGNED = "tls-self-signed"
    TLS_UNKNOWN_CA = "tls-unknown-ca"
    TLS_HOSTNAME = "tls-hostname"
    TLS_EXPIRED = "tls-expired"
    TLS_NOT_YET_VALID = "tls-not-yet-valid"
    TLS_CLOCK = "tls-clock"
    TLS_VERSION = "tls-version"
    TLS_CLIENT_CERTIFICATE = "tls-client-certificate"
    TLS_OTHER = "tls-other"
    CA_FILE = "ca-file"
    PROXY_SCHEME = "proxy-scheme"
    PROXY_SOCKS = "proxy-socks"
    PROXY_AUTH = "proxy-auth"
    PROXY_DENIED = "proxy-denied"
    CLOSED = "closed"
    RESET = "reset"
    BODY_CUT = "body-cut"
    READ_TIMEOUT = "read-timeout"
    WRITE_TIMEOUT = "write-timeout"
    DEADLINE = "deadline"
    HEADERS_TOO_LARGE = "headers-too-large"
    NOT_HTTP = "not-http"
    TLS_EXPECTED = "tls-expected"
    BAD_ENCODING = "bad-encoding"
    ENCODING_NOT_ASKED = "encoding-not-asked"
    ILLEGAL_HEADER = "illegal-header"
    BAD_URL = "bad-url"
    OTHER = "other"


class Stage(StrEnum):
    """How far a call got."""

    SETUP = "setup"
    CONNECT = "connect"
    TLS = "tls"
    SEND = "send"
    HEADERS = "headers"
    BODY = "body"
    DONE = "done"


class Ended(StrEnum):
    """Why reading the body stopped."""

    COMPLETE = "complete"
    BYTE_CAP = "byte-cap"
    LINE_CAP = "line-cap"
    EVENT_CAP = "event-cap"
    HELD_OPEN = "held-open"
    STALLED = "stalled"
    BROKEN = "broken"


@dataclass(frozen=True)
class Failure:
    """A call that brought no complete response.

    Attributes:
        kind: the cause as far as the exception tells it.
        stage: how far the call got.
        exception: the exception's class name.
        text: its message, unredacted.
        peer: ``host:port`` that failed: the endpoint or the proxy.
        at_proxy: the failing peer is the proxy.
        server_time: the server's clock in seconds since the epoch, where it was asked for.
    """

    kind: FailureKind
    stage: Stage
    exception: str
    text: str
    peer: str = ""
    at_proxy: bool = False
    server_time: float | None = None


@dataclass(frozen=True)
class Event:
    """One server-sent event: seconds since the request was sent, event name, data."""

    at: float
    name: str
    data: str


@dataclass(frozen=True)
class Call:
    """One request to send.

    Attributes:
        method, url: as sent.
        body: JSON document, None for a GET.
        stream: read the response as an event stream.
        authorized: send the key (only ever to the configured origin).
        auth: ``bearer``, ``x-api-key`` or ``both``.
        key: the key to send instead of the configured one (the negative probe's nonsense key).
        headers: further headers.
    """

    method: str
    url: str
    body: Mapping[str, Any] | None = None
    stream: bool = False
    authorized: bool = True
    auth: str = "bearer"
    key: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Attempt:
    """One try of a call, for the list of attempts in the report.

    Attributes:
        number: from 1.
        started_s: seconds since the probe began.
        duration_s: how long it took.
        status: HTTP status, None without a response.
        outcome: the failure's kind or the diagnosis's slug, ``ok`` for an answer.
        waited_s: seconds waited before it.
        request_id: the server's id of the request.
        at: when it was sent, in seconds since the epoch by our clock.
    """

    number: int
    started_s: float
    duration_s: float
    status: int | None
    outcome: str
    waited_s: float = 0.0
    request_id: str = ""
    at: float = 0.0


@dataclass(frozen=True)
class Exchange:
    """A call and what came back.

    Attributes:
        call: what was sent.
        status: HTTP status, None if no response line arrived.
        headers: names in lower case, as received; repeated ones joined with a comma.
        body: decoded bytes, at most the cap.
        ended: why reading stopped.
        done: the stream's ``[DONE]`` arrived.
        events: the stream's events where one was read.
        comments: number of comment lines in the stream (keep-alives).
        failure: set if no complete response came.
        times: seconds since the start by name: ``connect``, ``tls``, ``first_byte``, ``total``.
        proxy: the proxy used, without its password; empty for a direct connection.
        attempts: every try, the last one being this.
        give_up: why no further try was made although the last one could heal.
        wait_asked_s: the server's Retry-After in seconds, None without one.
        received_at: when the headers arrived, in seconds since the epoch by our clock.
    """

    call: Call
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    ended: Ended = Ended.COMPLETE
    done: bool = False
    events: tuple[Event, ...] = ()
    comments: int = 0
    failure: Failure | None = None
    times: Mapping[str, float] = field(default_factory=dict)
    proxy: str = ""
    attempts: tuple[Attempt, ...] = ()
    give_up: str = ""
    wait_asked_s: float | None = None
    received_at: float | None = None

    @property
    def media_type(self) -> str:
        """The content type without parameters, in lower case."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def request_id(self) -> str:
        """The server's id of the request, under any of its known names."""
        for name in REQUEST_ID_HEADERS:
            if value := self.headers.get(name):
                return value
        return ""

    @property
    def text(self) -> str:
        """The body as text; bytes that are no UTF-8 are replaced."""
        return self.body.decode("utf-8", "replace")


REQUEST_ID_HEADERS = (
    "msh-request-id",
    "x-request-id",
    "request-id",
    "x-oneapi-request-id",
    "x-litellm-call-id",
    "x-trace-id",
    "cf-ray",
)
