"""Whole runs: what is asked, what ends what, what is reported."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import pytest

from k3check.errors import UsageError
from k3check.link import check, probe_names
from k3check.link.demo import DemoServer
from k3check.link.request import LinkRequest, Secret
from k3check.model import Finding, Outcome
from k3check.report.listener import Silent
from tests.link.catalogue import APP, NONCE, error
from tests.link.conftest import CANARY
from tests.link.faulty import Connection, FaultyServer, Request, answer, closed_port, http

DEFAULT = ["link/lint", "link/transport", "link/chat", "link/stream", "link/tools"]


def request(server: FaultyServer | DemoServer, **changes: Any) -> LinkRequest:
    made = LinkRequest(
        base_url=server.base_url,
        api_key=Secret(CANARY),
        model="kimi-k3",
        timeout_s=5,
        max_retries=1,
        backoff_s=0.01,
    )
    if isinstance(server, DemoServer):
        made = replace(made, api_key=Secret(server.api_key), model=server.model)
    return replace(made, **changes)


def run(made: LinkRequest) -> dict[str, Finding]:
    return {finding.id: finding for finding in check(made, Silent())}


def outcomes(findings: dict[str, Finding]) -> list[str]:
    return [finding.outcome.value for finding in findings.values()]


def test_demo_passes_everything() -> None:
    with DemoServer() as demo:
        findings = run(request(demo))
    assert list(findings) == DEFAULT
    assert outcomes(findings) == ["pass"] * 5
    stream = findings["link/stream"]
    assert stream.metrics["first_token_seconds"] <= stream.metrics["seconds"]
    assert findings["link/chat"].metrics["prompt_tokens"] > 0
    assert findings["link/transport"].metrics["tcp_seconds"] >= 0


def test_quick_is_lint_and_chat() -> None:
    with DemoServer() as demo:
        assert list(run(request(demo, profile="quick"))) == ["link/lint", "link/chat"]


def test_offline_sends_nothing() -> None:
    with FaultyServer([b""]) as server:
        findings = run(request(server, offline=True))
        assert server.requests == []
    assert outcomes(findings) == ["pass", *["skipped"] * 4]
    assert findings["link/chat"].notes[0].code == "K3L-902"


@pytest.mark.parametrize(
    ("changes", "codes"),
    [
        ({"base_url": None}, ["K3L-001"]),
        ({"api_key": None}, ["K3L-020"]),
        ({"model": None}, ["K3L-035"]),
        ({"base_url": None, "api_key": None, "model": None}, ["K3L-001", "K3L-020", "K3L-035"]),
        ({"api_key": Secret("sk-your-key-here")}, ["K3L-024"]),
        ({"base_url": "not a url"}, ["K3L-002"]),
        ({"base_url": "http://[::1"}, ["K3L-033"]),
    ],
)
def test_missing_or_unusable_settings_are_findings(changes: Any, codes: list[str]) -> None:
    with FaultyServer([b""]) as server:
        findings = run(request(server, timeout_s=60, **changes))
        assert server.requests == []
    lint = findings["link/lint"]
    assert lint.outcome is Outcome.FAIL
    assert [d.code for d in lint.diagnoses] == codes
    assert lint.hint is not None
    assert lint.hint.code == codes[0]
    assert findings["link/chat"].outcome is Outcome.SKIPPED
    assert findings["link/chat"].notes[0].code == "K3L-903"


def test_a_placeholder_is_not_sent_by_any_probe() -> None:
    with FaultyServer([b""]) as server:
        findings = run(request(server, api_key=Secret("sk-xxx"), probes=("chat",)))
        assert server.requests == []
    assert list(findings) == ["link/lint", "link/chat"]


def test_after_a_refused_key_nothing_more_is_sent() -> None:
    refused = error(401, "Invalid Authentication", "invalid_authentication_error")
    with FaultyServer([refused]) as server:
        findings = run(request(server))
        # Whether it is the header is told by the list of models, which costs nothing.
        assert [r.method for r in server.requests] == ["POST", "GET", "GET"]
    assert outcomes(findings) == ["pass", "pass", "fail", "skipped", "skipped"]
    assert findings["link/stream"].notes[0].values["slug"] == "auth.refused"


def test_nothing_listens() -> None:
    with FaultyServer([b""]) as server, closed_port() as port:
        made = request(server, base_url=f"http://127.0.0.1:{port}/v1")
        findings = run(made)
        assert outcomes(findings) == ["pass", "fail", "skipped", "skipped", "skipped"]
        assert [d.code for d in findings["link/transport"].diagnoses] == ["K3L-103"]
        findings = run(replace(made, profile="quick"))
    assert [d.code for d in findings["link/chat"].diagnoses] == ["K3L-103"]


def test_with_a_query_in_the_base_nothing_is_sent() -> None:
    with FaultyServer([b""]) as server:
        findings = run(request(server, base_url=server.base_url + "?utm_source=x"))
        assert server.requests == []
    lint = findings["link/lint"]
    assert [d.code for d in lint.diagnoses] == ["K3L-004"]
    assert lint.diagnoses[0].values["corrected_base_url"] == server.base_url
    assert outcomes(findings) == ["fail", "skipped", "skipped", "skipped", "skipped"]


def test_the_right_path_on_the_same_host_is_found() -> None:
    with DemoServer() as demo:
        base = demo.base_url.replace("/v1", "/api")
        findings = run(request(demo, base_url=base, profile="quick"))
    chat = findings["link/chat"]
    assert [d.code for d in chat.diagnoses] == ["K3L-703"]
    assert chat.diagnoses[0].values["found_base_url"] == demo.base_url


def test_wrong_model_and_wrong_key_at_the_demo() -> None:
    with DemoServer() as demo:
        findings = run(request(demo, model="kimi-k9", profile="quick"))
        assert [d.code for d in findings["link/chat"].diagnoses] == ["K3L-240"]
        findings = run(request(demo, api_key=Secret(CANARY), profile="quick"))
        assert [d.code for d in findings["link/chat"].diagnoses] == ["K3L-200"]


def test_refused_temperature_fails_but_the_rest_goes_on_without_it() -> None:
    with DemoServer() as demo:
        findings = run(request(demo, temperature=0.6))
    chat = findings["link/chat"]
    assert chat.outcome is Outcome.FAIL
    assert [d.code for d in chat.diagnoses] == ["K3L-250"]
    assert chat.diagnoses[0].values["accepted"] == 1.0
    assert [a["status"] for a in chat.evidence["attempts"]] == [400, 200]
    assert findings["link/stream"].outcome is Outcome.PASS
    assert findings["link/tools"].outcome is Outcome.PASS


def test_our_own_field_refused_is_a_note() -> None:
    def picky(connection: Connection, got: Request) -> None:
        if "reasoning_effort" in got.json:
            connection.send(error(400, "Unrecognized request argument: reasoning_effort", "x"))
        elif "max_completion_tokens" in got.json:
            connection.send(error(400, "Unknown parameter: max_completion_tokens", "x"))
        else:
            connection.send(http(200, echo(got)))

    with FaultyServer([picky]) as server:
        findings = run(request(server, profile="quick"))
        assert "max_tokens" in server.requests[-1].json
    chat = findings["link/chat"]
    assert chat.outcome is Outcome.PASS
    assert [note.code for note in chat.notes] == ["K3L-907", "K3L-906"]


def echo(got: Request) -> dict[str, Any]:
    """A good answer to the question that was asked."""
    return answer(message={"content": got.json["messages"][0]["content"].split()[-1]})


def test_the_question_is_sent_as_configured() -> None:
    def good(connection: Connection, got: Request) -> None:
        connection.send(http(200, echo(got)))

    with FaultyServer([good]) as server:
        run(request(server, profile="quick", top_p=0.95, max_output_tokens=4096,
                    extra_body={"user": "me"}))  # fmt: skip
        got = server.requests[0]
    assert got.target == "/v1/chat/completions"
    assert got.headers["authorization"] == f"Bearer {CANARY}"
    assert got.json["model"] == "kimi-k3"
    assert got.json["top_p"] == 0.95
    assert got.json["max_completion_tokens"] == 4096
    assert got.json["user"] == "me"
    assert "temperature" not in got.json
    assert got.headers["accept-encoding"] == "gzip, identity"


def test_canned_answers_are_acceptable_and_say_so() -> None:
    canned = http(200, answer(message={"content": "This is a mock"}))
    with FaultyServer([canned]) as server:
        findings = run(request(server, probes=("chat", "tools", "agent")))
    assert [d.code for d in findings["link/chat"].diagnoses] == ["K3L-613"]
    assert [d.code for d in findings["link/tools"].diagnoses] == ["K3L-642"]
    assert findings["link/tools"].outcome is Outcome.ACCEPTABLE
    assert [d.code for d in findings["link/agent"].diagnoses] == ["K3L-642"]
    assert findings["link/agent"].outcome is Outcome.ACCEPTABLE


def test_flaky_is_noted() -> None:
    def good(connection: Connection, got: Request) -> None:
        connection.send(http(200, echo(got)))

    with FaultyServer([error(500, "oops", "x"), good]) as server:
        findings = run(request(server, profile="quick"))
    chat = findings["link/chat"]
    assert chat.outcome is Outcome.PASS
    assert [note.code for note in chat.notes] == ["K3L-900"]
    assert [a["outcome"] for a in chat.evidence["attempts"]] == ["service.error", "ok"]


def test_unknown_probe_is_a_usage_error() -> None:
    with pytest.raises(UsageError) as caught:
        check(LinkRequest(probes=("chta",)), Silent())
    assert caught.value.fix == "Did you mean chat?"
    assert set(DEFAULT) <= {f"link/{name}" for name in probe_names()}


HOSTILE = [
    http(200, {"choices": [], "key": CANARY}),
    error(401, f"Incorrect API key provided: {CANARY}", "incorrect_api_key_error"),
    error(400, f"bad {CANARY[:10]}***{CANARY[-4:]}", "x", headers=(("X-Request-Id", CANARY),)),
    http(200, f"<html><title>{CANARY}</title>{APP}</html>", "text/html"),
    http(302, "", headers=(("Location", f"https://collector.test/?k={CANARY}"),)),
    http(200, answer(model=CANARY, message={"content": CANARY})),
    http(f"500 {CANARY}", CANARY, f"text/{CANARY}"),
    f"HTTP/1.1 200 {CANARY}\r\n{CANARY}\r\n\r\n".encode(),
]


@pytest.mark.parametrize("script", HOSTILE)
def test_the_key_is_in_no_finding(script: bytes) -> None:
    with FaultyServer([script]) as server:
        findings = check(request(server, max_retries=0), Silent())
    text = json.dumps([asdict(f) for f in findings], default=str)
    assert NONCE not in text
    assert CANARY not in text
    assert CANARY[8:20] not in text


def test_echoed_key_is_noted() -> None:
    with FaultyServer([error(401, f"no: {CANARY}", "x")]) as server:
        findings = run(request(server, profile="quick"))
    assert "K3L-634" in [note.code for note in findings["link/chat"].notes]
