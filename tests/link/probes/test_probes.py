"""Probes beyond the default ones, against servers that get them wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from k3check import hints
from k3check.config.client import sdk
from k3check.link import check, cost
from k3check.link.demo import DemoServer
from k3check.link.probes.agent import Workshop
from k3check.link.request import LinkRequest, Secret
from k3check.model import Finding, Outcome
from k3check.report.listener import Silent
from tests.link.catalogue import DONE, error, usage
from tests.link.conftest import CANARY
from tests.link.faulty import Connection, FaultyServer, Request, answer, chunk, http, sse

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def run(server: FaultyServer | DemoServer, *probes: str, **changes: Any) -> dict[str, Finding]:
    made = LinkRequest(
        base_url=server.base_url,
        api_key=Secret(server.api_key if isinstance(server, DemoServer) else CANARY),
        model="kimi-k3",
        timeout_s=5,
        max_retries=0,
        probes=probes,
        needle_tokens=3000,
    )
    return {f.id: f for f in check(replace(made, **changes), Silent())}


def codes(finding: Finding) -> list[str]:
    return [d.code for d in finding.diagnoses] + [n.code for n in finding.notes]


def serve(make: Callable[[Request], bytes]) -> Callable[[Connection, Request], None]:
    def script(connection: Connection, request: Request) -> None:
        connection.send(make(request))

    return script


def last_words(request: Request) -> str:
    return str(request.json["messages"][-1]["content"])


def streamed(text: str, **counts: Any) -> bytes:
    parts = [chunk({"reasoning_content": "Hm."}), chunk({"content": text})]
    return sse(*parts, chunk({}, "stop", usage=usage(20, 10) | counts), DONE)


FULL = ("lint", "transport", "models", "chat", "stream", "tools", "agent", "cache", "params",
        "oracle", "negative", "needle")  # fmt: skip


def test_full_profile_passes_at_the_demo_and_shows_its_cost() -> None:
    with DemoServer() as demo:
        findings = run(demo, profile="full")
    assert [f.removeprefix("link/") for f in findings] == list(FULL)
    assert {f.outcome for f in findings.values()} == {Outcome.PASS}
    assert "K3L-915" in codes(findings["link/lint"])
    for name in FULL[2:]:
        assert findings[f"link/{name}"].metrics["requests"] >= 1, name
    assert findings["link/needle"].metrics["tokens"] > 3000
    assert findings["link/agent"].metrics["tool_calls"] == 3
    assert findings["link/cache"].metrics["cached_tokens"] >= 4096


def test_cost_of_profiles() -> None:
    assert cost(LinkRequest())[0] == 3
    assert cost(LinkRequest(profile="quick"))[0] == 1
    assert cost(LinkRequest(offline=True, probes=("lint",))) == (0, 0)
    requests, tokens = cost(LinkRequest(profile="full", needle_tokens=100_000))
    assert requests > 10
    assert tokens > 100_000


@pytest.mark.parametrize(
    ("script", "outcome", "expected"),
    [
        (http(200, {"data": [{"id": "kimi-k3", "context_length": 262_144}]}), "pass", ["K3L-652"]),
        (http(200, {"data": [{"id": "kimi-k3", "context_length": 1_048_576}]}), "pass", []),
        (http(200, {"data": [{"id": "kimi-k2"}]}), "acceptable", ["K3L-650"]),
        (http(200, {"data": [None, 7, {"id": None}]}), "acceptable", ["K3L-650"]),
        (http(404, "404 page not found", "text/plain"), "skipped", ["K3L-651"]),
        (http(403, {"error": {"message": "no"}}), "skipped", ["K3L-651"]),
        (http(200, {"models": []}), "fail", ["K3L-423"]),
        (error(401, "Invalid Authentication", "x"), "fail", ["K3L-200"]),
    ],
)
def test_models(script: bytes, outcome: str, expected: list[str]) -> None:
    with FaultyServer([script]) as server:
        found = run(server, "models")["link/models"]
        assert server.requests[0].method == "GET"
        assert server.requests[0].target == "/v1/models"
    assert found.outcome.value == outcome
    assert codes(found) == expected


def test_params_that_are_swallowed_are_noted() -> None:
    with FaultyServer([http(200, answer())]) as server:
        found = run(server, "params")["link/params"]
        sent = [r.json for r in server.requests]
    assert found.outcome is Outcome.PASS
    assert codes(found) == ["K3L-653"] * 5
    assert found.metrics["refused"] == 0
    assert [s.get("temperature") for s in sent] == [0.6, None, None, None, None]
    assert sent[2]["n"] == 2


def test_a_refusal_without_the_parameters_name_proves_nothing() -> None:
    with FaultyServer([error(400, "bad request", "x")]) as server:
        found = run(server, "params")["link/params"]
    assert found.outcome is Outcome.SKIPPED
    assert codes(found) == ["K3L-655"] * 5


def test_a_refused_key_is_no_refused_parameter() -> None:
    with FaultyServer([error(401, "Invalid Authentication", "x")]) as server:
        found = run(server, "params")["link/params"]
    assert found.outcome is Outcome.FAIL
    assert codes(found) == ["K3L-200"]


# Section B1 of the link specification: 99 tokens, and up to three more are accepted.
@pytest.mark.parametrize(
    ("count", "outcome", "expected"),
    [(99, "pass", "K3L-670"), (102, "pass", "K3L-670"), (98, "acceptable", "K3L-654"),
     (103, "acceptable", "K3L-656"), (1099, "acceptable", "K3L-656")],
)  # fmt: skip
def test_oracle(count: int, outcome: str, expected: str) -> None:
    def counted(request: Request) -> bytes:
        more = 83 if "response_format" in request.json else 0
        return http(200, answer(usage=usage(count + more, 16)))

    with FaultyServer([serve(counted)]) as server:
        found = run(server, "oracle")["link/oracle"]
        plain, schema = (r.json for r in server.requests)
    assert plain["messages"] == [{"role": "assistant", "content": "你好"}]
    assert plain["reasoning_effort"] == "high"
    assert schema == plain | {"response_format": schema["response_format"]}
    assert found.outcome.value == outcome
    assert codes(found) == [expected, "K3L-672"]
    said = (*found.diagnoses, *found.notes)[0]
    shown = hints.title(expected, "en", said.values)
    assert f"{count} tokens" in shown
    assert "Kimi K3" in shown
    assert "99 to 102" in shown
    assert "<" not in shown


def test_oracle_without_a_count_is_inconclusive() -> None:
    with FaultyServer([http(200, answer(usage=...))]) as server:
        found = run(server, "oracle")["link/oracle"]
        assert len(server.requests) == 1
    assert found.outcome is Outcome.SKIPPED
    assert codes(found) == ["K3L-657"]


@pytest.mark.parametrize(
    ("second", "expected", "outcome"),
    [
        (http(200, answer(usage=usage(99, 16))), "K3L-671", Outcome.ACCEPTABLE),
        (http(200, answer(usage=usage(102, 16))), "K3L-671", Outcome.ACCEPTABLE),
        (http(200, answer(usage=usage(103, 16))), "K3L-672", Outcome.PASS),
        (error(400, "response_format is not supported", "x"), "K3L-673", Outcome.PASS),
    ],
)
def test_oracle_tells_whether_a_schema_reaches_the_prompt(
    second: bytes, expected: str, outcome: Outcome
) -> None:
    with FaultyServer([http(200, answer(usage=usage(99, 16))), second]) as server:
        found = run(server, "oracle")["link/oracle"]
    assert found.outcome is outcome
    assert set(codes(found)) == {"K3L-670", expected}


def test_negative_finds_endpoints_that_take_anything() -> None:
    with FaultyServer([http(200, answer())]) as server:
        found = run(server, "negative")["link/negative"]
        keys = [r.headers["authorization"] for r in server.requests]
    assert found.outcome is Outcome.ACCEPTABLE
    assert codes(found) == ["K3L-664", "K3L-665"]
    assert CANARY not in keys[0]
    assert CANARY in keys[1]


def test_negative_passes_where_both_are_refused() -> None:
    scripts = [
        error(401, "无效的令牌", "one_api_error"),
        error(503, "当前分组 default 下对于模型 x 无可用渠道", "one_api_error"),
    ]
    with FaultyServer(scripts) as server:
        found = run(server, "negative")["link/negative"]
    assert found.outcome is Outcome.PASS


def test_negative_is_inconclusive_where_nothing_names_its_cause() -> None:
    with FaultyServer([error(500, "oops", "x")]) as server:
        found = run(server, "negative")["link/negative"]
    assert found.outcome is Outcome.SKIPPED
    assert codes(found) == ["K3L-666", "K3L-666"]


def test_needle_missed_and_truncated() -> None:
    with FaultyServer([streamed("I do not know", prompt_tokens=3100)]) as server:
        found = run(server, "needle")["link/needle"]
        sent = last_words(server.requests[0])
    assert codes(found) == ["K3L-661"]
    assert found.outcome is Outcome.FAIL
    assert sent.startswith("The value of MAX_RETRY_COUNT is ")
    assert len(sent) > 3000 * 4
    with FaultyServer([streamed("I do not know", prompt_tokens=500)]) as server:
        found = run(server, "needle")["link/needle"]
    assert codes(found) == ["K3L-662"]


def test_needle_found() -> None:
    def tell(request: Request) -> bytes:
        return streamed(last_words(request).split()[5].rstrip("."), prompt_tokens=3100)

    with FaultyServer([serve(tell)]) as server:
        found = run(server, "needle")["link/needle"]
    assert found.outcome is Outcome.PASS
    assert found.metrics["first_token_seconds"] >= 0


@pytest.mark.parametrize(
    ("counts", "outcome", "expected"),
    [
        ({"cached_tokens": 4096}, "pass", "K3L-660"),
        ({"prompt_tokens_details": {"cached_tokens": 4096}}, "pass", "K3L-660"),
        ({"prompt_cache_hit_tokens": 4096}, "pass", "K3L-660"),
        ({"cache_read_input_tokens": 4096}, "pass", "K3L-660"),
        ({"cached_tokens": 0}, "acceptable", "K3L-658"),
        ({}, "skipped", "K3L-659"),
    ],
)
def test_cache(counts: dict[str, Any], outcome: str, expected: str) -> None:
    with FaultyServer([streamed("one", prompt_tokens=4200, **counts)]) as server:
        found = run(server, "cache")["link/cache"]
        first, second = (last_words(r) for r in server.requests)
    assert found.outcome.value == outcome
    assert expected in codes(found)
    prefix = first[: first.rindex("\n")]
    assert second.startswith(prefix)
    assert len(prefix) > 4096 * 4


def calls(*made: tuple[str, dict[str, Any]]) -> bytes:
    listed = [
        {"id": f"{name}:{i}", "type": "function",
         "function": {"name": name, "arguments": json.dumps(arguments)}}
        for i, (name, arguments) in enumerate(made)
    ]  # fmt: skip
    message = {"content": "", "tool_calls": listed}
    return http(200, answer(message=message, choice={"finish_reason": "tool_calls"}))


READ = ("read_file", {"path": "config.json"})


def test_agent_sends_thinking_and_ids_back() -> None:
    fixed = json.dumps({"name": "demo", "timeout": 60, "retries": 3})
    scripts = [
        calls(READ),
        calls(("write_file", {"path": "config.json", "content": fixed})),
        http(200, answer(message={"content": "Done."})),
    ]
    with FaultyServer(scripts) as server:
        found = run(server, "agent")["link/agent"]
        history = server.requests[1].json["messages"]
    assert found.outcome is Outcome.PASS
    assert history[1]["reasoning_content"] == "Say the word."
    assert history[1]["tool_calls"][0]["id"] == "read_file:0"
    assert history[2]["tool_call_id"] == "read_file:0"
    assert json.loads(history[2]["content"])["timeout"] == 30


@pytest.mark.parametrize(
    ("scripts", "expected"),
    [
        ([http(200, answer(message={"content": "I did it."}))], "K3L-669"),
        ([calls(READ)], "K3L-667"),
        ([calls(READ), http(200, answer(message={"content": "Done."}))], "K3L-668"),
        ([calls(("write_file", {"path": "config.json", "content": "{"})),
          http(200, answer(message={"content": "Done."}))], "K3L-668"),
        ([calls(READ), error(400, "thinking is enabled but reasoning_content is missing in "
                             "assistant tool call message at index 1", "x")], "K3L-254"),
        ([calls(READ), error(400, "tool_call_id  is not found", "x")], "K3L-262"),
    ],
)  # fmt: skip
def test_agent_fails(scripts: list[Any], expected: str) -> None:
    with FaultyServer(scripts) as server:
        found = run(server, "agent", agent_turns=3)["link/agent"]
    assert found.outcome is Outcome.FAIL
    assert codes(found)[0] == expected


@pytest.mark.parametrize(
    "path", ["../outside.txt", "/etc/passwd", "sub/../../x", "a\0b", "", "link", "x" * 300, None, 7]
)
def test_agent_tools_stay_in_their_folder(path: Any, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    outside = tmp_path / "outside.txt"
    outside.write_text("secret")
    (folder / "link").symlink_to(outside)
    shop = Workshop(folder)
    for name in ("read_file", "write_file", "validate_json"):
        result = shop.call(name, {"path": path, "content": "changed"})
        assert result.startswith("error")
    assert outside.read_text() == "secret"
    assert sorted(p.name for p in folder.iterdir()) == ["link"]


def test_agent_is_skipped_where_tools_fail() -> None:
    def ignore_tools(request: Request) -> bytes:
        word = last_words(request).split()[-1]
        return http(200, answer(message={"content": word}))

    with FaultyServer([serve(ignore_tools)]) as server:
        findings = run(server, "chat", "tools", "agent")
    assert findings["link/tools"].outcome is Outcome.FAIL
    assert findings["link/agent"].outcome is Outcome.SKIPPED
    assert findings["link/agent"].notes[0].values["slug"] == "tools.ignored"


@pytest.mark.parametrize("wire", ["anthropic", "responses"])
def test_other_wires_pass_at_the_demo(wire: str) -> None:
    name = {"anthropic": "messages", "responses": "responses"}[wire]
    with DemoServer() as demo:
        base = demo.base_url.removesuffix("/v1") if wire == "anthropic" else demo.base_url
        findings = run(demo, protocol=wire, base_url=base)
    assert list(findings) == [
        "link/lint", "link/transport", f"link/{name}", "link/stream", "link/tools",
    ]  # fmt: skip
    assert {f.outcome for f in findings.values()} == {Outcome.PASS}
    assert findings["link/stream"].metrics["first_token_seconds"] >= 0
    assert findings["link/stream"].metrics["completion_tokens"] > 0
    places = {"anthropic": "message_start + message_delta", "responses": "response.usage"}
    assert findings["link/stream"].evidence["usage_place"] == places[wire]
    assert cost(LinkRequest(protocol=wire))[0] == 3


@pytest.mark.parametrize("wire", ["anthropic", "responses"])
def test_other_wires_are_asked_in_their_own_words(wire: str) -> None:
    with FaultyServer([http(200, {"x": 1})]) as server:
        base = server.base_url.removesuffix("/v1") if wire == "anthropic" else server.base_url
        run(server, "stream", protocol=wire, base_url=base)
        run(server, "tools", protocol=wire, base_url=base)
        stream, tools = (r.json for r in server.requests)
    assert stream["stream"] is True
    assert "stream_options" not in stream
    if wire == "anthropic":
        assert tools["tools"][0]["input_schema"]["required"] == ["room", "slot", "guests"]
        assert tools["tool_choice"] == {"type": "any"}
        assert "reasoning_effort" not in tools
    else:
        assert tools["tools"][0]["parameters"]["required"] == ["room", "slot", "guests"]
        assert tools["tools"][0]["name"] == "book_room"
        assert tools["tool_choice"] == "required"


def test_a_failing_first_request_skips_the_stream_of_every_wire() -> None:
    with FaultyServer([http(200, {"x": 1})]) as server:
        base = server.base_url.removesuffix("/v1")
        found = run(server, protocol="anthropic", base_url=base)
    assert found["link/messages"].outcome is Outcome.FAIL
    assert found["link/stream"].outcome is Outcome.SKIPPED
    assert found["link/tools"].outcome is Outcome.SKIPPED
    assert len(server.requests) == 1


def test_the_url_is_corrected_on_every_wire() -> None:
    good = {"type": "message", "role": "assistant", "model": "kimi-k3", "stop_reason": "end_turn",
            "usage": {"input_tokens": 9, "output_tokens": 3},
            "content": [{"type": "text", "text": "x"}]}  # fmt: skip
    lost = http(404, {"detail": "Not Found"})
    scripts = [lost, lost, http(200, good)]
    with FaultyServer(scripts) as server:
        client = sdk("Claude Code", "anthropic")
        found = run(server, "messages", protocol="anthropic", client=client)["link/messages"]
        targets = [r.target for r in server.requests]
    assert targets == ["/v1/v1/messages", "/v1/v1/models", "/v1/messages"]
    assert codes(found) == ["K3L-703", "K3L-720"]


def test_messages_are_asked_as_claude_code_does() -> None:
    message = {"type": "message", "role": "assistant", "model": "kimi-k3", "stop_reason":
               "end_turn", "usage": {"input_tokens": 9, "output_tokens": 3},
               "content": [{"type": "text", "text": "hello"}]}  # fmt: skip
    with FaultyServer([http(200, message)]) as server:
        base = server.base_url.removesuffix("/v1") + "/anthropic"
        found = run(server, protocol="anthropic", base_url=base)["link/messages"]
        got = server.requests[-1]
    assert got.target == "/anthropic/v1/messages"
    assert got.headers["x-api-key"] == CANARY
    assert "authorization" not in got.headers
    assert got.headers["anthropic-version"] == "2023-06-01"
    assert got.json["max_tokens"] == 2048
    assert codes(found)[0] == "K3L-613"


def test_thinking_budget_on_other_wires() -> None:
    with DemoServer() as demo:
        base = demo.base_url.removesuffix("/v1")
        found = run(demo, protocol="anthropic", base_url=base, max_output_tokens=4)
        assert [d.code for d in found["link/messages"].diagnoses] == ["K3L-600"]
        found = run(demo, protocol="responses", max_output_tokens=4)
        assert [d.code for d in found["link/responses"].diagnoses] == ["K3L-600"]
