"""nginx: its pages, its redirects, its buffering, its limits, its TLS."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.peers.running import link

if TYPE_CHECKING:
    from pathlib import Path

    from k3check.link.demo import DemoServer
    from tests.peers.configs import Nginx


@pytest.mark.parametrize("location", ["good", "gzip"])
def test_in_front_of_a_working_service(
    nginx: Nginx, demo: DemoServer, tmp_path: Path, location: str
) -> None:
    ran = link(tmp_path, nginx.base(location), key=demo.api_key)
    assert ran.code == 0
    assert set(ran.outcomes.values()) == {"pass"}


@pytest.mark.parametrize(
    ("location", "status", "slug"),
    [
        ("missing", 404, "path.not-found-page"),
        ("small", 413, "message.body-too-large"),
        ("dead", 502, "gateway.bad-upstream"),
        ("slow", 504, "gateway.timeout"),
        ("teapot", 403, "front.denied"),
        ("password", 401, "auth.page-asks-password"),
        ("moved301", 301, "redirect.https"),
        ("moved307", 307, "redirect.other-host"),
        ("slash", 307, "redirect.path"),
    ],
)
def test_its_pages(
    nginx: Nginx, demo: DemoServer, tmp_path: Path, location: str, status: int, slug: str
) -> None:
    ran = link(tmp_path, nginx.base(location), key=demo.api_key)
    assert ran.code == 1
    assert ran.attempts() == [(status, slug)]
    assert ran.outcomes["stream"] == "skipped"
    assert ran.checks["chat"]["evidence"]["family"] == "nginx"


def test_a_large_request_that_is_refused_unread(
    nginx: Nginx, demo: DemoServer, tmp_path: Path
) -> None:
    """nginx answers 413 and closes while the request is still on its way."""
    ran = link(tmp_path, nginx.base("good"), key=demo.api_key, probes=("needle",),
               options=("--profile", "full"))  # fmt: skip
    assert ran.outcomes["needle"] == "pass"
    ran = link(tmp_path, nginx.base("small"), key=demo.api_key, probes=("needle",))
    assert ran.attempts("needle") == [(413, "message.body-too-large")]


def test_buffering_is_seen(nginx: Nginx, tmp_path: Path) -> None:
    """The same slow stream twice: held back until it is complete, and passed on as it comes."""
    wanted = ("chat", "stream")
    held = link(tmp_path, nginx.base("buffered"), probes=wanted)
    assert held.code == 0
    assert held.codes("stream") == ["K3L-507"]
    free = link(tmp_path, nginx.base("unbuffered"), probes=wanted)
    assert free.codes("stream") == []
    first = {r: r.checks["stream"]["metrics"]["first_token_seconds"] for r in (held, free)}
    assert first[free] < first[held]


def test_limit_req(nginx: Nginx, demo: DemoServer, tmp_path: Path) -> None:
    """One request a minute: the second one meets 503."""
    ran = link(tmp_path, nginx.base("limited"), key=demo.api_key)
    assert ran.outcomes["chat"] == "pass"
    assert ran.attempts("stream") == [(503, "service.unavailable-page")]


def test_limit_req_heals(nginx: Nginx, demo: DemoServer, tmp_path: Path) -> None:
    """One request a second: retries come through, and the report says so."""
    ran = link(tmp_path, nginx.base("patience"), key=demo.api_key, retries=3)
    assert ran.code == 0
    assert set(ran.outcomes.values()) == {"pass"}
    assert ran.attempts("stream")[0] == (503, "service.unavailable-page")
    assert ran.attempts("stream")[-1] == (200, "ok")
    assert "K3L-900" in ran.notes("stream")


def test_tls_that_is_right(
    nginx: Nginx, demo: DemoServer, certificates: Path, tmp_path: Path
) -> None:
    env = {"SSL_CERT_FILE": str(certificates)}
    ran = link(tmp_path, nginx.secure("good"), key=demo.api_key, env=env)
    assert ran.code == 0
    assert set(ran.outcomes.values()) == {"pass"}
    assert ran.checks["transport"]["metrics"]["tls_seconds"] > 0


@pytest.mark.parametrize("probes", [(), ("chat",)], ids=["transport", "chat"])
@pytest.mark.parametrize(
    ("kind", "trusted", "code"),
    [
        ("good", False, "K3L-123"),
        ("self-signed", True, "K3L-122"),
        ("expired", True, "K3L-125"),
        ("other-name", True, "K3L-124"),
    ],
)
def test_tls_that_is_wrong(
    nginx: Nginx,
    demo: DemoServer,
    certificates: Path,
    tmp_path: Path,
    kind: str,
    trusted: bool,
    code: str,
    probes: tuple[str, ...],
) -> None:
    """Seen by the step that sends nothing, and by the chat itself if that step is left out."""
    env = {"SSL_CERT_FILE": str(certificates)} if trusted else {}
    ran = link(tmp_path, nginx.secure(kind), key=demo.api_key, env=env, probes=probes)
    assert ran.code == 1
    assert ran.codes("chat" if probes else "transport") == [code]


def test_client_certificate_wanted(
    nginx: Nginx, demo: DemoServer, certificates: Path, tmp_path: Path
) -> None:
    env = {"SSL_CERT_FILE": str(certificates)}
    ran = link(tmp_path, nginx.secure("client"), key=demo.api_key, env=env)
    assert ran.codes() == ["K3L-128"]


def test_http_to_the_tls_port_and_the_reverse(
    nginx: Nginx, demo: DemoServer, tmp_path: Path
) -> None:
    plain = nginx.secure("good").replace("https://", "http://")
    assert link(tmp_path, plain, key=demo.api_key).codes() == ["K3L-121"]
    secure = nginx.base("good").replace("http://", "https://")
    assert link(tmp_path, secure, key=demo.api_key).codes("transport") == ["K3L-120"]
