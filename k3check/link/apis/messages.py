"""Anthropic's Messages, the API of Claude Code.

What an order of events breaks was read in the official SDK (anthropic
``lib/streaming/_messages.py`` and ``_streaming.py``).
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from k3check.link.apis.answers import MOST_CALLS, Answer, ToolCall, usage_of
from k3check.link.apis.building import text_at
from k3check.link.wire.jsonsafe import get

if TYPE_CHECKING:
    from k3check.link.apis.answers import Usage
    from k3check.link.apis.building import Building
    from k3check.link.wire.exchange import Event

KINDS = (
    "message_start", "content_block_start", "content_block_delta", "content_block_stop",
    "message_delta", "message_stop",
)  # fmt: skip
_BLOCKS = ("content_block_delta", "content_block_stop")


def from_messages(document: Any) -> Answer | None:
    """An Anthropic message; None if it is none."""
    blocks = get(document, "content")
    if not isinstance(blocks, list) or get(document, "choices") is not None:
        return None
    if get(document, "type") not in ("message", None) or get(document, "role") is None:
        return None
    text = "".join(str(get(b, "text") or "") for b in blocks if get(b, "type") == "text")
    thinking = "".join(
        str(get(b, "thinking") or "") for b in blocks if get(b, "type") == "thinking"
    )
    uses = [b for b in blocks if get(b, "type") == "tool_use"]
    finish = get(document, "stop_reason")
    return Answer(
        text if any(get(b, "type") == "text" for b in blocks) else None,
        thinking,
        "thinking" if thinking else "",
        tuple(
            ToolCall(str(get(b, "id") or ""), str(get(b, "name") or ""), get(b, "input"))
            for b in uses[:MOST_CALLS]
        ),
        len(uses),
        finish if isinstance(finish, str) else None,
        str(get(document, "id") or ""),
        str(get(document, "model") or ""),
        None,
        usage_of(get(document, "usage"), "usage"),
        1,
    )


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


def take(made: Building, event: Event, kind: str, document: dict[str, Any]) -> None:
    """Take an event of Anthropic's stream."""
    _order(made, event, kind, document)
    at = event.at
    if kind == "message_start":
        made.id = text_at(document, "message", "id")
        made.model = text_at(document, "message", "model")
        made.usage = usage_of(get(document, "message", "usage"), "message_start")
    elif kind == "content_block_start":
        block = document.get("content_block")
        made.text(at, text_at(block, "text"), thinking=False)
        made.thought(at, text_at(block, "thinking"), "thinking")
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
        made.text(at, text_at(delta, "text"), thinking=False)
        made.thought(at, text_at(delta, "thinking"), "thinking")
        piece = get(delta, "partial_json")
        if isinstance(piece, str) and piece:
            made.tool({"index": document.get("index"), "function": {"arguments": piece}})
    elif kind == "message_delta":
        finish = get(document, "delta", "stop_reason")
        made.finish = finish if isinstance(finish, str) else made.finish
        made.usage = _merged(made.usage, usage_of(document.get("usage"), "message_delta"))
    elif kind == "message_stop":
        made.done = True


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
