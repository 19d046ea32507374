"""The way to an endpoint, step by step."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest

from k3check.link import check
from k3check.link.request import LinkRequest, Secret, relevant_env
from k3check.link.wire.proxies import choose
from k3check.link.wire.urls import Base
from k3check.report.listener import Silent
from tests.link.conditions import Bench, closed_port, tls
from tests.link.conftest import CANARY
from tests.link.faulty import Connection, FaultyServer, Request, answer, http

if TYPE_CHECKING:
    from pathlib import Path

    from k3check.model import Finding


def run(**fields: Any) -> Finding:
    made = LinkRequest(
        **{"api_key": Secret(CANARY), "model": "kimi-k3", "timeout_s": 2.0, **fields},
        probes=("transport",),
    )
    return check(made, Silent())[1]


def codes(finding: Finding) -> list[str]:
    return [d.code for d in finding.diagnoses] + [n.code for n in finding.notes]


def test_plain() -> None:
    with FaultyServer([b""]) as server:
        found = run(base_url=server.base_url)
        assert server.requests == []
    assert codes(found) == []
    assert found.metrics["dns_seconds"] >= 0
    assert found.metrics["tcp_seconds"] >= 0
    assert "tls_seconds" not in found.metrics


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, []),
        ({"until": 5}, ["K3L-132"]),
        ({"name": "gateway.test"}, ["K3L-124"]),
        ({"until": -1}, ["K3L-125"]),
        ({"trusted": False}, ["K3L-123"]),
    ],
)
def test_tls(
    fields: dict[str, Any], expected: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("trustme", reason="makes the certificates")
    bench = Bench(monkeypatch, tmp_path, {})
    with tls(**fields)(bench) as made:
        found = run(**made, env=bench.env)
    assert codes(found) == expected
    if not found.diagnoses:
        assert found.metrics["tls_seconds"] > 0
        assert found.evidence["tls"].startswith("TLSv1")


def test_dead_proxy_names_its_variable_and_tries_directly() -> None:
    with FaultyServer([b""]) as server, closed_port() as port:
        found = run(
            base_url=server.base_url,
            env={"HTTP_PROXY": f"http://user:hunter22@127.0.0.1:{port}"},
        )
    assert codes(found) == ["K3L-110", "K3L-909", "K3L-910"]
    assert found.diagnoses[0].values["proxy_source"] == "HTTP_PROXY"
    assert found.notes[1].values["result"] == "works"
    assert "hunter22" not in str(found)


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (http("407 Proxy Authentication Required", ""), "K3L-112"),
        (http("403 Forbidden", ""), "K3L-113"),
        (b"nonsense\r\n\r\n", "K3L-113"),
        (b"", "K3L-110"),
    ],
)
def test_proxies_that_do_not_let_through(response: bytes, expected: str) -> None:
    with FaultyServer([response]) as server:
        env = {"HTTPS_PROXY": f"http://127.0.0.1:{server.port}"}
        found = run(base_url="https://gateway.test/v1", env=env)
    assert codes(found)[0] == expected


def test_proxy_password_is_sent_to_the_proxy_only() -> None:
    def tunnel(connection: Connection, request: Request) -> None:
        connection.send(http("407 Proxy Authentication Required", ""))

    with FaultyServer([tunnel]) as server:
        env = {"HTTPS_PROXY": f"http://me:p%40ss@127.0.0.1:{server.port}"}
        run(base_url="https://gateway.test/v1", env=env)
        got = server.requests[0]
    assert got.method == "CONNECT"
    assert got.target == "gateway.test:443"
    assert got.headers["proxy-authorization"] == "Basic bWU6cEBzcw=="  # me:p@ss
    assert CANARY not in str(got)


def test_second_address_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultyServer([http(200, answer())]) as server:
        real = socket.getaddrinfo("127.0.0.1", server.port, type=socket.SOCK_STREAM)
        with closed_port() as port:
            dead = socket.getaddrinfo("127.0.0.1", port, type=socket.SOCK_STREAM)
            monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: [*dead, *real])
            found = run(base_url=server.base_url)
    assert codes(found) == ["K3L-106"]


def test_a_resolver_that_hangs_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    gate = threading.Event()

    def hang(*args: object, **kwargs: object) -> None:
        gate.wait(5)
        raise socket.gaierror(socket.EAI_AGAIN, "late")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    try:
        found = run(base_url="http://gateway.test/v1", timeout_s=0.3)
        assert codes(found) == ["K3L-101"]
    finally:
        gate.set()


@pytest.mark.parametrize(
    ("url", "configured", "env", "proxy", "source"),
    [
        ("https://h/v1", None, {}, "", ""),
        ("https://h/v1", None, {"HTTPS_PROXY": "http://p:1"}, "http://p:1", "HTTPS_PROXY"),
        ("https://h/v1", None, {"https_proxy": "http://q:1", "HTTPS_PROXY": "http://p:1"},
         "http://q:1", "https_proxy"),
        ("https://h/v1", None, {"HTTP_PROXY": "http://p:1"}, "", ""),
        ("http://h/v1", None, {"HTTP_PROXY": "p:1"}, "http://p:1", "HTTP_PROXY"),
        ("https://h/v1", None, {"ALL_PROXY": "socks5://p:1"}, "socks5://p:1", "ALL_PROXY"),
        ("https://h/v1", "http://c:1", {"HTTPS_PROXY": "http://p:1"}, "http://c:1", "proxy"),
        ("https://h.test/v1", None, {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "test"}, "",
         "HTTPS_PROXY"),
        ("https://h.test/v1", None, {"HTTPS_PROXY": "http://p:1", "NO_PROXY": ".test"}, "",
         "HTTPS_PROXY"),
        ("https://htest/v1", None, {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "test"},
         "http://p:1", "HTTPS_PROXY"),
        ("https://h/v1", None, {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "a, *"}, "",
         "HTTPS_PROXY"),
        ("http://127.0.0.1:4000", None, {"HTTP_PROXY": "http://p:1", "NO_PROXY": "127.0.0.1"}, "",
         "HTTP_PROXY"),
    ],
)  # fmt: skip
def test_which_proxy(
    url: str, configured: str | None, env: dict[str, str], proxy: str, source: str
) -> None:
    choice = choose(Base(url), configured, env)
    assert (choice.url, choice.source) == (proxy, source)


def test_only_relevant_variables_are_kept() -> None:
    env = {"https_proxy": "a", "NO_PROXY": "b", "SSL_CERT_FILE": "c", "PATH": "d", "ALL_PROXY": ""}
    assert set(relevant_env(env)) == {"https_proxy", "NO_PROXY", "SSL_CERT_FILE"}
