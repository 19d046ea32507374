"""Chat completions, OpenAI's older API: what K3 is usually asked through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.link.apis.answers import Answer, calls_of, content_of, reasoning_of, usage_of
from k3check.link.wire.jsonsafe import get

if TYPE_CHECKING:
    from k3check.link.apis.building import Building


def from_chat(document: Any) -> Answer | None:
    """A chat completion; None if it has no first choice with a message."""
    choices = get(document, "choices")
    message = get(document, "choices", 0, "message")
    if not isinstance(choices, list) or not isinstance(message, dict):
        return None
    usage = usage_of(get(document, "usage"), "usage") or usage_of(
        get(document, "choices", 0, "usage"), "choices[0].usage"
    )
    calls, count = calls_of(message.get("tool_calls"))
    reasoning, field = reasoning_of(message)
    finish = get(document, "choices", 0, "finish_reason")
    created = get(document, "created")
    return Answer(
        content_of(message.get("content")),
        reasoning,
        field,
        calls,
        count,
        finish if isinstance(finish, str) else None,
        str(get(document, "id") or ""),
        str(get(document, "model") or ""),
        created if isinstance(created, (int, float)) and not isinstance(created, bool) else None,
        usage,
        len(choices),
        isinstance(message.get("content"), list),
    )


def take(made: Building, at: float, document: dict[str, Any]) -> None:
    """A chat completion chunk."""
    usage = usage_of(document.get("usage"), "usage")
    choices = document.get("choices")
    if not isinstance(choices, list):
        if usage is not None:
            made.oddities.add("usage-chunk-without-choices")
            made.usage = usage
        else:
            made.oddities.add("chunk-without-choices")
        return
    made.chunks += 1
    made.wire = made.wire or "openai"
    made.id = made.id or str(document.get("id") or "")
    made.model = made.model or str(document.get("model") or "")
    created = document.get("created")
    if made.created is None and isinstance(created, (int, float)):
        made.created = created
    if usage is not None:
        made.usage = usage
    if not choices:
        if made.chunks == 1 and usage is None:
            made.oddities.add("empty-choices-first")
        return
    choice = choices[0]
    if made.usage is None:
        made.usage = usage_of(get(choice, "usage"), "choices[0].usage")
    delta = get(choice, "delta")
    if delta is None and get(choice, "message") is not None:
        made.oddities.add("message-instead-of-delta")
        delta = get(choice, "message")
    reasoning, name = reasoning_of(delta)
    if reasoning:
        made.reasoning_field = made.reasoning_field or name
        made.text(at, reasoning, thinking=True)
    content = get(delta, "content")
    made.parts = made.parts or isinstance(content, list)
    text = content_of(content)
    if text is not None:
        made.text(at, text, thinking=False)
    calls = get(delta, "tool_calls")
    if isinstance(calls, list):
        for piece in calls:
            made.tool(piece)
    finish = get(choice, "finish_reason")
    if isinstance(finish, str):
        made.finish = finish
