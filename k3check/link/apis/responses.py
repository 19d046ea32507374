"""Responses, OpenAI's newer API: the only one that Codex speaks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.link.apis.answers import MOST_CALLS, Answer, ToolCall, content_of, usage_of
from k3check.link.apis.building import text_at
from k3check.link.apis.errors import ErrorInfo
from k3check.link.wire.jsonsafe import get

if TYPE_CHECKING:
    from k3check.link.apis.building import Building

_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")


def from_responses(document: Any) -> Answer | None:
    """A Responses object; None if it is none."""
    items = get(document, "output")
    if not isinstance(items, list):
        return None
    texts = [content_of(get(i, "content")) or "" for i in items if get(i, "type") == "message"]
    thoughts = [
        content_of(get(i, "summary")) or content_of(get(i, "content")) or ""
        for i in items
        if get(i, "type") == "reasoning"
    ]
    uses = [i for i in items if get(i, "type") == "function_call"]
    status = get(document, "status")
    reason = get(document, "incomplete_details", "reason")
    finish = "length" if reason == "max_output_tokens" else status
    reasoning = "".join(thoughts)
    return Answer(
        "".join(texts) if texts else None,
        reasoning,
        "output[reasoning]" if reasoning else "",
        tuple(
            ToolCall(str(get(i, "call_id") or ""), str(get(i, "name") or ""), get(i, "arguments"))
            for i in uses[:MOST_CALLS]
        ),
        len(uses),
        finish if isinstance(finish, str) else None,
        str(get(document, "id") or ""),
        str(get(document, "model") or ""),
        get(document, "created_at"),
        usage_of(get(document, "usage"), "usage"),
        1,
    )


def take(made: Building, at: float, kind: str, document: dict[str, Any]) -> None:
    """Take an event of the Responses stream."""
    response = document.get("response")
    made.id = made.id or text_at(response, "id")
    made.model = text_at(response, "model") or made.model
    if kind == "response.output_text.delta":
        made.text(at, text_at(document, "delta"), thinking=False)
    elif kind.startswith("response.reasoning") and kind.endswith(".delta"):
        made.thought(at, text_at(document, "delta"), "output[reasoning]")
    elif kind == "response.output_item.added" and get(document, "item", "type") == "function_call":
        _function(made, document, text_at(document, "item", "arguments"))
    elif kind == "response.function_call_arguments.delta":
        piece = text_at(document, "delta")
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
            text_at(error, "message") or "response.failed",
            text_at(error, "type"),
            text_at(error, "code"),
            shape="openai",
        )
