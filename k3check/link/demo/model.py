"""What the demo endpoint answers: plain functions from a request's body to a reply.

Refusals have the wording of the official service; source: sections A2 and A6 of the link
specification.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from k3check.link.demo.history import as_chat
from k3check.released import CONTEXT, SAMPLING

_EFFORTS = ("low", "high", "max")
# About as many characters as a token has; it need not be exact, only the same for the same text.
_CHARACTERS = 4
_OVERHEAD = 10


@dataclass(frozen=True)
class Refusal(Exception):  # noqa: N818 - what the service says, not what went wrong here
    """An error answer."""

    status: int
    type: str
    message: str


UNAUTHORIZED = Refusal(401, "invalid_authentication_error", "Invalid Authentication")


def no_route(path: str) -> Refusal:
    """The answer to a path that is none of the API's."""
    return Refusal(
        404, "resource_not_found_error", f"The requested resource {path[:100]} was not found"
    )


@dataclass(frozen=True)
class Reply:
    """An answer before it takes an API's shape; ``calls`` are (id, name, arguments)."""

    model: str
    content: str
    reasoning: str
    calls: tuple[tuple[str, str, dict[str, Any]], ...]
    finish: str
    prompt: int
    completion: int
    cached: int
    id: str = field(default_factory=lambda: f"chatcmpl-{secrets.token_hex(12)}")
    created: int = field(default_factory=lambda: int(time.time()))


def tokens(value: Any) -> int:
    """A stand-in for counting tokens."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return len(text) // _CHARACTERS + 1


def answer(body: dict[str, Any], model: str, cached: int) -> Reply:
    """The reply to a request of any of the three APIs.

    Raises:
        Refusal: the official service would refuse it.
    """
    _check(body, model)
    messages = _messages(body)
    _check_history(messages)
    prompt = tokens(messages) + tokens(body.get("tools") or "") + _OVERHEAD
    # The one prompt that is public with its count; see the oracle probe.
    if messages == [{"role": "assistant", "content": "你好"}]:
        prompt = 99
    if body.get("response_format"):
        prompt += tokens(body["response_format"])  # K3's template writes it into the prompt
    limit = _limit(body)
    if prompt + 1 > CONTEXT:
        raise Refusal(
            400, "invalid_request_error",
            f"Invalid request: Your request exceeded model token limit : {CONTEXT} "
            f"(requested: {prompt + limit})",
        )  # fmt: skip
    content, calls = _content(messages, _tools(body))
    reasoning = "The user asks for something simple; do exactly that."
    spent = tokens(reasoning)
    finish = "tool_calls" if calls else "stop"
    if spent >= limit:
        # Thinking is counted as output: a small limit leaves nothing for the answer.
        content, calls, finish = "", (), "length"
        reasoning = reasoning[: limit * _CHARACTERS]
        completion = limit
    else:
        completion = spent + tokens(content) + sum(tokens(c[2]) for c in calls)
    return Reply(model, content, reasoning, calls, finish, prompt, completion, min(cached, prompt))


def parse(raw: bytes) -> dict[str, Any]:
    """A request's body.

    Raises:
        Refusal: it is no JSON object.
        ValueError, RecursionError: it is no JSON at all.
    """
    body = json.loads(raw)
    if not isinstance(body, dict):
        raise Refusal(400, "invalid_request_error", "Invalid request: no object")
    return body


def _check(body: dict[str, Any], model: str) -> None:
    asked = body.get("model")
    if asked != model:
        raise Refusal(
            404, "resource_not_found_error",
            f"Not found the model {str(asked)[:100]} or Permission denied",
        )  # fmt: skip
    for name, value in SAMPLING.items():
        given = body.get(name)
        if given is not None and given != value:
            raise Refusal(
                400, "invalid_request_error",
                f"invalid {name}: only {value} is allowed for this model",
            )  # fmt: skip
    effort = body.get("reasoning_effort")
    if effort is not None and effort not in _EFFORTS:
        raise Refusal(400, "invalid_request_error", f"invalid reasoning_effort: {effort!s:.40}")
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") == "function":
        raise Refusal(
            400, "invalid_request_error",
            "tool_choice 'specified' is incompatible with thinking enabled",
        )  # fmt: skip


def _limit(body: dict[str, Any]) -> int:
    for name in ("max_completion_tokens", "max_tokens", "max_output_tokens"):
        value = body.get(name)
        if value is not None:
            if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= CONTEXT:
                raise Refusal(400, "invalid_request_error", f"invalid {name}: {value!s:.40}")
            return value
    return 131_072


def _messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    given = body.get("messages", body.get("input"))
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    if not isinstance(given, list) or not given or not all(isinstance(m, dict) for m in given):
        raise Refusal(400, "invalid_request_error", "Invalid request: messages are missing")
    return as_chat(given)


def _check_history(messages: list[dict[str, Any]]) -> None:
    """A tool-calling turn must come back with its thinking and with known ids."""
    known: set[str] = set()
    for index, message in enumerate(messages):
        calls = message.get("tool_calls")
        if message.get("role") == "assistant" and isinstance(calls, list) and calls:
            if not message.get("reasoning_content"):
                raise Refusal(
                    400, "invalid_request_error",
                    "thinking is enabled but reasoning_content is missing in assistant tool call "
                    f"message at index {index}",
                )  # fmt: skip
            known |= {str(c.get("id")) for c in calls if isinstance(c, dict)}
        if message.get("role") == "tool" and str(message.get("tool_call_id")) not in known:
            raise Refusal(400, "invalid_request_error", "tool_call_id  is not found")


def _tools(body: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The parameters' schema by the tool's name, from any of the three APIs."""
    found: dict[str, dict[str, Any]] = {}
    for tool in body.get("tools") or []:
        if not isinstance(tool, dict):
            continue
        inner = tool.get("function", tool)
        if isinstance(inner, dict) and isinstance(inner.get("name"), str):
            schema = inner.get("parameters") or inner.get("input_schema") or {}
            found[inner["name"]] = schema if isinstance(schema, dict) else {}
    return found if body.get("tool_choice") != "none" else {}


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(p.get("text") or "") for p in content if isinstance(p, dict))
    return content if isinstance(content, str) else ""


Calls = tuple[tuple[str, str, dict[str, Any]], ...]


def _content(messages: list[dict[str, Any]], tools: dict[str, Any]) -> tuple[str, Calls]:
    text = "\n".join(_text(m) for m in messages if m.get("role") == "user")
    if {"read_file", "write_file"} <= set(tools):
        return _agent(messages)
    if tools and messages[-1].get("role") != "tool":
        name, schema = next(iter(tools.items()))
        return "", ((f"{name}:0", name, _example(schema, text)),)
    found = re.search(r"The value of (\w+) is (\w+)\.", text)
    if found and re.search(rf"what is the value of {found.group(1)}\b", text, re.IGNORECASE):
        return found.group(2), ()
    if found := re.search(r"Reply with this word and nothing else: (\S+)", text):
        return found.group(1), ()
    return "Hello! How can I help?", ()


def _example(schema: dict[str, Any], text: str) -> Any:
    """A value that fits a schema, with words of the question where they fit."""
    kind = schema.get("type")
    if "enum" in schema:
        options = schema["enum"]
        return next((o for o in options if str(o).lower() in text.lower()), options[0])
    if kind == "object":
        return {k: _example(s, text) for k, s in (schema.get("properties") or {}).items()}
    if kind == "array":
        return [_example(schema.get("items") or {}, text)]
    if kind in ("integer", "number"):
        found = re.search(r"\d+", text)
        return int(found.group()) if found else 1
    return True if kind == "boolean" else "Curie" if "Curie" in text else "text"


def _agent(messages: list[dict[str, Any]]) -> tuple[str, Calls]:
    """Read the file, write it back with the timeout, have it checked, say so."""
    results = [m for m in messages if m.get("role") == "tool"]
    step = len(results)
    if step == 0:
        return "", (("read_file:0", "read_file", {"path": "config.json"}),)
    if step == 1:
        try:
            document = json.loads(_text(results[0]))
        except ValueError:
            document = {}
        if not isinstance(document, dict):
            document = {}
        document["timeout"] = 60
        text = json.dumps(document, indent=2)
        return "", (("write_file:1", "write_file", {"path": "config.json", "content": text}),)
    if step == 2:
        return "", (("validate_json:2", "validate_json", {"path": "config.json"}),)
    return "The timeout is 60 now and the file is valid JSON.", ()
