"""One shape for an answer, whichever API or stream it came from.

Source: sections A3-A5 and D5-D7 of the link specification.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from k3check.link.wire.jsonsafe import get

_REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
MOST_CALLS = 128


@dataclass(frozen=True)
class Usage:
    """Token counts as the server gave them.

    Attributes:
        prompt, completion, total: None where missing or no number.
        cached: cached prompt tokens, None where not reported.
        cached_as: the spelling that reported them.
        beside: prompt tokens that are not in ``prompt``: Anthropic counts those that the cache
            gave, and those that it took, apart. None where neither is reported.
        place: ``usage``, ``choices[0].usage``, ``message_start`` or empty.
        oddities: what is wrong with the numbers: ``strings``, ``zeros``, ``negative``, ``sum``.
    """

    prompt: int | None = None
    completion: int | None = None
    total: int | None = None
    cached: int | None = None
    cached_as: str = ""
    beside: int | None = None
    place: str = ""
    oddities: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Both counts are there."""
        return self.prompt is not None and self.completion is not None

    @property
    def whole_prompt(self) -> int | None:
        """The prompt with what is counted beside it."""
        return None if self.prompt is None else self.prompt + (self.beside or 0)


@dataclass(frozen=True)
class ToolCall:
    """A tool call; ``arguments`` as received (text in the OpenAI shape)."""

    id: str
    name: str
    arguments: Any


@dataclass(frozen=True)
class Answer:
    """A model's answer.

    Attributes:
        content: the text; None if the field is missing or null.
        reasoning: the thinking text, with the field that carried it.
        calls: tool calls (at most 128 are kept; ``call_count`` is the true number).
        finish: the reason for the end as sent; None if null or missing.
        id, model, created, usage: as sent.
        choices: number of choices.
        parts: the content was a list of parts where a text belongs.
    """

    content: str | None = None
    reasoning: str = ""
    reasoning_field: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_count: int = 0
    finish: str | None = None
    id: str = ""
    model: str = ""
    created: float | None = None
    usage: Usage | None = None
    choices: int = 0
    parts: bool = False

    @property
    def text(self) -> str:
        """The content, empty if there is none."""
        return self.content or ""


def _count(value: Any, oddities: set[str]) -> int | None:
    if isinstance(value, str) and value.strip().lstrip("-").isdigit() and len(value) < 20:
        oddities.add("strings")
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if value < 0:
        oddities.add("negative")
    return int(value) if abs(value) < 1e15 else None


_CACHED = (
    ("cached_tokens",),
    ("prompt_tokens_details", "cached_tokens"),
    ("input_tokens_details", "cached_tokens"),
    ("cache_read_input_tokens",),
    ("prompt_cache_hit_tokens",),
)
_APART = ("cache_read_input_tokens", "cache_creation_input_tokens")


def usage_of(raw: Any, place: str) -> Usage | None:
    """Token counts from a usage object; None if it is no object or empty."""
    if not isinstance(raw, dict) or not raw:
        return None
    oddities: set[str] = set()
    counts = {}
    for name, spellings in (
        ("prompt", ("prompt_tokens", "input_tokens")),
        ("completion", ("completion_tokens", "output_tokens")),
        ("total", ("total_tokens",)),
    ):
        given = next((raw[s] for s in spellings if raw.get(s) is not None), None)
        counts[name] = _count(given, oddities)
    prompt, completion, total = counts["prompt"], counts["completion"], counts["total"]
    if prompt is None and completion is None and total is None:
        return None
    if prompt is not None and completion is not None and total not in (None, prompt + completion):
        oddities.add("sum")
    cached, cached_as = None, ""
    for path in _CACHED:
        value = _count(get(raw, *path), oddities)
        if value is not None and (cached is None or value > cached):
            cached, cached_as = value, ".".join(path)
    apart = [_count(raw.get(name), oddities) for name in _APART]
    beside = None
    # Where the prompt has OpenAI's name, it is counted as OpenAI does: with the cache's part.
    if raw.get("prompt_tokens") is None and any(count is not None for count in apart):
        beside = sum(count or 0 for count in apart)
    if prompt == 0 and completion is not None and not cached and not beside:
        oddities.add("zeros")
    return Usage(
        prompt, completion, total, cached, cached_as, beside, place, tuple(sorted(oddities))
    )


def calls_of(raw: Any) -> tuple[tuple[ToolCall, ...], int]:
    """Tool calls in the OpenAI shape: the first 128, and how many there are."""
    if not isinstance(raw, list):
        return (), 0
    made = tuple(
        ToolCall(
            str(get(item, "id") or ""),
            str(get(item, "function", "name") or ""),
            get(item, "function", "arguments"),
        )
        for item in raw[:MOST_CALLS]
    )
    return made, len(raw)


def content_of(value: Any) -> str | None:
    """Text from a string or from a list of text parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        kinds = ("text", "output_text", "summary_text", "reasoning_text", None)
        parts = [get(p, "text") for p in value if get(p, "type") in kinds]
        return "".join(p for p in parts if isinstance(p, str))
    return None


def reasoning_of(message: Any) -> tuple[str, str]:
    """Thinking text and the field that carried it."""
    for name in _REASONING_FIELDS:
        value = get(message, name)
        if isinstance(value, str) and value:
            return value, name
    return "", ""
