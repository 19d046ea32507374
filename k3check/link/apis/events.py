"""Make one answer of a stream's events, and say what is odd about the stream.

Source: sections A5 and D6 of the link specification.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.link.apis import chat, messages, responses
from k3check.link.apis.building import Building, StreamView
from k3check.link.apis.errors import ErrorInfo, from_document, is_error
from k3check.link.wire.jsonsafe import get, parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from k3check.link.wire.exchange import Event


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
            _typed(made, event, document)
        elif isinstance(document, dict):
            chat.take(made, event.at, document)
        elif not made.malformed:
            made.malformed = data
    return made.view()


def _typed(made: Building, event: Event, document: dict[str, Any]) -> None:
    """Take one event with a ``type``."""
    kind = str(document["type"])
    if kind.startswith("response."):
        made.chunks += 1
        made.wire = made.wire or "responses"
        responses.take(made, event.at, kind, document)
    elif kind in messages.KINDS:
        made.chunks += 1
        made.wire = made.wire or "anthropic"
        messages.take(made, event, kind, document)
    elif kind != "ping" and made.wire in ("", "openai"):
        made.oddities.add("chunk-without-choices")
