"""Make one answer of a stream's events, and say what is odd about the stream.

Source: sections A5 and D6 of the link specification.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from k3check.link.answers import Answer, ToolCall, Usage, reasoning_of, usage_of
from k3check.link.extract import ErrorInfo, from_document, is_error
from k3check.link.jsonsafe import get, parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from k3check.link.exchange import Event

_CUMULATIVE_FROM = 3


@dataclass(frozen=True)
class StreamView:
    """What a stream said.

    Attributes:
        answer: the pieces put together; None if no chunk of an answer came.
        chunks: number of chunks that carried an answer's pieces.
        texts: number of chunks that carried text or thinking.
        done: the stream's end mark came: ``[DONE]``, ``message_stop`` or ``response.completed``.
        malformed: the first event that was no JSON, or empty.
        error: an error sent inside the stream.
        first_at, last_at: seconds of the first and last text or thinking.
        content_at: seconds of the first text.
        oddities: ``usage-chunk-without-choices``, ``empty-choices-first``, ``null-event``,
            ``cumulative``, ``reasoning-after-content``.
        tool_problem: what is wrong with the tool call's pieces, or empty.
        order_problem: what is wrong with the order or the names of Anthropic's events, or empty.
        wire: whose events they are, ``openai``, ``anthropic`` or ``responses``; empty if nobody's.
    """

    answer: Answer | None = None
    chunks: int = 0
    texts: int = 0
    done: bool = False
    malformed: str = ""
    error: ErrorInfo | None = None
    first_at: float | None = None
    last_at: float | None = None
    content_at: float | None = None
    oddities: frozenset[str] = frozenset()
    tool_problem: str = ""
    order_problem: str = ""
    wire: str = ""


@dataclass
class Call:
    """A tool call while its pieces are read."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


@dataclass
class Building:
    """The answer while its pieces are read; :mod:`k3check.link.sse_typed` adds to it too."""

    content: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    reasoning_field: str = ""
    calls: dict[int, Call] = field(default_factory=dict)
    finish: str | None = None
    id: str = ""
    model: str = ""
    created: float | None = None
    usage: Usage | None = None
    chunks: int = 0
    texts: int = 0
    done: bool = False
    malformed: str = ""
    error: ErrorInfo | None = None
    first_at: float | None = None
    last_at: float | None = None
    content_at: float | None = None
    oddities: set[str] = field(default_factory=set)
    tool_problem: str = ""
    order_problem: str = ""
    seen: set[str] = field(default_factory=set)
    wire: str = ""

    def text(self, at: float, piece: str, *, thinking: bool) -> None:
        """Take a piece of text."""
        if not piece:
            return
        self.texts += 1
        self.first_at = at if self.first_at is None else self.first_at
        self.last_at = at
        if thinking:
            if self.content:
                self.oddities.add("reasoning-after-content")
            self.reasoning.append(piece)
        else:
            self.content_at = at if self.content_at is None else self.content_at
            self.content.append(piece)

    def tool(self, piece: Any) -> None:
        """Take a piece of a tool call."""
        index = get(piece, "index")
        if not isinstance(index, int) or isinstance(index, bool):
            self.tool_problem = self.tool_problem or "no index"
            index = len(self.calls) if get(piece, "id") or not self.calls else max(self.calls)
        if len(self.calls) >= 128 and index not in self.calls:
            return
        call = self.calls.setdefault(index, Call())
        ident = get(piece, "id")
        if isinstance(ident, str) and ident:
            if call.id and call.id != ident:
                self.tool_problem = self.tool_problem or "the id changes"
            call.id = ident
        name = get(piece, "function", "name")
        if isinstance(name, str) and name:
            call.name = name if not call.name or call.name == name else call.name + name
        arguments = get(piece, "function", "arguments")
        if isinstance(arguments, str):
            call.arguments.append(arguments)
        elif arguments is not None:
            self.tool_problem = self.tool_problem or "arguments are no text"

    def view(self) -> StreamView:
        """What was read."""
        if _cumulative(self.content):
            self.oddities.add("cumulative")
        answer = None
        if self.chunks:
            answer = Answer(
                "".join(self.content),
                "".join(self.reasoning),
                self.reasoning_field,
                tuple(ToolCall(c.id, c.name, "".join(c.arguments)) for c in self.calls.values()),
                len(self.calls),
                self.finish,
                self.id,
                self.model,
                self.created,
                self.usage,
                1,
            )
        return StreamView(
            answer,
            self.chunks,
            self.texts,
            self.done,
            self.malformed,
            self.error,
            self.first_at,
            self.last_at,
            self.content_at,
            frozenset(self.oddities),
            self.tool_problem,
            self.order_problem,
            self.wire,
        )


def _cumulative(pieces: Sequence[str]) -> bool:
    """Every piece repeats the one before it and adds something."""
    if len(pieces) < _CUMULATIVE_FROM:
        return False
    pairs = list(itertools.pairwise(pieces))
    return all(b.startswith(a) for a, b in pairs) and sum(len(b) > len(a) for a, b in pairs) >= 2


def summarize(events: Sequence[Event]) -> StreamView:
    """Put a stream's events together."""
    made = Building()
    for event in events:
        data = event.data.strip()
        if data == "[DONE]":
            made.done = True
            continue
        parsed = parse(data.encode("utf-8", "replace"))
        if not parsed.ok:
            if data and event.name in ("message", "error") and not made.malformed:
                made.malformed = data
            continue
        document = parsed.document
        if document is None:
            made.oddities.add("null-event")
        elif is_error(document) or event.name == "error":
            if made.error is None:
                made.error = from_document(document)
                if not made.error.shape:
                    made.error = ErrorInfo(data, shape="text")
        elif isinstance(get(document, "type"), str) and get(document, "choices") is None:
            from k3check.link import sse_typed  # chat completions do without

            sse_typed.take(made, event, document)
        elif isinstance(document, dict):
            _chunk(made, event.at, document)
        elif not made.malformed:
            made.malformed = data
    return made.view()


def _chunk(made: Building, at: float, document: dict[str, Any]) -> None:
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
    if isinstance(content, str):
        made.text(at, content, thinking=False)
    calls = get(delta, "tool_calls")
    if isinstance(calls, list):
        for piece in calls:
            made.tool(piece)
    finish = get(choice, "finish_reason")
    if isinstance(finish, str):
        made.finish = finish
