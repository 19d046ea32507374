"""The shapes in which the demo endpoint answers: each API's document and its stream of events.

Source: sections A3-A5 of the link specification; the events of the messages and responses APIs are
those that the official SDKs read.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from k3check.link.demo.model import Reply


def _words(text: str) -> list[str]:
    return re.findall(r"\s*\S+", text)


def _pieces(text: str) -> list[str]:
    return re.findall(r".{1,6}", text, re.DOTALL)


def _halves(text: str) -> tuple[str, str]:
    half = len(text) // 2
    return text[:half], text[half:]


def _typed(kind: str, **fields: Any) -> tuple[str, str]:
    """An event whose name is its type."""
    return kind, json.dumps({"type": kind} | fields, ensure_ascii=False)


def _usage(reply: Reply) -> dict[str, Any]:
    return {
        "prompt_tokens": reply.prompt,
        "completion_tokens": reply.completion,
        "total_tokens": reply.prompt + reply.completion,
        "cached_tokens": reply.cached,
    }


def _tool_calls(reply: Reply) -> list[dict[str, Any]]:
    return [
        {
            "index": i,
            "id": ident,
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)},
        }
        for i, (ident, name, arguments) in enumerate(reply.calls)
    ]


def as_completion(reply: Reply) -> dict[str, Any]:
    """A chat completion."""
    message: dict[str, Any] = {
        "role": "assistant",
        "content": reply.content,
        "reasoning_content": reply.reasoning,
    }
    if reply.calls:
        message["tool_calls"] = _tool_calls(reply)
    choice = {"index": 0, "message": message, "finish_reason": reply.finish}
    return {
        "id": reply.id,
        "object": "chat.completion",
        "created": reply.created,
        "model": reply.model,
        "choices": [choice],
        "usage": _usage(reply),
    }


def as_chunks(reply: Reply, body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The chunks of a stream: role, thinking, text, end with usage, ``[DONE]``."""
    head = {
        "id": reply.id,
        "object": "chat.completion.chunk",
        "created": reply.created,
        "model": reply.model,
    }

    def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> tuple[str, str]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, **more}
        return "", json.dumps(head | {"choices": [choice]}, ensure_ascii=False)

    yield chunk({"role": "assistant", "content": ""})
    for piece in _words(reply.reasoning):
        yield chunk({"reasoning_content": piece})
    for piece in _pieces(reply.content):
        yield chunk({"content": piece})
    for call in _tool_calls(reply):
        arguments = call["function"]["arguments"]
        half, other = _halves(arguments)
        first = call | {"function": call["function"] | {"arguments": half}}
        yield chunk({"tool_calls": [first]})
        rest = {"index": call["index"], "function": {"arguments": other}}
        yield chunk({"tool_calls": [rest]})
    yield chunk({}, reply.finish, usage=_usage(reply))
    options = body.get("stream_options")
    if isinstance(options, dict) and options.get("include_usage"):
        yield "", json.dumps(head | {"choices": [], "usage": _usage(reply)})
    yield "", "[DONE]"


_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


def _counts(reply: Reply) -> dict[str, Any]:
    """The prompt's tokens; those from the cache are counted beside the others."""
    return {
        "input_tokens": reply.prompt - reply.cached,
        "cache_read_input_tokens": reply.cached,
    }


def _block(reply: Reply, kind: str) -> dict[str, Any]:
    if kind == "text":
        return {"type": "text", "text": reply.content}
    return {"type": "thinking", "thinking": reply.reasoning, "signature": ""}


def _tool_use(call: tuple[str, str, dict[str, Any]]) -> dict[str, Any]:
    return {"type": "tool_use", "id": call[0], "name": call[1], "input": {}}


def as_message(reply: Reply) -> dict[str, Any]:
    """An Anthropic message."""
    blocks = [_block(reply, "thinking")] + ([_block(reply, "text")] if reply.content else [])
    blocks += [_tool_use(call) | {"input": call[2]} for call in reply.calls]
    return {
        "id": reply.id,
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": blocks,
        "stop_reason": _REASONS[reply.finish],
        "stop_sequence": None,
        "usage": _counts(reply) | {"output_tokens": reply.completion},
    }


def as_message_events(reply: Reply) -> Iterator[tuple[str, str]]:
    """Anthropic's stream: the message, block after block, the reason for the end with the usage."""
    start = as_message(reply) | {"content": [], "stop_reason": None}
    start["usage"] = _counts(reply) | {"output_tokens": 1}
    yield _typed("message_start", message=start)
    yield _typed("ping")
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
        (
            {"type": "thinking", "thinking": "", "signature": ""},
            [{"type": "thinking_delta", "thinking": p} for p in _words(reply.reasoning)],
        )
    ]
    if reply.content:
        texts = [{"type": "text_delta", "text": p} for p in _pieces(reply.content)]
        blocks.append(({"type": "text", "text": ""}, texts))
    for call in reply.calls:
        arguments = json.dumps(call[2], ensure_ascii=False)
        parts = [{"type": "input_json_delta", "partial_json": p} for p in _halves(arguments)]
        blocks.append((_tool_use(call), parts))
    for index, (block, deltas) in enumerate(blocks):
        yield _typed("content_block_start", index=index, content_block=block)
        for delta in deltas:
            yield _typed("content_block_delta", index=index, delta=delta)
        yield _typed("content_block_stop", index=index)
    delta = {"stop_reason": _REASONS[reply.finish], "stop_sequence": None}
    yield _typed("message_delta", delta=delta, usage={"output_tokens": reply.completion})
    yield _typed("message_stop")


def as_response(reply: Reply) -> dict[str, Any]:
    """A Responses object."""
    items: list[dict[str, Any]] = [
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": reply.reasoning}],
        }
    ]
    if reply.content:
        part = {"type": "output_text", "text": reply.content, "annotations": []}
        items.append({"type": "message", "id": "msg_1", "role": "assistant", "content": [part]})
    items += [
        {
            "type": "function_call",
            "id": f"fc_{i}",
            "call_id": ident,
            "name": name,
            "arguments": json.dumps(arguments),
        }
        for i, (ident, name, arguments) in enumerate(reply.calls)
    ]
    cut = reply.finish == "length"
    return {
        "id": reply.id,
        "object": "response",
        "created_at": reply.created,
        "model": reply.model,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "output": items,
        "usage": {
            "input_tokens": reply.prompt,
            "output_tokens": reply.completion,
            "total_tokens": reply.prompt + reply.completion,
            "input_tokens_details": {"cached_tokens": reply.cached},
        },
    }


def as_response_events(reply: Reply) -> Iterator[tuple[str, str]]:
    """The stream of the Responses API: item after item, the whole response at the end."""
    whole = as_response(reply)
    begun = whole | {"status": "in_progress", "output": [], "usage": None}
    begun["incomplete_details"] = None
    yield _typed("response.created", response=begun)
    for index, item in enumerate(whole["output"]):
        where = {"output_index": index, "item_id": item["id"]}
        if item["type"] == "function_call":
            added = item | {"arguments": ""}
            yield _typed("response.output_item.added", output_index=index, item=added)
            for piece in _halves(item["arguments"]):
                yield _typed("response.function_call_arguments.delta", **where, delta=piece)
            done = {"name": item["name"], "arguments": item["arguments"]}
            yield _typed("response.function_call_arguments.done", **where, **done)
        elif item["type"] == "reasoning":
            added = item | {"summary": []}
            yield _typed("response.output_item.added", output_index=index, item=added)
            for piece in _words(reply.reasoning):
                kind = "response.reasoning_summary_text.delta"
                yield _typed(kind, **where, summary_index=0, delta=piece)
        else:
            added = item | {"content": []}
            yield _typed("response.output_item.added", output_index=index, item=added)
            where["content_index"] = 0
            part = item["content"][0]
            yield _typed("response.content_part.added", **where, part=part | {"text": ""})
            for piece in _pieces(reply.content):
                yield _typed("response.output_text.delta", **where, delta=piece, logprobs=[])
            yield _typed("response.output_text.done", **where, text=reply.content, logprobs=[])
            yield _typed("response.content_part.done", **where, part=part)
        yield _typed("response.output_item.done", output_index=index, item=item)
    end = "incomplete" if whole["status"] == "incomplete" else "completed"
    yield _typed(f"response.{end}", response=whole)
