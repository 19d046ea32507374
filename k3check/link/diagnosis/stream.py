"""Rows for event streams.

Source: section D6 of the link specification.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.link.diagnosis.connection import late_stream
from k3check.link.diagnosis.helpers import HIGH, MEDIUM, Confidence, Level, Phase, Row, Tier
from k3check.link.wire.exchange import Ended, FailureKind

if TYPE_CHECKING:
    from k3check.link.diagnosis.helpers import When
    from k3check.link.diagnosis.observation import Observation
    from k3check.link.diagnosis.row import Found

# A stream is "buffered" if at least this many pieces of text came within a moment after a wait.
_PIECES = 5
_WAIT_S = 0.5
_MOMENT = 0.04
# No model writes a thousand pieces a second: what comes slower may be a short answer after a wait.
_PIECE_S = 0.001


def _read(seen: Observation) -> bool:
    """A stream was asked for and something that could be one came."""
    success = seen.status is not None and seen.status < 300
    return seen.streamed and success and (bool(seen.exchange.events) or seen.event_stream)


def _finished(seen: Observation) -> bool:
    answer = seen.stream.answer
    return (
        seen.stream.done or seen.exchange.done or (answer is not None and answer.finish is not None)
    )


def _error(seen: Observation) -> Found:
    error = seen.stream.error if _read(seen) else None
    if error is None:
        return None
    return {"message": error.message[:400] or error.type, "after": seen.stream.texts}


def _malformed(seen: Observation) -> Found:
    if not _read(seen) or not seen.stream.malformed:
        return None
    return {"found": seen.stream.malformed[:120]}


def _stalled(seen: Observation) -> bool:
    if _finished(seen):
        return False
    if late_stream(seen) and not seen.exchange.events:
        return bool(seen.exchange.comments)  # keep-alives and nothing else, from the start
    if not _read(seen):
        return False
    failure = seen.exchange.failure
    late = failure is not None and failure.kind in (FailureKind.DEADLINE, FailureKind.READ_TIMEOUT)
    return seen.exchange.ended is Ended.STALLED or late


def _silent(seen: Observation) -> bool:
    """The headers came, and then no event and no keep-alive."""
    return late_stream(seen) and not seen.exchange.events and not seen.exchange.comments


def _no_events(seen: Observation) -> bool:
    empty = seen.streamed and seen.ok and not seen.exchange.body.strip()
    nothing = _read(seen) and not seen.stream.chunks and not seen.stream.malformed
    return (empty or nothing) and seen.stream.error is None


# The end of a complete answer and of its stream, as each API writes them.
_ENDS = {
    "openai": {"reason": "finish_reason", "end": "[DONE]"},
    "anthropic": {"reason": "stop_reason", "end": "message_stop"},
    "responses": {"reason": "status", "end": "response.completed"},
}


def _ends(seen: Observation) -> dict[str, str]:
    return _ENDS[seen.wire if seen.wire in _ENDS else "openai"]


def _truncated(seen: Observation) -> Found:
    if not _read(seen) or _finished(seen) or not seen.stream.chunks:
        return None
    failure = seen.exchange.failure
    how = failure.kind.value.replace("-", " ") if failure else "connection closed"
    return {"chunks": seen.stream.chunks, "how": how} | _ends(seen)


def _other_api(seen: Observation) -> Found:
    """The events of another API than the one that was asked."""
    if not _read(seen) or not seen.stream.chunks or seen.stream.wire in ("", seen.wire):
        return None
    names = {"openai": "chat completions", "anthropic": "messages", "responses": "responses"}
    return {"found": names[seen.stream.wire], "asked": names[seen.wire]}


def _order(seen: Observation) -> Found:
    if not _read(seen) or not seen.stream.order_problem:
        return None
    return {"problem": seen.stream.order_problem}


def _buffered(seen: Observation) -> Found:
    view = seen.stream
    if (
        seen.facts.get("long")
        or not _read(seen)
        or view.texts < _PIECES
        or view.first_at is None
        or view.last_at is None
    ):
        return None
    within = view.last_at - view.first_at
    if view.first_at < _WAIT_S or within > min(_MOMENT * view.first_at, _PIECE_S * view.texts):
        return None
    return {"pieces": view.texts, "wait": f"{view.first_at:.2g}", "within": f"{within:.2g}"}


def _no_finish(seen: Observation) -> Found:
    answer = seen.stream.answer
    if not _read(seen) or not seen.stream.done or answer is None or answer.finish is not None:
        return None
    return _ends(seen)


def _no_done(seen: Observation) -> Found:
    answer = seen.stream.answer
    if not _read(seen) or seen.stream.done or answer is None or answer.finish is None:
        return None
    return _ends(seen)


def _held_open(seen: Observation) -> Found:
    held = _read(seen) and seen.exchange.ended is Ended.HELD_OPEN
    return _ends(seen) if held else None


def _odd(name: str) -> When:
    return lambda seen: _read(seen) and name in seen.stream.oddities


def _content_type(seen: Observation) -> bool:
    return _read(seen) and "event-stream" not in seen.exchange.media_type


def _usage_in_choice(seen: Observation) -> bool:
    answer = seen.stream.answer
    return (
        _read(seen) and answer is not None and answer.usage is not None
        and answer.usage.place == "choices[0].usage"
    )  # fmt: skip


def _lost(seen: Observation) -> Found:
    """Far more tokens were counted than text arrived, though thinking is not left out."""
    answer = seen.stream.answer
    if not _read(seen) or answer is None or answer.usage is None or not answer.reasoning:
        return None
    counted, size = answer.usage.completion or 0, len(answer.text) + len(answer.reasoning)
    size += sum(len(str(call.arguments)) + len(call.name) for call in answer.calls)
    # A token is hardly ever shorter than one character.
    if counted < 40 or size * 2 >= counted:
        return None
    return {"completion_tokens": counted, "characters": size}


def _disagrees(seen: Observation) -> Found:
    plain, answer = seen.facts.get("plain"), seen.stream.answer
    if not _read(seen) or plain is None or answer is None:
        return None
    if answer.model and plain.model and answer.model != plain.model:
        return {"what": "model", "plain": plain.model, "streamed": answer.model}
    if plain.finish and answer.finish and answer.finish != plain.finish:
        return {"what": "finish_reason", "plain": plain.finish, "streamed": answer.finish}
    if plain.usage and answer.usage:
        a, b = plain.usage.whole_prompt, answer.usage.whole_prompt
        if a and b and abs(a - b) > 3:
            return {"what": "prompt_tokens", "plain": a, "streamed": b}
    return None


def _row(
    code: str,
    slug: str,
    when: When,
    rows: tuple[int, ...],
    *,
    level: Level = Level.FAIL,
    confidence: Confidence = HIGH,
    tier: Tier = Tier.BODY,
) -> Row:
    return Row(code, slug, Phase.STREAM, tier, when, confidence, level, rows=rows)


ROWS = (
    _row("K3L-505", "stream.error-event", _error, (142,)),
    _row("K3L-517", "stream.endless-line",
         lambda seen: seen.streamed and seen.exchange.ended is Ended.LINE_CAP, (174,)),
    _row("K3L-518", "stream.endless-events",
         lambda seen: seen.streamed and seen.exchange.ended is Ended.EVENT_CAP, (174, 178)),
    _row("K3L-504", "stream.malformed-event", _malformed, (141,)),
    _row("K3L-506", "stream.stalled", _stalled, (143,)),
    _row("K3L-528", "stream.silent", _silent, (63, 143)),
    _row("K3L-516", "stream.no-events", _no_events, (109, 143)),
    _row("K3L-526", "stream.other-api", _other_api, (133, 134)),
    _row("K3L-500", "stream.truncated", _truncated, (60, 61, 135)),
    _row("K3L-527", "stream.event-order", _order, ()),
    _row("K3L-512", "stream.cumulative", _odd("cumulative"), (150,)),
    _row("K3L-514", "stream.tool-pieces",
         lambda seen: {"problem": seen.stream.tool_problem}
         if _read(seen) and seen.stream.tool_problem else None, (152,)),
    _row("K3L-507", "stream.buffered", _buffered, (144,), level=Level.WARN, confidence=MEDIUM),
    _row("K3L-502", "stream.no-finish", _no_finish, (137,), level=Level.WARN),
    _row("K3L-515", "stream.lost-text", _lost, (153,), level=Level.WARN, confidence=MEDIUM),
    _row("K3L-523", "stream.disagrees", _disagrees, (), level=Level.WARN, confidence=MEDIUM),
    _row("K3L-519", "stream.late-reasoning", _odd("reasoning-after-content"), (),
         level=Level.NOTE),
    _row("K3L-524", "stream.message-not-delta", _odd("message-instead-of-delta"), (),
         level=Level.WARN),
    _row("K3L-525", "stream.chunk-without-choices", _odd("chunk-without-choices"), (139,),
         level=Level.NOTE),
    _row("K3L-501", "stream.no-done", _no_done, (136,), level=Level.NOTE),
    _row("K3L-503", "stream.held-open", _held_open, (138,), level=Level.NOTE),
    _row("K3L-508", "stream.content-type", _content_type, (145,), level=Level.NOTE),
    _row("K3L-511", "stream.usage-in-choice", _usage_in_choice, (149,), level=Level.NOTE),
    _row("K3L-520", "stream.usage-without-choices", _odd("usage-chunk-without-choices"), (139,),
         level=Level.NOTE),
    _row("K3L-521", "stream.empty-choices-first", _odd("empty-choices-first"), (140,),
         level=Level.NOTE),
    _row("K3L-522", "stream.null-event", _odd("null-event"), (129,), level=Level.NOTE),
)  # fmt: skip
