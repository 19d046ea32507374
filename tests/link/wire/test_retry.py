"""What is sent again, how often, and how long is waited."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest

from k3check.link.request import LinkRequest, Secret
from k3check.link.session import Result, Session
from k3check.link.wire.exchange import Call
from k3check.link.wire.retry import retry_after
from tests.link.catalogue import error, page
from tests.link.conftest import CANARY
from tests.link.faulty import FaultyServer, answer, http

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("headers", "text", "seconds"),
    [
        ({"retry-after": "2"}, "", 2.0),
        ({"retry-after": "1.5"}, "", 1.5),
        ({"retry-after": "-3"}, "", 0.0),
        ({"retry-after": formatdate(NOW + 30, usegmt=True)}, "", 30.0),
        ({"retry-after": formatdate(NOW - 30, usegmt=True)}, "", 0.0),
        ({"retry-after": "soon"}, "", None),
        ({"retry-after": "1e9"}, "", None),
        ({"retry-after": "1000000000"}, "", 1e9),
        ({"retry-after-ms": "250"}, "", 0.25),
        ({"retry-after-ms": "250", "retry-after": "9"}, "", 0.25),
        ({"llm_provider-retry-after": "4"}, "", 4.0),
        ({}, "please try again after 7 seconds", 7.0),
        ({}, "Try again in 500ms", 0.5),
        ({}, "try again in 2 minutes", 120.0),
        ({}, "try again later", None),
        ({}, "", None),
    ],
)
def test_retry_after(headers: dict[str, str], text: str, seconds: float | None) -> None:
    assert retry_after(headers, text, NOW) == seconds


def send(server: FaultyServer, retries: int = 3, timeout_s: float = 5.0) -> Result:
    request = LinkRequest(
        base_url=server.base_url,
        api_key=Secret(CANARY),
        model="kimi-k3",
        timeout_s=timeout_s,
        max_retries=retries,
        backoff_s=0.01,
    )
    session = Session.of(request)
    try:
        call = Call("POST", server.base_url + "/chat/completions", {"model": "kimi-k3"})
        return session.ask(call, "openai")
    finally:
        session.close()


OVERLOADED = error(429, "The engine is currently overloaded", "engine_overloaded_error")
GOOD = http(200, answer())


@pytest.mark.parametrize(
    "bad",
    [OVERLOADED, error(500, "oops", "x"), page(502, "502 Bad Gateway"), page(503, "503"),
     error(504, "slow", "x"), http(429, ""), lambda c, r: None, lambda c, r: c.reset()],
)  # fmt: skip
def test_what_can_heal_is_sent_again(bad: object) -> None:
    with FaultyServer([bad, GOOD]) as server:
        result = send(server)
    assert result.answered
    assert [a.outcome for a in result.seen.exchange.attempts][-1] == "ok"
    assert len(server.requests) == 2
    assert [note.code for note in result.notes] == ["K3L-900"]


@pytest.mark.parametrize(
    "bad",
    [
        error(401, "Invalid Authentication", "invalid_authentication_error"),
        error(402, "no", "x"),
        error(403, "no", "x"),
        error(404, "Not found the model x or Permission denied", "resource_not_found_error"),
        error(400, "bad", "x"),
        error(413, "large", "x"),
        error(422, "bad", "x"),
        error(429, "check your plan and billing", "exceeded_current_quota_error"),
        error(503, "当前分组 default 下对于模型 kimi-k3 无可用渠道", "one_api_error"),
        error(429, "max organization TPD: 1500000, try again after 1 seconds", "x"),
        http(200, "<html>"),
        http(200, {"error": {"message": "x"}}),
        error(500, "oops", "x", headers=(("x-should-retry", "false"),)),
    ],
)
def test_what_cannot_heal_is_sent_once(bad: bytes) -> None:
    with FaultyServer([bad, GOOD]) as server:
        result = send(server)
    assert not result.answered
    assert len(server.requests) == 1


@pytest.mark.parametrize(("retries", "sent"), [(0, 1), (1, 2), (3, 4), (17, 4)])
def test_never_more_than_configured_nor_than_three(retries: int, sent: int) -> None:
    with FaultyServer([OVERLOADED]) as server:
        result = send(server, retries)
    assert len(server.requests) == sent
    assert len(result.seen.exchange.attempts) == sent


def test_the_servers_wait_is_kept() -> None:
    busy = error(429, "slow down", "x", headers=(("Retry-After", "0.4"),))
    with FaultyServer([busy, GOOD]) as server:
        begun = time.monotonic()
        result = send(server)
        took = time.monotonic() - begun
    assert result.answered
    assert took >= 0.4
    assert result.seen.exchange.attempts[1].waited_s == pytest.approx(0.4, abs=0.15)


def test_a_wait_longer_than_the_time_left_ends_at_once() -> None:
    busy = error(429, "slow down", "x", headers=(("Retry-After", "1000000000"),))
    with FaultyServer([busy, GOOD]) as server:
        begun = time.monotonic()
        result = send(server, timeout_s=2)
        took = time.monotonic() - begun
    assert took < 1
    assert len(server.requests) == 1
    assert [note.code for note in result.notes] == ["K3L-905"]


def test_litellm_cooldown_is_asked_once_more_after_its_end() -> None:
    cooling = error(429, "all_deployments_in_cooldown", "throttling_error", "429",
                    headers=(("retry-after", "0"), ("x-litellm-version", "1")))  # fmt: skip
    with FaultyServer([cooling]) as server:
        result = send(server)
    assert len(server.requests) == 2
    assert result.seen.exchange.attempts[1].waited_s == pytest.approx(1.0, abs=0.2)
    assert result.failing[0].row.slug == "limit.litellm-cooldown"
