"""A conversation with tool calls, turn by turn, as each API writes its history.

What the model said goes back as it came, its thinking and the calls' ids with it: that is what
K3 demands of a client, and what a client gets wrong. Source: sections A2 to A5 of the link
specification.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from k3check.link.diagnosis.observation import Observation

# The field of the request that holds the history.
FIELD = {"openai": "messages", "anthropic": "messages", "responses": "input"}


def opening(text: str) -> list[dict[str, Any]]:
    """The user's task; the same in every API."""
    return [{"role": "user", "content": text}]


def answered(
    wire: str, seen: Observation, results: Sequence[tuple[str, str]]
) -> list[dict[str, Any]]:
    """What a turn adds to the history.

    Args:
        wire: ``openai``, ``anthropic`` or ``responses``.
        seen: the model's turn.
        results: of its calls, as (id, text).
    """
    if wire == "anthropic":
        return _messages(seen, results)
    if wire == "responses":
        return _responses(seen, results)
    return _chat(seen, results)


def _chat(seen: Observation, results: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    raw = seen.at("choices", 0, "message") or {}
    said = {
        "role": "assistant",
        "content": raw.get("content") or "",
        # Under the name that K3 knows, whatever the gateway calls it.
        "reasoning_content": seen.answer.reasoning if seen.answer is not None else "",
        "tool_calls": raw.get("tool_calls"),
    }
    return [said, *({"role": "tool", "tool_call_id": i, "content": text} for i, text in results)]


def _messages(seen: Observation, results: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    blocks = [b for b in seen.at("content") or [] if isinstance(b, dict)]
    # A text without a character is refused by the API that sent it.
    blocks = [b for b in blocks if b.get("type") != "text" or b.get("text")]
    told = [{"type": "tool_result", "tool_use_id": i, "content": text} for i, text in results]
    return [{"role": "assistant", "content": blocks}, {"role": "user", "content": told}]


def _responses(seen: Observation, results: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    items = [item for item in seen.at("output") or [] if isinstance(item, dict)]
    told = [{"type": "function_call_output", "call_id": i, "output": text} for i, text in results]
    return [*items, *told]
