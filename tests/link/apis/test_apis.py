"""The probes on demand on every API: each asks in that API's words and reads its answers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from k3check.link import check, cost
from k3check.link.apis.answers import usage_of
from k3check.link.demo import DemoServer
from k3check.link.demo.history import as_chat
from k3check.link.request import LinkRequest, Secret
from k3check.model import Finding, Outcome
from k3check.report.listener import Silent
from tests.link import catalogue as c
from tests.link.conftest import CANARY
from tests.link.faulty import FaultyServer, Request, answer, chunk, http, sse

if TYPE_CHECKING:
    from collections.abc import Callable

WIRES = ("openai", "anthropic", "responses")
GATES = {"openai": "chat", "anthropic": "messages", "responses": "responses"}
ROUTES = {
    "openai": "/v1/chat/completions",
    "anthropic": "/v1/messages",
    "responses": "/v1/responses",
}


def run(
    server: FaultyServer | DemoServer, wire: str, *probes: str, **changes: Any
) -> dict[str, Finding]:
    base = server.base_url
    made = LinkRequest(
        **{
            "base_url": base.removesuffix("/v1") if wire == "anthropic" else base,
            "api_key": Secret(server.api_key if isinstance(server, DemoServer) else CANARY),
            "model": "kimi-k3",
            "protocol": wire,
            "timeout_s": 5,
            "max_retries": 0,
            "probes": probes,
            "needle_tokens": 3000,
        }
        | changes
    )
    found = {f.id.removeprefix("link/"): f for f in check(made, Silent())}
    if isinstance(server, FaultyServer):
        assert {r.target for r in server.requests} <= {ROUTES[wire]}
    return found


def codes(finding: Finding) -> list[str]:
    return [d.code for d in finding.diagnoses] + [n.code for n in finding.notes]


@dataclass(frozen=True)
class Said:
    """What a model says, in an API's words.

    Attributes:
        text: the answer.
        call: the name and the arguments of a tool.
        prompt, cached: what is counted of the prompt; ``cached`` is a part of it.
    """

    text: str = ""
    call: tuple[str, dict[str, Any]] | None = None
    prompt: int = 20
    cached: int | None = None

    def usage(self, wire: str) -> dict[str, Any]:
        if wire == "anthropic":
            beside = {} if self.cached is None else {"cache_read_input_tokens": self.cached}
            return {"input_tokens": self.prompt - (self.cached or 0), "output_tokens": 10} | beside
        if wire == "responses":
            inside = {} if self.cached is None else {"cached_tokens": self.cached}
            return {"input_tokens": self.prompt, "output_tokens": 10,
                    "total_tokens": self.prompt + 10, "input_tokens_details": inside}  # fmt: skip
        more = {} if self.cached is None else {"cached_tokens": self.cached}
        return c.usage(self.prompt, 10, **more)

    def whole(self, wire: str) -> bytes:
        name, arguments = self.call or ("", {})
        if wire == "anthropic":
            blocks: list[Any] = [{"type": "thinking", "thinking": "Hm.", "signature": "sig"}]
            blocks.append({"type": "text", "text": self.text})
            if self.call:
                blocks.append({"type": "tool_use", "id": "id-1", "name": name, "input": arguments})
            reason = "tool_use" if self.call else "end_turn"
            return http(200, c.MESSAGE | {"content": blocks, "stop_reason": reason,
                                          "usage": self.usage(wire)})  # fmt: skip
        if wire == "responses":
            items: list[Any] = [{"type": "reasoning", "id": "rs_1",
                                 "summary": [{"type": "summary_text", "text": "Hm."}]}]  # fmt: skip
            if self.call:
                items.append({"type": "function_call", "id": "fc_1", "call_id": "id-1",
                              "name": name, "arguments": json.dumps(arguments)})  # fmt: skip
            else:
                part = {"type": "output_text", "text": self.text, "annotations": []}
                items.append({"type": "message", "role": "assistant", "content": [part]})
            return http(200, c.RESPONSE | {"status": "completed", "output": items,
                                           "usage": self.usage(wire)})  # fmt: skip
        message: dict[str, Any] = {"content": self.text, "reasoning_content": "Hm."}
        if self.call:
            function = {"name": name, "arguments": json.dumps(arguments)}
            message["tool_calls"] = [{"id": "id-1", "type": "function", "function": function}]
        finish = {"finish_reason": "tool_calls" if self.call else "stop"}
        return http(200, answer(message=message, choice=finish, usage=self.usage(wire)))

    def stream(self, wire: str) -> bytes:
        if wire == "anthropic":
            start = c.named("message_start", message=c.MESSAGE | {"usage": self.usage(wire)})
            text = (
                c.named("content_block_start", index=1, content_block={"type": "text", "text": ""}),
                c.named("content_block_delta", index=1,
                        delta={"type": "text_delta", "text": self.text}),
                c.named("content_block_stop", index=1),
            )  # fmt: skip
            return sse(start, *c.A_THINK, *text, *c.A_END)
        if wire == "responses":
            text_ = c.named("response.output_text.delta", output_index=1, delta=self.text)
            whole = c.RESPONSE | {"status": "completed", "usage": self.usage(wire)}
            return sse(c.R_START, c.R_THINK, text_, c.named("response.completed", response=whole))
        parts = [chunk({"reasoning_content": "Hm."}), chunk({"content": self.text})]
        return sse(*parts, chunk({}, "stop", usage=self.usage(wire)), c.DONE)


def refused(wire: str, status: int, message: str, kind: str = "invalid_request_error") -> bytes:
    error = {"type": kind, "message": message}
    return http(status, {"type": "error", "error": error} if wire == "anthropic" else
                {"error": error})  # fmt: skip


def serve(make: Callable[[Request], bytes]) -> Callable[[Any, Request], None]:
    return lambda connection, request: connection.send(make(request))


def asked(wire: str, request: Request) -> Any:
    """The user's message, as one text."""
    body = request.json
    if wire == "responses":
        return body["input"]
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


@pytest.mark.parametrize("wire", WIRES)
def test_everything_passes_at_the_demo(wire: str) -> None:
    with DemoServer() as demo:
        found = run(demo, wire, profile="full")
    assert list(found) == [
        "lint", "transport", "models", GATES[wire], "stream", "tools", "agent", "cache", "params",
        "oracle", "negative", "needle",
    ]  # fmt: skip
    outcomes = {name: finding.outcome for name, finding in found.items()}
    other = outcomes.pop("oracle")
    assert set(outcomes.values()) == {Outcome.PASS}
    assert other is (Outcome.PASS if wire == "openai" else Outcome.SKIPPED)
    assert found["agent"].metrics["tool_calls"] == 3
    assert found["cache"].metrics["cached_tokens"] >= 4096
    assert found["params"].metrics["refused"] == (5 if wire == "openai" else 2)
    assert codes(found["negative"]) == []


@pytest.mark.parametrize("wire", WIRES[1:])
def test_what_speaks_chat_completions_only_is_skipped_with_the_reason(wire: str) -> None:
    with FaultyServer([http(200, answer())]) as server:
        found = run(server, wire, "oracle")["oracle"]
        assert server.requests == []
    assert found.outcome is Outcome.SKIPPED
    assert codes(found) == ["K3L-917"]
    assert found.notes[0].values["protocol"] == wire
    one = LinkRequest(protocol=wire, probes=("oracle",))
    assert cost(one) == (0, 0)


@pytest.mark.parametrize("wire", WIRES)
def test_a_failing_first_request_skips_what_needs_it(wire: str) -> None:
    with FaultyServer([http(200, {"x": 1})]) as server:
        found = run(server, wire, GATES[wire], "agent", "cache", "params", "negative", "needle")
        assert len(server.requests) == 1
    assert found.pop("lint").outcome is not Outcome.FAIL
    assert found.pop(GATES[wire]).outcome is Outcome.FAIL
    assert {f.outcome for f in found.values()} == {Outcome.SKIPPED}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("cached", "outcome", "expected"),
    [(4096, "pass", "K3L-660"), (0, "acceptable", "K3L-658"), (None, "skipped", "K3L-659")],
)
def test_cache(cached: int | None, outcome: str, expected: str, wire: str) -> None:
    with FaultyServer([Said("one", prompt=4200, cached=cached).stream(wire)]) as server:
        found = run(server, wire, "cache")["cache"]
        bodies = [r.json for r in server.requests]
        first, second = (asked(wire, r) for r in server.requests)
    assert found.outcome.value == outcome
    assert expected in codes(found)
    said = [*found.diagnoses, *found.notes]
    assert all(d.values["prompt"] == 4200 for d in said if d.code == expected and cached == 4096)
    prefix = first[: first.rindex("\n")]
    assert second.startswith(prefix)
    assert len(prefix) > 4096 * 4
    assert all(body["stream"] is True for body in bodies)
    assert [("stream_options" in body) for body in bodies] == [wire == "openai"] * 2
    if wire == "anthropic":  # as Claude Code marks what is to be kept
        marks = [[p.get("cache_control") for p in b["messages"][0]["content"]] for b in bodies]
        assert marks == [[{"type": "ephemeral"}, None]] * 2


@pytest.mark.parametrize("wire", WIRES)
def test_needle(wire: str) -> None:
    def tell(request: Request) -> bytes:
        return Said(asked(wire, request).split()[5].rstrip("."), prompt=3100).stream(wire)

    with FaultyServer([serve(tell)]) as server:
        found = run(server, wire, "needle")["needle"]
        sent = server.requests[0].json
    assert found.outcome is Outcome.PASS
    assert found.metrics["first_token_seconds"] >= 0
    limits = {"openai": "max_completion_tokens", "anthropic": "max_tokens",
              "responses": "max_output_tokens"}  # fmt: skip
    assert [name for name in limits.values() if name in sent] == [limits[wire]]
    for prompt, expected in ((3100, "K3L-661"), (500, "K3L-662")):
        with FaultyServer([Said("I do not know", prompt=prompt).stream(wire)]) as server:
            found = run(server, wire, "needle")["needle"]
        assert found.outcome is Outcome.FAIL
        assert codes(found) == [expected]


@pytest.mark.parametrize("name", ["cache_read_input_tokens", "cache_creation_input_tokens"])
def test_a_long_context_that_the_cache_took_was_not_cut(name: str) -> None:
    def tell(request: Request) -> bytes:
        value = asked("anthropic", request).split()[5].rstrip(".")
        usage = {"input_tokens": 12, "output_tokens": 1, name: 3088}
        start = c.named("message_start", message=c.MESSAGE | {"usage": usage})
        text = c.named("content_block_start", index=1,
                       content_block={"type": "text", "text": value})  # fmt: skip
        return sse(start, *c.A_THINK, text, c.named("content_block_stop", index=1), *c.A_END)

    with FaultyServer([serve(tell)]) as server:
        found = run(server, "anthropic", "needle")["needle"]
    assert found.outcome is Outcome.PASS


def test_the_whole_prompt_has_what_is_counted_beside_it() -> None:
    def whole(**counts: int) -> int | None:
        usage = usage_of(counts, "usage")
        return usage.whole_prompt if usage is not None else None

    apart = {"cache_read_input_tokens": 100, "cache_creation_input_tokens": 30}
    assert whole(input_tokens=7, output_tokens=1, **apart) == 137
    assert whole(input_tokens=7, output_tokens=1) == 7
    # With OpenAI's name the cache's part is inside.
    assert whole(prompt_tokens=137, completion_tokens=1, **apart) == 137
    empty = usage_of({"input_tokens": 0, "output_tokens": 5, "cache_creation_input_tokens": 9}, "")
    assert empty is not None
    assert empty.oddities == ()


@pytest.mark.parametrize("wire", WIRES)
def test_params(wire: str) -> None:
    names = ["temperature", "top_p"]
    names += ["n", "presence_penalty", "frequency_penalty"] if wire == "openai" else []

    def strict(request: Request) -> bytes:
        wrong = next(name for name in names if name in request.json)
        return refused(wire, 400, f"invalid {wrong}: only 1 is allowed for this model")

    with FaultyServer([serve(strict)]) as server:
        found = run(server, wire, "params")["params"]
        sent = [r.json for r in server.requests]
    assert [[n for n in body if n in names] for body in sent] == [[name] for name in names]
    assert found.outcome is Outcome.PASS
    assert found.metrics["refused"] == len(names)
    assert codes(found) == []
    assert cost(LinkRequest(protocol=wire, probes=("params",)))[0] == len(names)
    with FaultyServer([Said("x").whole(wire)]) as server:
        found = run(server, wire, "params")["params"]
    assert codes(found) == ["K3L-653"] * len(names)
    with FaultyServer([refused(wire, 400, "bad request")]) as server:
        found = run(server, wire, "params")["params"]
    assert found.outcome is Outcome.SKIPPED
    assert codes(found) == ["K3L-655"] * len(names)


@pytest.mark.parametrize("wire", WIRES)
def test_negative(wire: str) -> None:
    with FaultyServer([Said("x").whole(wire)]) as server:
        found = run(server, wire, "negative")["negative"]
        header = "x-api-key" if wire == "anthropic" else "authorization"
        keys = [r.headers[header] for r in server.requests]
        models = [r.json["model"] for r in server.requests]
    assert found.outcome is Outcome.ACCEPTABLE
    assert codes(found) == ["K3L-664", "K3L-665"]
    assert [CANARY in key for key in keys] == [False, True]
    assert models[0] == "kimi-k3"
    assert models[1] != "kimi-k3"
    scripts = [
        refused(wire, 401, "Invalid Authentication", "invalid_authentication_error"),
        refused(wire, 404, "Not found the model x or Permission denied", "not_found_error"),
    ]
    with FaultyServer(scripts) as server:
        found = run(server, wire, "negative")["negative"]
    assert found.outcome is Outcome.PASS
    assert codes(found) == []


FIXED = json.dumps({"name": "demo", "timeout": 60, "retries": 3})
READ = ("read_file", {"path": "config.json"})
WRITE = ("write_file", {"path": "config.json", "content": FIXED})


def test_agent_on_the_messages_api_sends_blocks_back_as_they_came() -> None:
    scripts = [Said(call=READ), Said(call=WRITE), Said("Done.")]
    with FaultyServer([s.whole("anthropic") for s in scripts]) as server:
        found = run(server, "anthropic", "agent")["agent"]
        first, second = server.requests[0].json, server.requests[1].json
    assert found.outcome is Outcome.PASS
    assert found.metrics["tool_calls"] == 2
    tool = first["tools"][1]
    assert set(tool) == {"name", "description", "input_schema"}
    assert tool["input_schema"]["required"] == ["path", "content"]
    task, said, told = second["messages"]
    assert [task] == first["messages"]
    # The thinking with its signature, and no empty text, which that API refuses.
    assert said == {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "Hm.", "signature": "sig"},
        {"type": "tool_use", "id": "id-1", "name": READ[0], "input": READ[1]},
    ]}  # fmt: skip
    assert told["role"] == "user"
    (result,) = told["content"]
    assert (result["type"], result["tool_use_id"]) == ("tool_result", "id-1")
    assert json.loads(result["content"])["timeout"] == 30


def test_agent_on_the_responses_api_sends_items_back_as_they_came() -> None:
    scripts = [Said(call=READ), Said(call=WRITE), Said("Done.")]
    with FaultyServer([s.whole("responses") for s in scripts]) as server:
        found = run(server, "responses", "agent")["agent"]
        first, second = server.requests[0].json, server.requests[1].json
    assert found.outcome is Outcome.PASS
    assert found.metrics["tool_calls"] == 2
    assert first["tools"][0]["name"] == "read_file"
    assert first["tools"][0]["type"] == "function"
    task, thought, call, told = second["input"]
    assert [task] == first["input"]
    assert thought["summary"] == [{"type": "summary_text", "text": "Hm."}]
    assert (call["type"], call["call_id"]) == ("function_call", "id-1")
    assert (told["type"], told["call_id"]) == ("function_call_output", "id-1")
    assert json.loads(told["output"])["timeout"] == 30


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        ([Said("I did it.")], "K3L-669"),
        ([Said(call=READ)], "K3L-667"),
        ([Said(call=READ), Said("Done.")], "K3L-668"),
    ],
)
def test_agent_fails(turns: list[Said], expected: str, wire: str) -> None:
    with FaultyServer([turn.whole(wire) for turn in turns]) as server:
        found = run(server, wire, "agent", agent_turns=3)["agent"]
    assert found.outcome is Outcome.FAIL
    assert codes(found)[0] == expected


TASK = {"role": "user", "content": "Do it."}
USE = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
USED = {"type": "tool_result", "tool_use_id": "a", "content": "done"}
CALL = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
CALLED = {"type": "function_call_output", "call_id": "a", "output": "done"}


@pytest.mark.parametrize(
    ("wire", "field", "history", "expected"),
    [
        ("anthropic", "messages",
         [TASK, {"role": "assistant", "content": [USE]}, {"role": "user", "content": [USED]}],
         "reasoning_content is missing"),
        ("anthropic", "messages", [TASK, {"role": "user", "content": [USED]}],
         "tool_call_id  is not found"),
        ("responses", "input", [TASK, CALL, CALLED], "reasoning_content is missing"),
        ("responses", "input", [TASK, CALLED], "tool_call_id  is not found"),
    ],
)  # fmt: skip
def test_the_demo_refuses_a_history_as_k3_does_on_every_api(
    wire: str, field: str, history: list[Any], expected: str
) -> None:
    with DemoServer() as demo:
        got = httpx.post(
            demo.base_url.removesuffix("/v1") + ROUTES[wire],
            json={"model": "kimi-k3", field: history},
            headers={"x-api-key": demo.api_key},
            trust_env=False,
        )
    assert got.status_code == 400
    assert expected in got.text


def test_a_history_of_every_api_is_the_same_conversation() -> None:
    plain = [
        {"role": "user", "content": "Do it."},
        {"role": "assistant", "content": "", "reasoning_content": "Hm.", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}]},
        {"role": "tool", "tool_call_id": "a", "content": "done"},
    ]  # fmt: skip
    blocks = [
        {"role": "user", "content": "Do it."},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": ""},
            {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "done"}]},
    ]  # fmt: skip
    items = [
        {"role": "user", "content": "Do it."},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": '{"x": 1}'},
        {"type": "function_call_output", "call_id": "a", "output": "done"},
    ]
    assert as_chat(plain) == plain
    assert as_chat(blocks) == plain
    assert as_chat(items) == plain
