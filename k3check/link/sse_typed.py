"""The events of Anthropic's and of the Responses stream, which have a type each.

Sources: section A4 and A5 of the link specification; what an order of events breaks was read in the
official SDKs (anthropic ``lib/streaming/_messages.py`` and ``_streaming.py``).
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from k3check.link.answers import Answer, Usage, from_responses, usage_of
from k3check.link.extract import ErrorInfo
from k3check.link.jsonsafe import get

if TYPE_CHECKING:
    from k3check.link.exchange import Event
    from k3check.link.sse import Building

_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_KINDS = (
    "message_start", "content_block_start", "content_block_delta", "content_block_stop",
    "message_delta", "message_stop",
)  # fmt: skip
_BLOCKS = ("content_block_delta", "content_block_stop")


def take(made: Building, event: Event, document: dict[str, Any]) -> None:
    """Take one event with a ``type``."""
    kind = str(document["type"])
    if kind.startswith("response."):
        made.chunks += 1
        made.wire = made.wire or "responses"
        _response(made, event.at, kind, document)
    elif kind in _KINDS:
        made.chunks += 1
        made.wire = made.wire or "anthropic"
        _order(made, event, kind, document)
        _message(made, event.at, kind, document)
    elif kind != "ping" and made.wire in ("", "openai"):
        made.oddities.add("chunk-without-choices")


def _order(made: Building, event: Event, kind: str, document: dict[str, Any]) -> None:
    """Note the first thing that Anthropic's SDK drops or refuses."""
    problem = ""
    if event.name == "message":
        problem = f"{kind} has no event: line"
    elif kind != "message_start" and "message_start" not in made.seen:
        problem = f"{kind} before message_start"
    elif kind in _BLOCKS and f"block {document.get('index')}" not in made.seen:
        problem = f"{kind} without content_block_start"
    made.order_problem = made.order_problem or problem
    made.seen.add(kind)
    if kind == "content_block_start":
        made.seen.add(f"block {document.get('index')}")


def _message(made: Building, at: float, kind: str, document: dict[str, Any]) -> None:
    """An event of Anthropic's stream."""
    if kind == "message_start":
        made.id = _name(document, "message", "id")
        made.model = _name(document, "message", "model")
        made.usage = usage_of(get(document, "message", "usage"), "message_start")
    elif kind == "content_block_start":
        block = document.get("content_block")
        made.text(at, _name(block, "text"), thinking=False)
        _thought(made, at, _name(block, "thinking"), "thinking")
        if get(block, "type") == "tool_use":
            given = get(block, "input")
            made.tool({
                "index": document.get("index"),
                "id": get(block, "id"),
                "function": {
                    "name": get(block, "name"),
                    # Usually empty, and the pieces follow.
                    "arguments": json.dumps(given) if given else "",
                },
            })  # fmt: skip
    elif kind == "content_block_delta":
        delta = document.get("delta")
        made.text(at, _name(delta, "text"), thinking=False)
        _thought(made, at, _name(delta, "thinking"), "thinking")
        piece = get(delta, "partial_json")
        if isinstance(piece, str) and piece:
            made.tool({"index": document.get("index"), "function": {"arguments": piece}})
    elif kind == "message_delta":
        finish = get(document, "delta", "stop_reason")
        made.finish = finish if isinstance(finish, str) else made.finish
        made.usage = _merged(made.usage, usage_of(document.get("usage"), "message_delta"))
    elif kind == "message_stop":
        made.done = True


def _response(made: Building, at: float, kind: str, document: dict[str, Any]) -> None:
    """An event of the Responses stream."""
    response = document.get("response")
    made.id = made.id or _name(response, "id")
    made.model = _name(response, "model") or made.model
    if kind == "response.output_text.delta":
        made.text(at, _name(document, "delta"), thinking=False)
    elif kind.startswith("response.reasoning") and kind.endswith(".delta"):
        _thought(made, at, _name(document, "delta"), "output[reasoning]")
    elif kind == "response.output_item.added" and get(document, "item", "type") == "function_call":
        _function(made, document, _name(document, "item", "arguments"))
    elif kind == "response.function_call_arguments.delta":
        piece = _name(document, "delta")
        made.tool({"index": document.get("output_index"), "function": {"arguments": piece}})
    elif kind in _ENDS:
        made.done = True
        _ended(made, at, kind, document)


def _function(made: Building, document: dict[str, Any], arguments: str) -> None:
    item = document.get("item")
    made.tool({
        "index": document.get("output_index"),
        "id": get(item, "call_id"),
        "function": {"name": get(item, "name"), "arguments": arguments},
    })  # fmt: skip


def _ended(made: Building, at: float, kind: str, document: dict[str, Any]) -> None:
    """The last event holds the whole answer: what no piece brought is taken from it."""
    response = document.get("response")
    whole = from_responses(response) or Answer()
    status = get(response, "status")
    made.finish = whole.finish or (status if isinstance(status, str) else kind.partition(".")[2])
    made.usage = usage_of(get(response, "usage"), "response.usage")
    if not made.reasoning and whole.reasoning:
        made.reasoning.append(whole.reasoning)
        made.reasoning_field = whole.reasoning_field
    if not made.content:
        made.text(at, whole.text, thinking=False)
    if not made.calls:
        for index, call in enumerate(whole.calls):
            function = {"name": call.name, "arguments": call.arguments}
            made.tool({"index": index, "id": call.id, "function": function})
    if kind == "response.failed" and made.error is None:
        error = get(response, "error")
        made.error = ErrorInfo(
            _name(error, "message") or "response.failed",
            _name(error, "type"),
            _name(error, "code"),
            shape="openai",
        )


def _thought(made: Building, at: float, piece: str, field: str) -> None:
    if piece:
        made.reasoning_field = made.reasoning_field or field
        made.text(at, piece, thinking=True)


def _name(document: Any, *path: str) -> str:
    value = get(document, *path)
    return value if isinstance(value, str) else ""


def _merged(first: Usage | None, last: Usage | None) -> Usage | None:
    """Anthropic's counts come in two parts: the prompt first, the completion at the end."""
    if first is None or last is None:
        return first or last
    prompt = last.prompt if last.prompt is not None else first.prompt
    return replace(
        last,
        prompt=prompt,
        cached=last.cached if last.cached is not None else first.cached,
        cached_as=last.cached_as or first.cached_as,
        beside=last.beside if last.beside is not None else first.beside,
        place="message_start + message_delta",
    )
