"""Read a response's body within bounds, whatever the server sends.

httpx decodes a compressed chunk as a whole, so 48 KB can become 50 MB before anybody looks; here
the raw bytes are decoded with a limit. Source: sections D8 and F3 of the link specification.
"""

from __future__ import annotations

import re
import time
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from k3check.link.wire.exchange import Ended, Event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MIB = 1024 * 1024

# The last event of Anthropic's and of the Responses stream. A quotation mark inside an answer's
# text is escaped, so that none can look like one.
_LAST = re.compile(
    r'"type"\s*:\s*"(message_stop|response\.(completed|incomplete|failed|cancelled))"'
)
_PING = re.compile(r'\s*\{\s*"type"\s*:\s*"ping"\s*\}\s*')


@dataclass(frozen=True)
class Caps:
    """Most that is read: decoded bytes of an answer, an error body, a stream; a line; events."""

    body: int = 4 * MIB
    error: int = 64 * 1024
    stream: int = 16 * MIB
    line: int = MIB
    events: int = 10_000


@dataclass
class Received:
    """What has arrived so far; one thread fills it, the other looks after it ended or was cut."""

    chunks: list[bytes] = field(default_factory=list)
    size: int = 0
    events: list[Event] = field(default_factory=list)
    comments: int = 0
    done: bool = False
    ended: Ended = Ended.BROKEN
    last_event_at: float | None = None

    @property
    def body(self) -> bytes:
        """All decoded bytes."""
        return b"".join(self.chunks)


class _Stop(Exception):  # noqa: N818 - control flow, not an error
    """Enough was read."""

    def __init__(self, ended: Ended) -> None:
        self.ended = ended


class UnaskedEncodingError(Exception):
    """The body is compressed in a way that was not offered."""


class _Decoder:
    """Decodes gzip with a limit, or passes bytes on."""

    def __init__(self, encoding: str) -> None:
        names = [e.strip().lower() for e in encoding.split(",") if e.strip()]
        names = [n for n in names if n != "identity"]
        if names not in ([], ["gzip"], ["x-gzip"]):
            raise UnaskedEncodingError(", ".join(names))
        self._zlib = zlib.decompressobj(wbits=31) if names else None

    def feed(self, data: bytes, limit: int) -> bytes:
        """At most ``limit`` decoded bytes.

        Raises:
            zlib.error: the data is no gzip.
        """
        if self._zlib is None:
            return data[:limit]
        return self._zlib.decompress(data, limit)

    @property
    def unfinished(self) -> bool:
        """Compressed data ended before its end mark."""
        return self._zlib is not None and not self._zlib.eof


def _decoded(raw: Iterable[bytes], encoding: str, cap: int, into: Received) -> Iterator[bytes]:
    """Decoded chunks, recorded in ``into``; raises :class:`_Stop` at the cap."""
    decoder = _Decoder(encoding)
    for data in raw:
        # One byte more than fits tells a body of exactly the cap from a longer one.
        out = decoder.feed(data, cap - into.size + 1)
        if into.size + len(out) > cap:
            out = out[: cap - into.size]
            into.chunks.append(out)
            into.size += len(out)
            raise _Stop(Ended.BYTE_CAP)
        if out:
            into.chunks.append(out)
            into.size += len(out)
            yield out
    if decoder.unfinished and into.size:
        raise zlib.error("the compressed data is cut")


def read_plain(raw: Iterable[bytes], encoding: str, cap: int, into: Received) -> None:
    """Read a whole body."""
    try:
        for _ in _decoded(raw, encoding, cap, into):
            pass
    except _Stop as stop:
        into.ended = stop.ended
    else:
        into.ended = Ended.COMPLETE


def _lines_bounded(
    chunks: Iterable[bytes], caps: Caps, into: Received, stall_s: float, now: Callable[[], float]
) -> Iterator[bytes]:
    """Pass chunks on while no line is endless and events keep coming; count comment lines."""
    line = 0  # bytes since the last line break
    at_line_start = True
    first = True
    tail = b""
    for chunk in chunks:
        data = chunk
        if first and data.startswith(b"\xef\xbb\xbf"):
            data = data[3:]
        first = False
        if into.last_event_at is not None and now() - into.last_event_at > stall_s:
            raise _Stop(Ended.STALLED)
        for piece in data.replace(b"\r", b"\n").splitlines(keepends=True):
            if at_line_start and piece.startswith(b":"):
                into.comments += 1
            line = 0 if piece.endswith(b"\n") else line + len(piece)
            at_line_start = piece.endswith(b"\n")
            if line > caps.line:
                raise _Stop(Ended.LINE_CAP)
        tail = (tail + data)[-2:]
        if data:
            yield data
    if tail and tail != b"\n\n":
        # Many servers leave out the last blank line; without it the last event would be lost.
        yield b"\n\n"


def read_events(
    raw: Iterable[bytes],
    encoding: str,
    caps: Caps,
    into: Received,
    stall_s: float,
    on_done: Callable[[], None],
    started: float,
) -> None:
    """Read an event stream; each event keeps the time at which it was complete.

    Args:
        raw: the response's bytes.
        encoding: its content encoding.
        caps: bounds.
        into: filled while reading.
        stall_s: longest pause between two events while other bytes or pings still come.
        on_done: called when the end mark arrives; reading goes on, to see the server close.
        started: time of the request by the monotonic clock.
    """
    import httpx
    from httpx_sse import EventSource

    def now() -> float:
        return time.monotonic() - started

    bounded = _lines_bounded(_decoded(raw, encoding, caps.stream, into), caps, into, stall_s, now)
    # EventSource reads a response; this one wraps the bounded bytes, whatever type they had.
    shadow = httpx.Response(
        200, headers={"content-type": "text/event-stream; charset=utf-8"}, content=bounded
    )
    try:
        for event in EventSource(shadow).iter_sse():
            if not event.data and event.event == "message":
                continue
            at = now()
            into.events.append(Event(at, event.event, event.data))
            if _PING.fullmatch(event.data):
                into.comments += 1  # Anthropic's keep-alive is an event
            else:
                into.last_event_at = at
            if event.data.strip() == "[DONE]" or _LAST.search(event.data):
                into.done = True
                on_done()
            if len(into.events) >= caps.events:
                raise _Stop(Ended.EVENT_CAP)  # noqa: TRY301 - one way out for every bound
    except _Stop as stop:
        into.ended = stop.ended
    else:
        into.ended = Ended.COMPLETE
