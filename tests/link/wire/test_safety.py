"""Hostile servers: bounded in time and memory, no key to strangers, no control of a terminal."""

from __future__ import annotations

import gzip
import json
import resource
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from k3check.link import check
from k3check.link.request import LinkRequest, Secret
from k3check.model import Report
from k3check.report.formats import Options, render
from k3check.report.listener import Silent
from tests.link import catalogue
from tests.link.catalogue import error
from tests.link.conftest import CANARY
from tests.link.faulty import Connection, FaultyServer, Request, answer, http, sse

if TYPE_CHECKING:
    from k3check.model import Finding

TIMEOUT_S = 1.0


def run(server: FaultyServer, **changes: Any) -> list[Finding]:
    fields = {
        "base_url": server.base_url,
        "api_key": Secret(CANARY),
        "model": "kimi-k3",
        "timeout_s": TIMEOUT_S,
        "max_retries": 0,
        "backoff_s": 0.01,
        "probes": ("chat",),
    }
    return check(LinkRequest(**{**fields, **changes}), Silent())


def flood(connection: Connection, request: Request) -> None:
    connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(2000):
        connection.send(b"10000\r\n" + b"{" * 65536 + b"\r\n")


def chunked_drip(connection: Connection, request: Request) -> None:
    connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(1000):
        connection.send(b"1\r\n{\r\n")
        connection.sleep(0.02)


def layers(connection: Connection, request: Request) -> None:
    data = gzip.compress(gzip.compress(b"a" * 100_000_000))
    connection.send(http(200, data, headers=(("Content-Encoding", "gzip, gzip"),)))


def waits_for_ever(connection: Connection, request: Request) -> None:
    connection.send(error(429, "slow", "x", headers=(("Retry-After", "1000000000"),)))


HOSTILE = {
    "endless chunked body": flood,
    "chunked drip": chunked_drip,
    "bomb in a bomb": layers,
    "Retry-After of 31 years": waits_for_ever,
    "bomb": catalogue.bomb,
    "endless body": catalogue.endless,
    "header drip": catalogue.header_drip,
    "informational flood": catalogue.informational_flood,
    "huge header": catalogue.many_headers,
    "silence": catalogue.silent,
    "100000 choices": http(200, {"choices": answer()["choices"] * 100_000}),
    "100000 levels": http(200, '{"choices":' + "[" * 100_000),
    "digits": http(200, '{"usage": {"prompt_tokens": ' + "9" * 100_000 + "}}"),
    "huge numbers": http(200, answer(usage={"prompt_tokens": 10**300, "completion_tokens": 1e308})),
    "wrong types": http(200, answer(usage=[1], model={"a": 1}, id=3, created="x")),
    "content of numbers": http(200, answer(message={"content": 5, "tool_calls": [None, 3]})),
    "negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{}",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 9\r\n\r\n{}",
    "status 99": b"HTTP/1.1 099 Odd\r\nContent-Length: 2\r\n\r\n{}",
    "status 999": b"HTTP/1.1 999 Odd\r\nContent-Length: 2\r\n\r\n{}",
    "redirect to nonsense": http(302, "", headers=(("Location", "http://[::1"),)),
    "cookie": http(200, answer(), headers=(("Set-Cookie", "session=abc; Path=/"),)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_servers_end_within_the_deadline(name: str) -> None:
    with FaultyServer([HOSTILE[name]]) as server:
        begun = time.monotonic()
        findings = run(server)
        took = time.monotonic() - begun
    assert took < TIMEOUT_S + 2.0
    assert [f.id for f in findings] == ["link/lint", "link/chat"]
    assert findings[1].outcome.value in ("fail", "acceptable", "pass")


def test_memory_stays_bounded() -> None:
    """Peak memory of this process grows by less than 200 MB over all of them."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name in ("endless chunked body", "bomb", "bomb in a bomb", "endless body"):
        with FaultyServer([HOSTILE[name]]) as server:
            run(server)
    with FaultyServer([catalogue.endless_line]) as server:
        run(server, probes=("stream",))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 200 * 1024  # kilobytes on Linux; on macOS bytes, where this is only stricter


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(status: int) -> None:
    with FaultyServer([http(200, answer())]) as stranger:
        location = f"http://127.0.0.1:{stranger.port}/v1/chat/completions"
        moved = http(status, "", headers=(("Location", location),))
        with FaultyServer([moved]) as server:
            for auth in ("bearer", "x-api-key"):
                run(server, auth=auth)
        assert stranger.requests == []


def test_no_cookie_comes_back() -> None:
    bad = error(500, "oops", "x", headers=(("Set-Cookie", "session=abc; Path=/"),))
    with FaultyServer([bad]) as server:
        run(server, max_retries=2)
        assert len(server.requests) == 3
        assert all("cookie" not in r.headers for r in server.requests)


def test_variables_of_this_process_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what the request names counts: no proxy, no .netrc, no certificate from outside."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
    with FaultyServer([http(200, answer())]) as server:
        run(server)
        assert len(server.requests) == 1
        assert server.requests[0].headers["authorization"] == f"Bearer {CANARY}"


NASTY = "\x1b]52;c;ZXZpbA==\x07\x1b[2J[bold red]\u202eevil\u2066 \ud800 [link=http://evil]x[/link]\x9b1m"


@pytest.mark.parametrize(
    "script",
    [
        error(400, NASTY, NASTY),
        http(200, answer(model=NASTY, message={"content": NASTY})),
        http(404, f"<html><title>{NASTY}</title></html>", "text/html"),
        http(401, {"error": NASTY + CANARY}),
        sse({"error": {"message": NASTY}}),
    ],
)
@pytest.mark.parametrize("format_", ["text", "json", "markdown", "github", "html", "junit"])
def test_nothing_drives_a_terminal(script: bytes, format_: str) -> None:
    with FaultyServer([script]) as server:
        findings = run(server)
    text = json.dumps([asdict(f) for f in findings], default=str, ensure_ascii=False)
    shown = render(format_, Report(findings, "2026-01-01T00:00:00Z", 0.0), Options())
    for where in (text, shown):
        for bad in ("\x1b", "\x9b", "\u202e", "\u2066", "\x07", "\ud800", "[bold", "[link", CANARY):
            assert bad not in where, (bad, where)


def test_server_text_in_findings_is_short() -> None:
    with FaultyServer([error(400, "a" * 50_000, "x")]) as server:
        findings = run(server)
    assert len(findings[1].evidence["excerpt"]) <= 200
    assert len(findings[1].diagnoses[0].values["message"]) <= 200


def test_the_package_names_no_insecure_switch() -> None:
    """Verification cannot be switched off: no such option exists to be left on."""
    folder = Path(__file__).parents[3] / "k3check" / "link"
    for file in folder.rglob("*.py"):
        text = file.read_text("utf-8")
        assert "verify=False" not in text
        assert "CERT_NONE" not in text
        assert "follow_redirects=True" not in text
