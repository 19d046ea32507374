"""tinyproxy: open, with a password, choosy, dead, and in front of nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.peers.running import Ran, link

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from k3check.link.demo import DemoServer
    from tests.peers.configs import Nginx

PASSWORD = "hunter22secret"


@pytest.fixture
def through(
    nginx: Nginx, demo: DemoServer, certificates: Path, tmp_path: Path
) -> Callable[..., Ran]:
    """Run through a proxy, to the plain endpoint or to the one with TLS."""

    def run(port: int, *, tls: bool = False, user: str = "", base: str = "") -> Ran:
        proxy = f"http://{user}127.0.0.1:{port}"
        env = {"HTTPS_PROXY" if tls else "HTTP_PROXY": proxy, "SSL_CERT_FILE": str(certificates)}
        base = base or (nginx.secure("good") if tls else demo.base_url)
        ran = link(tmp_path, base, key=demo.api_key, env=env)
        assert PASSWORD not in ran.out + ran.err
        return ran

    return run


@pytest.mark.parametrize("tls", [False, True])
def test_open(tinyproxy: dict[str, int], through: Callable[..., Ran], tls: bool) -> None:
    ran = through(tinyproxy["open"], tls=tls)
    assert ran.code == 0
    assert [ran.outcomes[p] for p in ("transport", "chat", "stream", "tools")] == ["pass"] * 4
    assert ran.codes("lint") == ["K3L-062"]  # this machine, through a proxy: worth a warning
    assert ran.notes("transport") == ["K3L-909"]


def test_password_wanted(tinyproxy: dict[str, int], through: Callable[..., Ran]) -> None:
    ran = through(tinyproxy["password"], tls=True)
    assert ran.codes("transport") == ["K3L-112"]


def test_password_wanted_without_tunnel(
    tinyproxy: dict[str, int], through: Callable[..., Ran]
) -> None:
    """tinyproxy answers 407 and resets the connection, whose request it has not read."""
    ran = through(tinyproxy["password"])
    assert ran.attempts() == [(407, "proxy.auth")]


@pytest.mark.parametrize("tls", [False, True])
def test_password_given(tinyproxy: dict[str, int], through: Callable[..., Ran], tls: bool) -> None:
    ran = through(tinyproxy["password"], tls=tls, user=f"staff:{PASSWORD}@")
    assert ran.code == 0


def test_connect_refused(tinyproxy: dict[str, int], through: Callable[..., Ran]) -> None:
    ran = through(tinyproxy["strict"], tls=True)
    assert ran.codes("transport") == ["K3L-113"]
    assert "K3L-910" in ran.notes("transport")  # what happens without the proxy


@pytest.mark.parametrize("tls", [False, True])
def test_dead(dead_port: int, through: Callable[..., Ran], tls: bool) -> None:
    ran = through(dead_port, tls=tls)
    assert ran.codes("transport") == ["K3L-110"]
    assert ran.notes("transport") == ["K3L-909", "K3L-910"]


def test_nobody_behind_it(
    tinyproxy: dict[str, int], dead_port: int, through: Callable[..., Ran]
) -> None:
    """Its page with status 500 is no answer of the endpoint."""
    ran = through(tinyproxy["open"], base=f"http://127.0.0.1:{dead_port}/v1")
    assert ran.attempts() == [(500, "proxy.loopback")]
    ran = through(tinyproxy["open"], base="http://gateway.invalid/v1")
    assert ran.attempts() == [(500, "proxy.answers")]
