"""Event streams put together: of all three APIs, whatever is in their events."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3check.link.apis.events import StreamView, summarize
from k3check.link.wire.exchange import Event
from tests.link import catalogue as c

WORDS = (
    "type", "message", "delta", "content_block", "index", "text", "thinking", "partial_json",
    "usage", "input_tokens", "output_tokens", "stop_reason", "response", "output", "item",
    "arguments", "call_id", "name", "status", "choices", "error", "id", "model", "input",
)  # fmt: skip
KINDS = (
    "message_start", "content_block_start", "content_block_delta", "content_block_stop",
    "message_delta", "message_stop", "ping", "error", "response.created", "response.completed",
    "response.failed", "response.incomplete", "response.output_item.added",
    "response.output_text.delta", "response.function_call_arguments.delta",
    "response.reasoning_summary_text.delta", "response.", "tool_use", "function_call",
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
    | st.sampled_from(KINDS),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(WORDS), inner, max_size=6),
    max_leaves=12,
)  # fmt: skip
DOCUMENTS = st.dictionaries(st.sampled_from(WORDS), VALUES, max_size=8).flatmap(
    lambda made: st.sampled_from(KINDS).map(lambda kind: made | {"type": kind})
)


@settings(max_examples=100, deadline=None)
@given(st.lists(DOCUMENTS, max_size=6))
def test_no_event_makes_it_fail(documents: list[dict[str, Any]]) -> None:
    events = [Event(0.1 * i, str(d["type"]), json.dumps(d)) for i, d in enumerate(documents)]
    view = summarize(events)
    assert view.wire in ("", "openai", "anthropic", "responses")
    assert all(isinstance(call.name, str) for call in (view.answer.calls if view.answer else ()))


def events(*lines: str) -> list[Event]:
    found = []
    for at, line in enumerate(lines):
        name, _, data = line.partition("\n")
        found.append(Event(float(at), name.removeprefix("event: "), data.removeprefix("data: ")))
    return found


def test_messages_stream() -> None:
    view: StreamView = summarize(events(c.A_START, c.A_PING, *c.A_THINK, *c.A_TEXT, *c.A_END))
    assert view.answer is not None
    assert (view.answer.text, view.answer.reasoning) == (c.NONCE, "Say the word.")
    assert (view.answer.finish, view.answer.id, view.done) == ("end_turn", "msg_1", True)
    assert view.answer.usage is not None
    assert (view.answer.usage.prompt, view.answer.usage.completion) == (20, 10)
    # Time to first token counts thinking, and no ping: start, ping, block, delta.
    assert view.first_at == 3.0
    assert view.content_at == 7.0


@pytest.mark.parametrize(
    ("lines", "finish"),
    [((c.A_START, *c.A_THINK, *c.A_TOOL, c.ended("tool_use"), c.A_END[1]), "tool_use"),
     ((c.R_START, c.R_THINK, *c.R_TOOL, c.R_END), "completed")],
)  # fmt: skip
def test_a_tool_call_in_pieces(lines: tuple[str, ...], finish: str) -> None:
    view = summarize(events(*lines))
    assert view.answer is not None
    (call,) = view.answer.calls
    assert (call.name, json.loads(call.arguments)) == ("book_room", {"room": "Curie", "hour": 15})
    assert call.id in ("toolu_1", "call_1")
    assert view.answer.finish == finish
    assert view.tool_problem == view.order_problem == ""


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ({"cached_tokens": 8}, "cached_tokens"),
        ({"prompt_tokens_details": {"cached_tokens": 8}}, "prompt_tokens_details.cached_tokens"),
        ({"cache_read_input_tokens": 8}, "cache_read_input_tokens"),
        ({"prompt_cache_hit_tokens": 8}, "prompt_cache_hit_tokens"),
    ],
)
@pytest.mark.parametrize("place", ["usage", "choices[0].usage", "message_start + message_delta"])
def test_cached_tokens_in_every_spelling_and_place(
    spelling: dict[str, Any], name: str, place: str
) -> None:
    counts = c.usage(20, 10) | spelling
    if place == "usage":
        data = [c.ROLE, c.TEXT, c.chunk({}, "stop", usage=counts)]
    elif place == "choices[0].usage":
        choice = {"index": 0, "delta": {}, "finish_reason": "stop", "usage": counts}
        data = [c.ROLE, c.TEXT, {**c.chunk(), "choices": [choice]}]
    else:
        message = c.MESSAGE | {"usage": {"input_tokens": 20, "output_tokens": 1} | spelling}
        lines = (c.named("message_start", message=message), *c.A_TEXT, *c.A_END)
        view = summarize(events(*lines))
        data = []
    if data:
        view = summarize([Event(0.0, "message", json.dumps(d)) for d in data])
    assert view.answer is not None
    assert view.answer.usage is not None
    assert view.answer.usage.place == place
    assert (view.answer.usage.cached, view.answer.usage.cached_as) == (8, name)
    assert (view.answer.usage.prompt, view.answer.usage.completion) == (20, 10)
