"""Rows for a success whose body is no answer.

Source: section D5 of the link specification.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.link.apis.errors import is_error, page_title
from k3check.link.diagnosis.helpers import HIGH, Confidence, Level, Phase, Row, Tier

if TYPE_CHECKING:
    from k3check.link.diagnosis.helpers import When
    from k3check.link.diagnosis.observation import Observation
    from k3check.link.diagnosis.row import Found


def _plain(seen: Observation) -> bool:
    """A success that is to be read as one JSON document."""
    return seen.ok and not seen.exchange.events


def _chatting(seen: Observation) -> bool:
    return _plain(seen) and seen.wire == "openai" and isinstance(seen.document, dict)


def _page(seen: Observation) -> Found:
    if not (_plain(seen) and seen.html):
        return None
    return {"page": page_title(seen.text) or "without a title"}


def _captive(seen: Observation) -> Found:
    found = _page(seen)
    return found if seen.family == "corporate-proxy" else None


def _empty(seen: Observation) -> bool:
    return _plain(seen) and not seen.exchange.body.strip() and not seen.streamed


def _json_error(*names: str) -> When:
    def when(seen: Observation) -> Found:
        if not _plain(seen) or seen.parsed.ok or seen.parsed.error not in names:
            return None
        if seen.streamed and seen.event_stream:
            return None  # judged as a stream
        return {"problem": seen.parsed.error.replace("-", " ")}

    return when


def _events_unasked(seen: Observation) -> bool:
    return _plain(seen) and not seen.streamed and not seen.parsed.ok and seen.event_stream


def _management(seen: Observation) -> bool:
    return _plain(seen) and seen.at("success") is False and seen.at("error") is None


def _error_object(seen: Observation) -> bool:
    return _plain(seen) and seen.parsed.ok and is_error(seen.document)


def _no_object(seen: Observation) -> Found:
    if not _plain(seen) or not seen.parsed.ok or isinstance(seen.document, dict):
        return None
    return {"found": type(seen.document).__name__.replace("NoneType", "null")}


def _messages_shape(seen: Observation) -> bool:
    return (
        _chatting(seen)
        and seen.at("choices") is None
        and isinstance(seen.at("content"), list)
        and seen.at("role") is not None
    )


def _responses_shape(seen: Observation) -> bool:
    return _chatting(seen) and seen.at("choices") is None and isinstance(seen.at("output"), list)


def _chat_shape(seen: Observation) -> bool:
    """A chat completion where another API was asked."""
    return (
        _plain(seen)
        and seen.wire in ("anthropic", "responses")
        and isinstance(seen.at("choices"), list)
    )


def _no_choices(seen: Observation) -> Found:
    if not _chatting(seen) or isinstance(seen.at("choices"), list):
        return None
    names = ", ".join(sorted(str(k) for k in seen.document)[:8]) or "nothing"
    found = "null" if "choices" in seen.document else "missing"
    return {"found": found, "fields": names}


def _empty_choices(seen: Observation) -> bool:
    return _chatting(seen) and seen.at("choices") == [] and not seen.streamed


def _legacy(seen: Observation) -> bool:
    return (
        _chatting(seen)
        and seen.at("choices", 0, "message") is None
        and isinstance(seen.at("choices", 0, "text"), str)
    )


def _no_message(seen: Observation) -> bool:
    return (
        _chatting(seen)
        and bool(seen.at("choices"))
        and not isinstance(seen.at("choices", 0, "message"), dict)
        and not seen.streamed
    )


def _other_shape(seen: Observation) -> bool:
    """An object that is no answer of the API that was asked (messages, responses)."""
    return (
        _plain(seen) and seen.wire in ("anthropic", "responses")
        and seen.parsed.ok and seen.answer is None
    )  # fmt: skip


def _models_shape(seen: Observation) -> bool:
    return (
        _plain(seen) and seen.wire == "models" and seen.parsed.ok
        and not isinstance(seen.at("data"), list)
    )  # fmt: skip


def _json_for_stream(seen: Observation) -> bool:
    return _plain(seen) and seen.streamed and seen.parsed.ok and not is_error(seen.document)


_SLOPPY = {
    "bom": "a byte order mark before the JSON",
    "nan": "NaN or Infinity, which JSON does not have",
    "duplicate-keys": "a key twice in one object",
    "trailing": "characters after the JSON",
    "encoding": "bytes that are no UTF-8",
}


def _sloppy(seen: Observation) -> Found:
    if not _plain(seen) or not seen.parsed.ok or not seen.parsed.oddities:
        return None
    return {"problem": ", ".join(_SLOPPY[o] for o in seen.parsed.oddities)}


def _content_type(seen: Observation) -> bool:
    return (
        _plain(seen) and seen.parsed.ok and isinstance(seen.document, dict)
        and "json" not in seen.exchange.media_type
    )  # fmt: skip


def _row(
    code: str,
    slug: str,
    when: When,
    rows: tuple[int, ...],
    *,
    tier: Tier = Tier.BODY,
    level: Level = Level.FAIL,
    confidence: Confidence = HIGH,
) -> Row:
    return Row(code, slug, Phase.SHAPE, tier, when, confidence, level, rows=rows)


ROWS = (
    _row("K3L-424", "body.captive-page", _captive, (121,), tier=Tier.FAMILY),
    _row("K3L-400", "body.html-page", _page, (12, 121)),
    _row("K3L-401", "body.empty", _empty, (109,)),
    _row("K3L-416", "body.event-stream", _events_unasked, (131,)),
    _row("K3L-406", "body.truncated", _json_error("truncated"), (126,)),
    _row("K3L-410", "body.hostile-json", _json_error("too-deep", "giant-number"), (128,)),
    _row("K3L-402", "body.success-false", _management, (122,)),
    _row("K3L-403", "body.error-object", _error_object, (123,)),
    _row("K3L-404", "body.no-object", _no_object, (124,)),
    _row("K3L-418", "body.messages-shape", _messages_shape, (133,)),
    _row("K3L-419", "body.responses-shape", _responses_shape, (134,)),
    _row("K3L-421", "body.chat-shape", _chat_shape, (133,)),
    _row("K3L-417", "stream.json-instead", _json_for_stream, (132,)),
    _row("K3L-423", "models.no-list", _models_shape, (129,)),
    _row("K3L-411", "choices.missing", _no_choices, (129,)),
    _row("K3L-412", "choices.empty", _empty_choices, (129,)),
    _row("K3L-415", "choices.legacy-text", _legacy, (130,)),
    _row("K3L-414", "choices.no-message", _no_message, (130,)),
    _row("K3L-422", "body.other-shape", _other_shape, (133, 134), tier=Tier.REST),
    _row("K3L-405", "body.not-json", _json_error("syntax"), (125,), tier=Tier.REST),
    _row("K3L-407", "body.sloppy-json", _sloppy, (125, 127), level=Level.NOTE),
    _row("K3L-420", "body.content-type", _content_type, (125,), level=Level.NOTE),
)  # fmt: skip
