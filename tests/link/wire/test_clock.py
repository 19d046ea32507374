"""This machine's clock against the server's header Date."""

from __future__ import annotations

import ssl
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

import pytest

from k3check import hints
from k3check.link import check
from k3check.link.request import LinkRequest, Secret
from k3check.link.wire import clock
from k3check.link.wire.exchange import Failure, FailureKind, Stage
from k3check.link.wire.urls import Base
from k3check.model import Finding, Message, Outcome
from k3check.report.listener import Silent
from tests.link.catalogue import DONE, END, ROLE, TEXT, THINK
from tests.link.conftest import CANARY
from tests.link.faulty import FaultyServer, answer, http, sse

if TYPE_CHECKING:
    from pathlib import Path


def dated(offset_s: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=offset_s), usegmt=True)


def test_the_date_of_a_response_is_its_servers_time() -> None:
    # The date of RFC 9110's own example.
    assert clock.server_time({"date": "Sun, 06 Nov 1994 08:49:37 GMT"}) == 784_111_777.0
    assert clock.server_time({"date": "Sun, 06 Nov 1994 08:49:37 GMT", "age": "60"}) == 784_111_837
    assert clock.shown(784_111_777.0) == "1994-11-06 08:49:37 UTC"


@pytest.mark.parametrize(
    "headers",
    [{}, {"date": ""}, {"date": "yesterday"}, {"date": "x" * 10_000}, {"date": "99 99 99"},
     {"date": "Sun, 06 Nov 99999 08:49:37 GMT"}],
)  # fmt: skip
def test_a_date_that_is_none_says_nothing(headers: dict[str, str]) -> None:
    assert clock.server_time(headers) is None


@pytest.mark.parametrize("age", ["-1", "x", "", "1" * 40, "\u0661"])
def test_an_age_that_is_none_is_left_out(age: str) -> None:
    assert clock.server_time({"date": "Sun, 06 Nov 1994 08:49:37 GMT", "age": age}) == 784_111_777


def run(offset_s: float, **changes: Any) -> dict[str, Finding]:
    date = dated(offset_s)
    stream = sse(ROLE, THINK, TEXT, END, DONE).replace(
        b"Connection: close", b"Connection: close\r\nDate: " + date.encode()
    )
    scripts = [http(200, answer(), headers=(("Date", date),)), stream]
    with FaultyServer(scripts) as server:
        request = LinkRequest(server.base_url, Secret(CANARY), "kimi-k3", probes=("chat", "stream"),
                              max_retries=0, timeout_s=5.0, **changes)  # fmt: skip
        return {f.id: f for f in check(request, Silent())}


def notes(finding: Finding) -> list[Message]:
    return [note for note in finding.notes if note.code == "K3L-916"]


@pytest.mark.parametrize("offset_s", [-7200.0, 7200.0])
def test_a_wrong_clock_is_noted_once_where_nothing_fails_by_it(offset_s: float) -> None:
    found = run(offset_s)
    (note,) = notes(found["link/chat"])
    assert notes(found["link/stream"]) == []
    assert found["link/chat"].outcome is Outcome.ACCEPTABLE  # a canned answer, no failure
    theirs = clock.shown(time.time() + offset_s)[:13]
    assert theirs in hints.title("K3L-916", "en", note.values)


@pytest.mark.parametrize("offset_s", [0.0, 120.0, -120.0])
def test_a_clock_that_is_nearly_right_is_not_noted(offset_s: float) -> None:
    assert notes(run(offset_s)["link/chat"]) == []


EXPIRED = Failure(FailureKind.TLS_EXPIRED, Stage.TLS, "SSLError", "expired")


def server_of(folder: Path, name: str, *, trusted: bool) -> tuple[FaultyServer, LinkRequest]:
    """A server whose certificate ran out yesterday, and whose clock stands two days ago."""
    trustme = pytest.importorskip("trustme", reason="makes the certificates")
    made, ca, now = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), trustme.CA(), datetime.now(UTC)
    ca.issue_cert(
        name, not_before=now - timedelta(days=9), not_after=now - timedelta(days=1)
    ).configure_cert(made)
    ca.cert_pem.write_to_path(str(folder / "ca.pem"))
    script = http(200, "", headers=(("Date", dated(-2 * 86_400)),))
    server = FaultyServer([script], tls=made)
    file = str(folder / "ca.pem") if trusted else None
    return server, LinkRequest(server.base_url, Secret(CANARY), "kimi-k3", ca_file=file)


def test_the_time_is_asked_for_without_the_key(tmp_path: Path) -> None:
    server, request = server_of(tmp_path, "127.0.0.1", trusted=True)
    with server:
        found = clock.refined(EXPIRED, Base(server.base_url), request)
        (got,) = server.requests
    assert found.kind is FailureKind.TLS_CLOCK
    assert (got.method, got.target) == ("HEAD", "/")
    assert set(got.headers) == {"host", "connection"}


@pytest.mark.parametrize(("name", "trusted"), [("127.0.0.1", False), ("gateway.test", True)])
def test_the_time_of_somebody_else_counts_for_nothing(
    name: str, trusted: bool, tmp_path: Path
) -> None:
    server, request = server_of(tmp_path, name, trusted=trusted)
    with server:
        assert clock.refined(EXPIRED, Base(server.base_url), request) is EXPIRED
        assert server.requests == []


def test_other_failures_ask_for_no_time() -> None:
    other = Failure(FailureKind.TLS_SELF_SIGNED, Stage.TLS, "SSLError", "")
    with FaultyServer([b""]) as server:
        base = Base(server.base_url)
        assert clock.refined(other, base, LinkRequest(server.base_url)) is other
        assert server.requests == []


def test_the_transport_probe_tells_the_clock(tmp_path: Path) -> None:
    server, request = server_of(tmp_path, "127.0.0.1", trusted=True)
    with server:
        found = {f.id: f for f in check(replace(request, probes=("transport",)), Silent())}
    assert [d.code for d in found["link/transport"].diagnoses] == ["K3L-133"]
