"""Rows for requests without a complete response: names, connections, proxies, TLS, the wire.

Source: section D2 of the link specification.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from k3check.link.diagnosis.row import Heals, Level, Phase, Row, Tier
from k3check.link.wire.exchange import Ended, FailureKind, Stage
from k3check.model import Confidence

if TYPE_CHECKING:
    from collections.abc import Callable

    from k3check.link.diagnosis.observation import Observation
    from k3check.link.diagnosis.row import Found

K = FailureKind


def kind(*kinds: FailureKind) -> Callable[[Observation], bool]:
    """The failure is of one of the kinds, at the endpoint itself."""

    def when(seen: Observation) -> bool:
        failure = seen.exchange.failure
        return failure is not None and failure.kind in kinds and not failure.at_proxy

    return when


def _failed(seen: Observation) -> bool:
    return seen.exchange.failure is not None


def _dead_proxy(seen: Observation) -> Found:
    failure = seen.exchange.failure
    if failure is None or not failure.at_proxy:
        return None
    dead = (K.REFUSED, K.CONNECT_TIMEOUT, K.DNS_NOT_FOUND, K.DNS_UNAVAILABLE, K.UNREACHABLE,
            K.DEADLINE, K.CLOSED, K.RESET)  # fmt: skip
    if failure.kind not in dead:
        return None
    return {"how": failure.kind.value.replace("-", " ")}


def _dead_env(seen: Observation) -> Found:
    found = _dead_proxy(seen)
    return found if seen.proxy.source != "proxy" else None


def _dead_config(seen: Observation) -> Found:
    found = _dead_proxy(seen)
    return found if seen.proxy.source == "proxy" else None


def _at_proxy(*kinds: FailureKind) -> Callable[[Observation], bool]:
    def when(seen: Observation) -> bool:
        failure = seen.exchange.failure
        return failure is not None and failure.kind in kinds and failure.at_proxy

    return when


def _refused(*, local: bool) -> Callable[[Observation], bool]:
    def when(seen: Observation) -> bool:
        return kind(K.REFUSED)(seen) and seen.base.loopback is local

    return when


def _first_byte(seen: Observation) -> bool:
    """No response line within the time."""
    failure = seen.exchange.failure
    waiting = (Stage.SEND, Stage.HEADERS, Stage.TLS, Stage.CONNECT, Stage.SETUP)
    return (
        failure is not None
        and failure.kind in (K.READ_TIMEOUT, K.DEADLINE)
        and failure.stage in waiting
        and not failure.at_proxy
    )


def _late_body(seen: Observation) -> bool:
    failure = seen.exchange.failure
    return (
        failure is not None
        and failure.kind in (K.READ_TIMEOUT, K.DEADLINE)
        and failure.stage is Stage.BODY
    )


def late_stream(seen: Observation) -> bool:
    """A stream that began and did not end in time, whatever came of it: the stream's rows' case."""
    return _late_body(seen) and seen.streamed and seen.status is not None and seen.status < 300


def _slow_body(seen: Observation) -> bool:
    return _late_body(seen) and not late_stream(seen)


def _cut_body(seen: Observation) -> bool:
    """The connection ended inside a body that was no stream."""
    failure = seen.exchange.failure
    return (
        failure is not None
        and failure.kind in (K.BODY_CUT, K.RESET, K.CLOSED)
        and failure.stage is Stage.BODY
        and not seen.exchange.events
    )


def _reset(seen: Observation) -> bool:
    failure = seen.exchange.failure
    return kind(K.RESET)(seen) and failure is not None and failure.stage is not Stage.BODY


def _closed(seen: Observation) -> bool:
    failure = seen.exchange.failure
    return kind(K.CLOSED)(seen) and failure is not None and failure.stage is not Stage.BODY


def _bomb(seen: Observation) -> bool:
    return seen.exchange.ended is Ended.BYTE_CAP and bool(
        seen.exchange.headers.get("content-encoding")
    )


def _endless(seen: Observation) -> bool:
    return (
        seen.exchange.ended is Ended.BYTE_CAP
        and not seen.exchange.headers.get("content-encoding")
        and seen.ok
    )


def _clock(seen: Observation) -> Found:
    """A certificate that is valid by the server's clock and not by ours."""
    if not kind(K.TLS_CLOCK)(seen) or seen.server_time is None:
        return None
    from k3check.link.wire.clock import shown

    return {"ours": shown(time.time()), "theirs": shown(seen.server_time)}


def _row(
    code: str,
    slug: str,
    phase: Phase,
    when: Callable[[Observation], Found],
    rows: tuple[int, ...],
    *,
    tier: Tier = Tier.BODY,
    confidence: Confidence = Confidence.HIGH,
    heals: Heals = Heals.NEVER,
) -> Row:
    return Row(code, slug, phase, tier, when, confidence, Level.FAIL, heals, rows)


_MEDIUM = Confidence.MEDIUM

ROWS = (
    _row("K3L-100", "dns.not-found", Phase.NAME, kind(K.DNS_NOT_FOUND), (39,)),
    _row("K3L-101", "dns.unavailable", Phase.NAME, kind(K.DNS_UNAVAILABLE), (40,),
         heals=Heals.RETRY),
    _row("K3L-015", "url.bad-host", Phase.NAME, kind(K.BAD_URL), (18,)),
    _row("K3L-103", "connect.refused-local", Phase.CONNECT, _refused(local=True), (41,)),
    _row("K3L-102", "connect.refused", Phase.CONNECT, _refused(local=False), (41,)),
    _row("K3L-104", "connect.timeout", Phase.CONNECT, kind(K.CONNECT_TIMEOUT), (42,),
         heals=Heals.RETRY),
    _row("K3L-105", "connect.unreachable", Phase.CONNECT, kind(K.UNREACHABLE), (43,)),
    _row("K3L-110", "proxy.dead-env", Phase.PROXY, _dead_env, (52,)),
    _row("K3L-111", "proxy.dead-config", Phase.PROXY, _dead_config, (52,)),
    _row("K3L-112", "proxy.auth", Phase.PROXY, _at_proxy(K.PROXY_AUTH), (53,)),
    _row("K3L-113", "proxy.refuses-connect", Phase.PROXY, _at_proxy(K.PROXY_DENIED), (53,)),
    _row("K3L-060", "proxy.scheme-unknown", Phase.PROXY, _at_proxy(K.PROXY_SCHEME), (54,)),
    _row("K3L-061", "proxy.socks-missing", Phase.PROXY, _at_proxy(K.PROXY_SOCKS), (55,)),
    _row("K3L-120", "tls.plain-http-port", Phase.TLS, kind(K.TLS_NOT_TLS), (44,)),
    _row("K3L-121", "tls.http-to-tls-port", Phase.TLS, kind(K.TLS_EXPECTED), (44,)),
    _row("K3L-122", "tls.self-signed", Phase.TLS, kind(K.TLS_SELF_SIGNED), (46,)),
    _row("K3L-123", "tls.unknown-ca", Phase.TLS, kind(K.TLS_UNKNOWN_CA), (46,)),
    _row("K3L-124", "tls.host-mismatch", Phase.TLS, kind(K.TLS_HOSTNAME), (47,)),
    _row("K3L-125", "tls.expired", Phase.TLS, kind(K.TLS_EXPIRED), (48,)),
    _row("K3L-126", "tls.not-yet-valid", Phase.TLS, kind(K.TLS_NOT_YET_VALID), (49,)),
    _row("K3L-133", "tls.clock", Phase.TLS, _clock, (49,), confidence=_MEDIUM),
    _row("K3L-127", "tls.version", Phase.TLS, kind(K.TLS_VERSION), (50,)),
    _row("K3L-128", "tls.client-certificate", Phase.TLS, kind(K.TLS_CLIENT_CERTIFICATE), (51,)),
    _row("K3L-131", "tls.ca-file", Phase.TLS, kind(K.CA_FILE), (46,)),
    _row("K3L-129", "tls.other", Phase.TLS, kind(K.TLS_OTHER), (50,), tier=Tier.REST,
         confidence=_MEDIUM),
    _row("K3L-152", "key.illegal-header", Phase.WIRE, kind(K.ILLEGAL_HEADER), (20, 21)),
    _row("K3L-140", "wire.closed-without-answer", Phase.WIRE, _closed, (59,),
         confidence=_MEDIUM, heals=Heals.RETRY),
    _row("K3L-141", "wire.reset", Phase.WIRE, _reset, (60,), confidence=_MEDIUM,
         heals=Heals.RETRY),
    _row("K3L-142", "wire.body-cut", Phase.WIRE, _cut_body, (60, 61), heals=Heals.RETRY),
    _row("K3L-143", "time.no-answer", Phase.WIRE, _first_byte, (42, 63), confidence=_MEDIUM,
         heals=Heals.RETRY),
    _row("K3L-144", "time.slow-body", Phase.WIRE, _slow_body, (63,)),
    _row("K3L-145", "wire.headers-too-large", Phase.WIRE, kind(K.HEADERS_TOO_LARGE), (64, 177)),
    _row("K3L-146", "wire.bad-gzip", Phase.WIRE, kind(K.BAD_ENCODING), (65,)),
    _row("K3L-147", "wire.encoding-not-asked", Phase.WIRE, kind(K.ENCODING_NOT_ASKED), (66,)),
    _row("K3L-148", "wire.bomb", Phase.WIRE, _bomb, (67, 174)),
    _row("K3L-150", "wire.endless-body", Phase.WIRE, _endless, (174,)),
    _row("K3L-149", "wire.not-http", Phase.WIRE, kind(K.NOT_HTTP), (59,)),
    _row("K3L-151", "time.write", Phase.WIRE, kind(K.WRITE_TIMEOUT), (42,), heals=Heals.RETRY),
    _row("K3L-153", "wire.other", Phase.WIRE,
         lambda seen: _failed(seen) and not seen.exchange.events and not late_stream(seen), (),
         tier=Tier.REST, confidence=Confidence.LOW),
)  # fmt: skip
