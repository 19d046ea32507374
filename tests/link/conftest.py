"""What the link tests share: a canary key, one server for fixtures, running a fixture."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from k3check.link import runner
from k3check.link.apis.answers import Answer
from k3check.link.diagnosis import classify
from k3check.link.diagnosis.observation import Observation
from k3check.link.request import LinkRequest, Secret
from k3check.link.wire.client import Client
from k3check.link.wire.exchange import Call
from k3check.link.wire.proxies import ProxyChoice
from k3check.link.wire.redact import Redactor
from k3check.link.wire.urls import Base
from tests.link.faulty import FaultyServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from k3check.link.diagnosis import Hit
    from k3check.model import Finding
    from k3check.report.listener import Listener
    from tests.link.catalogue import Fixture

CANARY = "sk-canary-7Qm2vX9pLw4Zt8Kd3Rf6"


class Bench:
    """Sends one call to a script and says what explains the result."""

    def __init__(self, server: FaultyServer) -> None:
        self.server = server

    def observe(self, fixture: Fixture) -> Observation:
        self.server.scripts = [fixture.script]
        self.server.requests.clear()
        own = self.server.base_url + fixture.path
        believed = fixture.pretend or own
        request = LinkRequest(
            **{
                "base_url": believed if fixture.proxied else own,
                "api_key": Secret(CANARY),
                "model": "kimi-k3",
                "timeout_s": fixture.timeout_s,
            }
            | fixture.request
        )
        proxy = ProxyChoice()
        if fixture.proxied:
            proxy = ProxyChoice(f"http://127.0.0.1:{self.server.port}", "HTTP_PROXY")
        base = Base(request.base_url or "", request.protocol)
        body = {"model": "kimi-k3", "messages": [{"role": "user", "content": "x"}]} | fixture.body
        call = Call(
            "GET" if fixture.wire == "models" else "POST",
            base.url(fixture.wire),
            None if fixture.wire == "models" else body,
            stream=fixture.stream,
            auth=fixture.auth,
        )
        with Client(request, proxy) as client:
            exchange = client.refine(client.send(call, time.monotonic() + fixture.timeout_s))
        if fixture.pretend:
            base = Base(fixture.pretend, request.protocol)
            request = replace(request, base_url=fixture.pretend)
            exchange = replace(exchange, call=replace(call, url=base.url(fixture.wire)))
        facts: dict[str, Any] = dict(fixture.facts)
        if isinstance(facts.get("plain"), str):
            facts["plain"] = Answer(content="x", model=facts["plain"])
        return Observation(
            request, base, exchange, fixture.wire, proxy, fixture.nonce, fixture.sent, facts
        )

    def hits(self, fixture: Fixture) -> tuple[Hit, ...]:
        return classify(self.observe(fixture), Redactor((CANARY,)))


@pytest.fixture(autouse=True)
def _no_key_in_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a test makes the check find, its key is nowhere in it."""
    run = runner.run

    def watched(request: LinkRequest, listener: Listener) -> list[Finding]:
        findings = run(request, listener)
        key = request.api_key.reveal().strip() if request.api_key else ""
        assert len(key) < 20 or key not in repr(findings)
        return findings

    monkeypatch.setattr(runner, "run", watched)


@pytest.fixture(scope="session")
def server() -> Iterator[FaultyServer]:
    with FaultyServer([b""]) as made:
        yield made


@pytest.fixture
def bench(server: FaultyServer) -> Bench:
    return Bench(server)
