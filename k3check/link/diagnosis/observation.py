"""What a diagnosis is made from: the request's facts and everything seen of the response."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from k3check.link.apis import chat, messages, responses
from k3check.link.apis.errors import (
    ErrorInfo,
    from_document,
    from_text,
    is_error,
    is_html,
)
from k3check.link.apis.events import summarize
from k3check.link.diagnosis import families
from k3check.link.wire.jsonsafe import Parsed, get, parse
from k3check.link.wire.proxies import ProxyChoice

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.link.apis.answers import Answer
    from k3check.link.apis.building import StreamView
    from k3check.link.request import LinkRequest
    from k3check.link.wire.exchange import Exchange
    from k3check.link.wire.urls import Base


@dataclass(frozen=True)
class Observation:
    """One exchange with its context; everything derived is computed once, on demand.

    Attributes:
        request: what is checked.
        base: the base URL, taken apart.
        exchange: what came back.
        wire: ``openai``, ``anthropic``, ``responses`` or ``models``: what was asked.
        proxy: the way out.
        nonce: the word that the answer must contain, empty if none was asked for.
        sent_requests: chargeable requests sent before this one in this run.
        facts: what a probe adds (the plain answer for the stream's comparison, say).
    """

    request: LinkRequest
    base: Base
    exchange: Exchange
    wire: str = "openai"
    proxy: ProxyChoice = field(default_factory=ProxyChoice)
    nonce: str = ""
    sent_requests: int = 0
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def status(self) -> int | None:
        """HTTP status."""
        return self.exchange.status

    @property
    def ok(self) -> bool:
        """A complete response with a status of success."""
        return self.exchange.failure is None and self.status is not None and self.status < 300

    @property
    def streamed(self) -> bool:
        """A stream was asked for."""
        return self.exchange.call.stream

    @cached_property
    def parsed(self) -> Parsed:
        """The body as JSON."""
        return parse(self.exchange.body)

    @property
    def document(self) -> Any:
        """The body's JSON document, None without one."""
        return self.parsed.document

    @cached_property
    def text(self) -> str:
        """The body as text."""
        return self.exchange.text

    @cached_property
    def html(self) -> bool:
        """The body is a web page."""
        return is_html(self.exchange.media_type, self.text)

    @cached_property
    def error(self) -> ErrorInfo:
        """The error that the body tells; of an answer without one the shape is empty."""
        if self.parsed.ok and isinstance(self.document, (dict, list)):
            if self.ok and not is_error(self.document):
                return ErrorInfo()
            return from_document(self.document)
        if self.ok and self.streamed:
            return ErrorInfo()
        return from_text(self.exchange.media_type, self.text)

    @cached_property
    def family(self) -> str:
        """The software that answered."""
        return families.recognise(self._marks)

    @cached_property
    def _marks(self) -> families.Seen:
        return families.Seen(
            self.status,
            self.exchange.headers,
            self.exchange.media_type,
            self.document,
            self.error,
            self.text,
        )

    @cached_property
    def front(self) -> str:
        """The web server that answered, by its page or its Server header; empty if unknown."""
        return families.front(self._marks)[0]

    @cached_property
    def front_page(self) -> bool:
        """The body is a page that only this web server writes."""
        return families.front(self._marks)[1]

    @cached_property
    def event_stream(self) -> bool:
        """The body is an event stream, whatever was asked and whatever its type says."""
        start = self.text[:256].lstrip("\ufeff\r\n ")
        return start.startswith(("data:", "event:", ":", "id:", "retry:"))

    @cached_property
    def stream(self) -> StreamView:
        """The stream's content."""
        return summarize(self.exchange.events)

    @cached_property
    def answer(self) -> Answer | None:
        """The answer, of whichever shape was asked for; None if there is none."""
        if not self.ok and not (self.streamed and self.exchange.events):
            return None
        if self.streamed and self.exchange.events:
            return self.stream.answer
        if self.wire == "anthropic":
            return messages.from_messages(self.document)
        if self.wire == "responses":
            return responses.from_responses(self.document)
        return chat.from_chat(self.document)

    @cached_property
    def server_time(self) -> float | None:
        """When the response was made by its server's clock; None if it does not say."""
        if self.exchange.failure is not None:
            return self.exchange.failure.server_time
        if "date" not in self.exchange.headers:
            return None
        from k3check.link.wire import clock

        return clock.server_time(self.exchange.headers)

    @property
    def skew_s(self) -> float:
        """Seconds that this machine's clock is ahead of the server's; 0 if it is not known."""
        ours = self.exchange.received_at
        return 0.0 if ours is None or self.server_time is None else ours - self.server_time

    @cached_property
    def words(self) -> str:
        """Everything of an error that can be searched, in lower case."""
        words = self.error.words
        return words if words.strip(" |") else self.text[:2000].lower()

    def says(self, *fragments: str) -> bool:
        """The error contains any of the fragments (given in lower case)."""
        return any(fragment in self.words for fragment in fragments)

    def header(self, name: str) -> str:
        """A response header, empty if missing."""
        return self.exchange.headers.get(name, "")

    def at(self, *path: str | int) -> Any:
        """A value in the body's document."""
        return get(self.document, *path)
