"""The history of a conversation as the demo endpoint reads it: every API's as chat messages."""

from __future__ import annotations

import json
from typing import Any

_BLOCKS = ("thinking", "tool_use", "tool_result")


def as_chat(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages of chat completions; what is one already stays as it is."""
    made: list[dict[str, Any]] = []
    for item in history:
        kind, content = item.get("type"), item.get("content")
        if kind == "reasoning":
            _turn(made)["reasoning_content"] = _texts(item.get("summary") or content)
        elif kind == "function_call":
            _call(_turn(made), item.get("call_id"), item.get("name"), item.get("arguments"))
        elif kind == "function_call_output":
            made.append(_result(item.get("call_id"), item.get("output")))
        elif isinstance(content, list) and any(_kind(block) in _BLOCKS for block in content):
            made += _of_blocks(str(item.get("role")), [b for b in content if isinstance(b, dict)])
        else:
            made.append(item)
    return made


def _of_blocks(role: str, blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A message of Anthropic's: results of tools come first, as they answer the turn before."""
    results = [
        _result(block.get("tool_use_id"), block.get("content"))
        for block in blocks
        if _kind(block) == "tool_result"
    ]
    message: dict[str, Any] = {"role": role, "content": _texts(blocks)}
    thoughts = "".join(str(b.get("thinking") or "") for b in blocks if _kind(b) == "thinking")
    if thoughts:
        message["reasoning_content"] = thoughts
    for block in blocks:
        if _kind(block) == "tool_use":
            _call(message, block.get("id"), block.get("name"), json.dumps(block.get("input")))
    empty = not message["content"] and len(message) == len(("role", "content"))
    return results if empty else [*results, message]


def _turn(made: list[dict[str, Any]]) -> dict[str, Any]:
    """The assistant's turn that is being told, a new one after anybody else's."""
    if not made or made[-1].get("role") != "assistant":
        made.append({"role": "assistant", "content": ""})
    return made[-1]


def _call(turn: dict[str, Any], ident: Any, name: Any, arguments: Any) -> None:
    function = {"name": name, "arguments": arguments}
    turn.setdefault("tool_calls", []).append(
        {"id": ident, "type": "function", "function": function}
    )


def _result(ident: Any, content: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": ident, "content": content}


def _kind(block: Any) -> Any:
    return block.get("type") if isinstance(block, dict) else None


def _texts(parts: Any) -> str:
    if not isinstance(parts, list):
        return parts if isinstance(parts, str) else ""
    return "".join(str(p.get("text") or "") for p in parts if isinstance(p, dict))
