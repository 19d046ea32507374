"""One answer, while the pieces of its stream are read."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from k3check.link.apis.answers import Answer, ToolCall, Usage
from k3check.link.wire.jsonsafe import get

if TYPE_CHECKING:
    from collections.abc import Sequence

    from k3check.link.apis.errors import ErrorInfo

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
    """The answer while its pieces are read; each API adds to it."""

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
    parts: bool = False

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

    def thought(self, at: float, piece: str, field: str) -> None:
        """Take a piece of thinking that came in the given field."""
        if piece:
            self.reasoning_field = self.reasoning_field or field
            self.text(at, piece, thinking=True)

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
                self.parts,
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


def text_at(document: Any, *path: str) -> str:
    """A text in a document, empty if there is none."""
    value = get(document, *path)
    return value if isinstance(value, str) else ""
