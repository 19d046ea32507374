"""Rows for an answer that had to call a tool.

Sources: sections A2, D7 (163-165) of the link specification.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.link.diagnosis.helpers import HIGH, Confidence, Level, Phase, Row, Tier
from k3check.link.diagnosis.prose import call_marks, echoed, question_of
from k3check.link.schema import violation
from k3check.link.wire.jsonsafe import parse

if TYPE_CHECKING:
    from k3check.link.apis.answers import ToolCall
    from k3check.link.diagnosis.helpers import When
    from k3check.link.diagnosis.observation import Observation
    from k3check.link.diagnosis.row import Found

_FINISH = ("tool_calls", "tool_use", "function_call", "completed")


def _asked(seen: Observation) -> Any:
    """The tool that had to be called: ``{"name": ..., "schema": ...}``, or None."""
    return seen.facts.get("tool") if seen.answer is not None else None


def _call(seen: Observation) -> ToolCall | None:
    answer = seen.answer
    return answer.calls[0] if answer is not None and answer.calls else None


def _none(seen: Observation) -> bool:
    answer = seen.answer
    return (
        _asked(seen) is not None and answer is not None and not answer.call_count
        and bool(answer.text.strip())
        # What is no answer at all, or a call that nobody parsed, has findings of its own.
        and not call_marks(answer.text + answer.reasoning)
        and not echoed(question_of(seen.exchange.call.body), answer.text)
    )  # fmt: skip


def _ignored(seen: Observation) -> Found:
    answer = seen.answer
    if not _none(seen) or seen.facts.get("canned") or answer is None:
        return None
    return {"answer": answer.text[:80]}


def _canned(seen: Observation) -> bool:
    return _none(seen) and bool(seen.facts.get("canned"))


def _wrong_name(seen: Observation) -> Found:
    asked, call = _asked(seen), _call(seen)
    if asked is None or call is None or call.name == asked["name"]:
        return None
    return {"asked": asked["name"], "called": call.name or "nothing"}


def arguments_of(call: ToolCall) -> tuple[Any, str]:
    """The arguments as a value, and what is wrong with how they are written."""
    if isinstance(call.arguments, str):
        parsed = parse(call.arguments.encode("utf-8", "replace"))
        if not parsed.ok:
            return None, parsed.error
        return parsed.document, ""
    if isinstance(call.arguments, dict):
        return call.arguments, "an object instead of text"
    return None, "missing"


def _whole_input(seen: Observation) -> bool:
    """Anthropic's ``input`` as it was sent; in a stream it comes as pieces of text."""
    return seen.wire == "anthropic" and not seen.exchange.events


def _not_json(seen: Observation) -> Found:
    asked, call = _asked(seen), _call(seen)
    if asked is None or call is None or _whole_input(seen):
        return None
    _, problem = arguments_of(call)
    if not problem or (seen.wire == "anthropic" and isinstance(call.arguments, dict)):
        return None
    return {"problem": problem, "arguments": str(call.arguments)[:120]}


_JSON_KINDS = {str: "text", list: "a list", bool: "true or false", type(None): "nothing"}


def _input_no_object(seen: Observation) -> Found:
    """SDKs hand Anthropic's ``input`` to the tool as it is: text stays text."""
    asked, call = _asked(seen), _call(seen)
    if asked is None or call is None or not _whole_input(seen):
        return None
    if isinstance(call.arguments, dict):
        return None
    kind = _JSON_KINDS.get(type(call.arguments), "a number")
    return {"found": kind, "arguments": str(call.arguments)[:120]}


def _schema(seen: Observation) -> Found:
    asked, call = _asked(seen), _call(seen)
    if asked is None or call is None or call.name != asked["name"]:
        return None
    value, _ = arguments_of(call)
    if value is None:
        return None
    found = violation(value, asked["schema"])
    return {"problem": found} if found else None


def _finish(seen: Observation) -> Found:
    call, answer = _call(seen), seen.answer
    if _asked(seen) is None or call is None or answer is None or answer.finish in _FINISH:
        return None
    return {"finish": answer.finish or "null"}


def _no_id(seen: Observation) -> bool:
    call = _call(seen)
    return _asked(seen) is not None and call is not None and not call.id


def _row(
    code: str,
    slug: str,
    when: When,
    rows: tuple[int, ...],
    level: Level,
    confidence: Confidence = HIGH,
) -> Row:
    return Row(code, slug, Phase.MEANING, Tier.BODY, when, confidence, level, rows=rows)


ROWS = (
    _row("K3L-616", "tools.ignored", _ignored, (163,), Level.FAIL),
    _row("K3L-619", "tools.wrong-name", _wrong_name, (164,), Level.FAIL),
    _row("K3L-617", "tools.arguments", _not_json, (164, 152), Level.FAIL),
    _row("K3L-644", "tools.input-no-object", _input_no_object, (164, 152), Level.FAIL),
    _row("K3L-618", "tools.schema-broken", _schema, (164,), Level.FAIL),
    _row("K3L-643", "tools.no-id", _no_id, (165,), Level.FAIL),
    _row("K3L-642", "tools.canned", _canned, (163, 168), Level.WARN),
    _row("K3L-620", "tools.finish", _finish, (162,), Level.WARN),
)
