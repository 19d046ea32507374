"""llmock does what a scenario says and grades how we took it: an oracle for the retries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.peers.running import Ran, link
from tests.peers.servers import free_port, in_venv, running

if TYPE_CHECKING:
    from pathlib import Path

    from tests.peers.conftest import Endpoint


#: It answers every question with the same text: no failure, and told.
CANNED = "acceptable"


def scenario(llmock: Endpoint, *behaviors: dict[str, Any]) -> None:
    """What the next requests meet."""
    made = {"behaviors": list(behaviors)}
    httpx.post(f"{llmock.root}/_llmock/scenario", json=made).raise_for_status()


def verdict(llmock: Endpoint) -> dict[str, Any]:
    return dict(httpx.get(f"{llmock.root}/_llmock/verdict").raise_for_status().json())


def found(judged: dict[str, Any]) -> list[str]:
    return [finding["code"] for finding in judged["findings"]]


def test_all_is_well(llmock: Endpoint, tmp_path: Path) -> None:
    ran = link(tmp_path, llmock.base_url)
    assert ran.code == 0
    assert ran.outcomes == {
        "lint": "pass", "transport": "pass", "chat": CANNED, "stream": CANNED, "tools": "pass"
    }  # fmt: skip
    judged = verdict(llmock)
    assert (judged["calls"], judged["attempts"], found(judged)) == (3, 3, [])


@pytest.mark.parametrize(
    ("failure", "slug"),
    [
        ({"status": 429, "retry_after": 1, "times": 2}, "limit.other"),
        ({"status": 503, "times": 2}, "service.unavailable"),
        ({"status": 500, "times": 3}, "service.error"),
        ({"status": 504, "times": 1}, "gateway.timeout"),
    ],
)
def test_what_heals_is_asked_again_and_the_verdict_is_clean(
    llmock: Endpoint, tmp_path: Path, failure: dict[str, Any], slug: str
) -> None:
    scenario(llmock, {"type": "fail", **failure})
    ran = link(tmp_path, llmock.base_url, retries=3, options=("--profile", "quick"))
    times = failure["times"]
    assert ran.code == 0
    assert [name for _, name in ran.attempts()] == [*[slug] * times, "ok"]
    assert "K3L-900" in ran.notes()
    judged = verdict(llmock)
    assert (judged["calls"], judged["attempts"]) == (1, times + 1)
    assert found(judged) == []


@pytest.mark.parametrize("status", [400, 401, 403, 422])
def test_what_cannot_heal_is_asked_once(llmock: Endpoint, tmp_path: Path, status: int) -> None:
    scenario(llmock, {"type": "fail", "status": status, "times": 9})
    ran = link(tmp_path, llmock.base_url, retries=3)
    assert ran.code == 1
    assert len(ran.attempts()) == 1
    judged = verdict(llmock)
    if status == 401:  # two second looks, each with the key in another header, are no retries
        assert (judged["attempts"], found(judged)) == (3, ["retried_non_retryable"])
    else:
        assert (judged["attempts"], found(judged)) == (1, [])


def test_no_more_retries_than_configured(llmock: Endpoint, tmp_path: Path) -> None:
    scenario(llmock, {"type": "fail", "status": 500, "times": 9})
    ran = link(tmp_path, llmock.base_url, retries=2)
    assert ran.code == 1
    assert len(ran.attempts()) == 3
    judged = verdict(llmock)
    assert (judged["attempts"], found(judged)) == (3, [])


def test_a_wait_longer_than_the_time_left_ends_at_once(llmock: Endpoint, tmp_path: Path) -> None:
    scenario(llmock, {"type": "fail", "status": 429, "retry_after": 600, "times": 9})
    ran = link(tmp_path, llmock.base_url, retries=3)
    assert len(ran.attempts()) == 1
    assert "K3L-905" in ran.notes()
    assert verdict(llmock)["errors"] == 0


@pytest.mark.parametrize(
    ("kind", "slug", "judged"),
    [
        # A broken stream is a finding and not asked for again (a checker that hides it would be
        # useless), which llmock, seeing only requests, has its own words for.
        ("disconnect", "stream.truncated", ["gave_up"]),
        ("truncate", "stream.truncated", ["truncated_stream_accepted"]),
        ("malformed", "stream.malformed-event", ["malformed_chunk_ignored"]),
        ("stall", "stream.stalled", []),
    ],
)
def test_broken_streams_fail(
    llmock: Endpoint, tmp_path: Path, kind: str, slug: str, judged: list[str]
) -> None:
    scenario(llmock, {"type": "stream_fault", "kind": kind, "after_chunks": 2})
    ran = link(tmp_path, llmock.base_url, retries=3, timeout_s=4)
    assert ran.code == 1
    assert ran.outcomes["chat"] == CANNED
    assert ran.attempts("stream") == [(200, slug)]
    assert ran.outcomes["tools"] == "pass"
    assert found(verdict(llmock)) == judged


@pytest.mark.parametrize(
    ("kind", "slug"),
    [("malformed_arguments", "tools.arguments"), ("unknown_tool", "tools.wrong-name")],
)
def test_broken_tool_calls_fail(llmock: Endpoint, tmp_path: Path, kind: str, slug: str) -> None:
    scenario(llmock, {"type": "tool_fault", "kind": kind})
    ran = link(tmp_path, llmock.base_url)
    assert ran.code == 1
    assert ran.outcomes["stream"] == CANNED
    assert ran.attempts("tools") == [(200, slug)]


def limited(folder: Path, *options: str) -> tuple[Ran, dict[str, Any]]:
    """Run against an llmock of its own."""
    port = free_port()
    command = [in_venv("llmock"), "serve", "--host", "127.0.0.1", "--port", str(port),
               "--response-style", "static", *options]  # fmt: skip
    with running(command, folder / "log.txt", port, seconds=30):
        ran = link(folder, f"http://127.0.0.1:{port}/v1", retries=3, timeout_s=10)
        judged = httpx.get(f"http://127.0.0.1:{port}/_llmock/verdict").raise_for_status().json()
    return ran, dict(judged)


def test_two_requests_a_minute(tmp_path: Path) -> None:
    """A real limit: the third request is told to wait for half a minute."""
    ran, judged = limited(tmp_path, "--rpm", "2")
    assert ran.outcomes["stream"] == CANNED
    assert ran.attempts("tools") == [(429, "limit.other")]
    assert "K3L-905" in ran.notes("tools")
    assert (judged["attempts"], judged["errors"]) == (3, 0)


def test_a_context_window_of_ten_tokens(tmp_path: Path) -> None:
    ran, judged = limited(tmp_path, "--context-window", "10")
    assert ran.attempts() == [(400, "context.exceeded")]
    assert (judged["attempts"], found(judged)) == (1, [])
