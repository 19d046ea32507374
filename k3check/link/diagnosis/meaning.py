"""Rows for a well-formed answer that does not say what it should.

They are independent of each other: all that fit are kept. Sources: sections A3, A4 and D7 of the
link specification.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

from k3check.link.diagnosis.helpers import HIGH, LOW, MEDIUM, Confidence, Level, Phase, Row, Tier
from k3check.link.diagnosis.prose import call_marks, echoed, question_of, readable

if TYPE_CHECKING:
    from k3check.link.apis.answers import Answer
    from k3check.link.diagnosis.helpers import When
    from k3check.link.diagnosis.observation import Observation
    from k3check.link.diagnosis.row import Found

_LENGTH = ("length", "max_tokens", "incomplete")
_FILTERED = ("content_filter", "refusal", "sensitive")
_KNOWN_FINISH = {
    "stop", "length", "tool_calls", "content_filter", "function_call",
    "end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal", "pause_turn",
    "completed", "incomplete",
}  # fmt: skip
_FAMILIES = (
    "gpt", "o1", "o3", "o4", "claude", "qwen", "deepseek", "glm", "llama", "gemini", "gemma",
    "mistral", "mixtral", "minimax", "doubao", "ernie", "yi", "phi", "grok", "command",
    "kimi-k2", "kimi-k1", "kimi-latest", "moonshot-v1", "step", "hunyuan", "baichuan",
)  # fmt: skip
_MOST_CHOICES = 8
_MOST_CALLS = 16
_DAY = 86_400
# Tokens in which a short answer of K3 and the thought before it fit.
_ENOUGH = 8192


def is_k3(model: str | None) -> bool:
    """True if a model id names some Kimi K3."""
    return bool(model) and bool(re.search(r"(?<![a-z0-9])k3(?!\d)|for-coding", str(model).lower()))


def _answer(seen: Observation) -> Answer | None:
    """The answer, if the exchange is good enough to look at what it says."""
    if seen.exchange.failure is not None and not seen.exchange.done:
        return None
    return seen.answer


def _blank(answer: Answer) -> bool:
    return not answer.text.strip() and not answer.call_count


def _limit(seen: Observation) -> Any:
    """The most tokens that the request allows for the answer."""
    body = seen.exchange.call.body or {}
    names = ("max_completion_tokens", "max_tokens", "max_output_tokens")
    return next((body[n] for n in names if n in body), "none")


def _budget(seen: Observation) -> Found:
    answer = _answer(seen)
    if answer is None or not _blank(answer) or answer.finish not in _LENGTH:
        return None
    limit = _limit(seen)
    counted = answer.usage.completion if answer.usage else None
    spent = max((n for n in (limit, counted) if isinstance(n, int)), default=0)
    # What was not enough is no advice: at least twice of it.
    enough = max(_ENOUGH, 2 * spent)
    return {"limit": limit, "enough": enough, "characters": len(answer.reasoning)}


def _unlimited(seen: Observation) -> Found:
    """More tokens were counted than the request allows."""
    answer = _answer(seen)
    limit = _limit(seen)
    counted = answer.usage.completion if answer is not None and answer.usage else None
    # Some servers count the end mark, which is no token of the answer.
    if counted is None or not isinstance(limit, int) or counted <= limit + 1:
        return None
    return {"limit": limit, "counted": counted}


def _cut(seen: Observation) -> bool:
    answer = _answer(seen)
    cut = answer is not None and not _blank(answer) and answer.finish in _LENGTH
    return cut and not _unrelated(seen)


def _filtered(seen: Observation) -> bool:
    answer = _answer(seen)
    return answer is not None and answer.finish in _FILTERED


def _echoed(seen: Observation) -> bool:
    answer = _answer(seen)
    return answer is not None and echoed(question_of(seen.exchange.call.body), answer.text)


def _unrelated(seen: Observation) -> Found:
    """No sentence of any language where one word was asked for."""
    answer = _answer(seen)
    if answer is None or not seen.nonce or _blank(answer) or answer.finish in _FILTERED:
        return None
    if seen.nonce.lower() in answer.text.lower() or readable(answer.text):
        return None
    return {"answer": answer.text[:80]}


def _parts(seen: Observation) -> bool:
    answer = _answer(seen)
    return answer is not None and answer.parts


def _unparsed(seen: Observation) -> Found:
    """Tools were given, no call came, and its marks stand in the text or in the thinking."""
    answer = _answer(seen)
    tools = (seen.exchange.call.body or {}).get("tools")
    if answer is None or answer.call_count or not tools:
        return None
    for place, text in (("thinking", answer.reasoning), ("text", answer.text)):
        if mark := call_marks(text):
            return {"place": place, "found": mark.strip("<>|[]")}
    return None


def _in_reasoning(seen: Observation) -> bool:
    answer = _answer(seen)
    return (
        not _unparsed(seen) and answer is not None and _blank(answer) and bool(answer.reasoning)
        and answer.finish not in (*_LENGTH, *_FILTERED)
    )  # fmt: skip


def _empty(seen: Observation) -> bool:
    answer = _answer(seen)
    return (
        answer is not None and _blank(answer) and not answer.reasoning
        and answer.finish not in (*_LENGTH, *_FILTERED)
    )  # fmt: skip


def _bare(model: str) -> str:
    """A model id without provider prefix, date, tag and case."""
    bare = model.strip().lower().rpartition("/")[2]
    bare = bare.partition(":")[0].partition("@")[0]
    return re.sub(r"[-_](20\d{6}|20\d\d-\d\d-\d\d|\d{4}|latest|preview)$", "", bare)


def _family_of(model: str) -> str:
    bare = _bare(model)
    return next((f for f in _FAMILIES if re.match(rf"{re.escape(f)}(?![a-z])", bare)), "")


def _echo(seen: Observation, kind: str) -> Found:
    answer, asked = _answer(seen), seen.request.model
    # A nonsense name is asked for on purpose: its echo is judged by that probe.
    asked = str((seen.exchange.call.body or {}).get("model") or asked or "")
    if answer is None or not asked or seen.facts.get("nonsense_model"):
        return None
    if not answer.model:
        return {"asked": asked} if kind == "missing" else None
    if answer.model == asked:
        return None
    if _bare(answer.model) == _bare(asked):
        found = "alias"
    elif _family_of(answer.model) and _family_of(answer.model) != _family_of(asked):
        found = "other"
    elif is_k3(answer.model) and is_k3(asked):
        found = "alias"
    else:
        found = "different"
    return {"asked": asked, "answered": answer.model} if found == kind else None


def _usage_missing(seen: Observation) -> Found:
    answer = _answer(seen)
    if answer is None or (answer.usage is not None and answer.usage.complete):
        return None
    if answer.usage is None:
        return {"missing": "usage"}
    return {"missing": "prompt_tokens" if answer.usage.prompt is None else "completion_tokens"}


_USAGE_WORDS = {
    "strings": "numbers written as text",
    "zeros": "zero prompt tokens",
    "negative": "negative numbers",
    "sum": "a total that is not prompt + completion",
}


def _usage_broken(seen: Observation) -> Found:
    answer = _answer(seen)
    if answer is None or answer.usage is None or not answer.usage.oddities:
        return None
    return {"problem": ", ".join(_USAGE_WORDS[o] for o in answer.usage.oddities)}


def _cached(seen: Observation) -> Found:
    answer = _answer(seen)
    usage = answer.usage if answer else None
    if usage is None or usage.cached is None or usage.prompt is None:
        return None
    # Anthropic counts cached tokens beside the prompt's, the others inside.
    if usage.cached <= usage.prompt or usage.cached_as == "cache_read_input_tokens":
        return None
    return {"cached": usage.cached, "prompt": usage.prompt}


def _thinking(seen: Observation) -> Answer | None:
    """An answer of a K3 that should have thought."""
    answer = _answer(seen)
    if answer is None or _blank(answer) or not is_k3(seen.request.model):
        return None
    return answer


def _tagged(answer: Answer) -> bool:
    return bool(re.search(r"</?think(ing)?>|◁/?think▷", answer.text[:100_000]))


def _billed(answer: Answer) -> Found:
    """Counted far more tokens than the text can have."""
    counted = answer.usage.completion if answer.usage else None
    size = len(answer.text) + sum(len(str(c.arguments)) + len(c.name) + 40 for c in answer.calls)
    if counted is None or counted < 40 or counted <= 2 * size:
        return None
    return {"completion_tokens": counted, "characters": size}


def _no_reasoning(seen: Observation) -> bool:
    answer = _thinking(seen)
    return (
        answer is not None and not answer.reasoning and not _tagged(answer) and not _billed(answer)
    )


def _stripped(seen: Observation) -> Found:
    answer = _thinking(seen)
    if answer is None or answer.reasoning or _tagged(answer):
        return None
    return _billed(answer)


def _renamed(seen: Observation) -> Found:
    answer = _thinking(seen)
    if answer is None or seen.wire != "openai":
        return None
    if answer.reasoning_field in ("", "reasoning_content"):
        return None
    return {"field": answer.reasoning_field}


def _leaked(seen: Observation) -> bool:
    answer = _thinking(seen)
    return answer is not None and _tagged(answer)


def _finish(seen: Observation) -> Found:
    answer = _answer(seen)
    if answer is None or answer.finish is None or answer.finish in _KNOWN_FINISH:
        return None
    return {"finish": answer.finish or "an empty text"}


def _finish_null(seen: Observation) -> bool:
    answer = _answer(seen)
    return answer is not None and answer.finish is None and not seen.exchange.events


def _nonce(seen: Observation) -> Found:
    answer = _answer(seen)
    if answer is None or not seen.nonce or _blank(answer):
        return None
    if seen.nonce.lower() in answer.text.lower() or answer.finish in (*_LENGTH, *_FILTERED):
        return None
    if _unrelated(seen) or _echoed(seen):
        return None
    return {"nonce": seen.nonce, "answer": answer.text[:80]}


def _clock(seen: Observation) -> Found:
    answer = _answer(seen)
    if answer is None or answer.created is None:
        return None
    off = abs(answer.created - time.time())
    return {"days": round(off / _DAY)} if off > _DAY else None


def _many(seen: Observation) -> Found:
    answer = _answer(seen)
    if answer is None or (answer.choices <= _MOST_CHOICES and answer.call_count <= _MOST_CALLS):
        return None
    return {"choices": answer.choices, "calls": answer.call_count}


def _row(
    code: str,
    slug: str,
    when: When,
    rows: tuple[int, ...],
    level: Level,
    confidence: Confidence = HIGH,
) -> Row:
    return Row(code, slug, Phase.MEANING, Tier.BODY, when, confidence, level, rows=rows)


_F, _W, _N = Level.FAIL, Level.WARN, Level.NOTE

ROWS = (
    _row("K3L-600", "budget.thinking", _budget, (154,), _F),
    _row("K3L-637", "answer.filtered", _filtered, (155,), _F),
    _row("K3L-611", "answer.in-reasoning", _in_reasoning, (154,), _F),
    _row("K3L-601", "answer.empty", _empty, (155,), _F, MEDIUM),
    _row("K3L-715", "tools.in-text", _unparsed, (164,), _F),
    _row("K3L-712", "answer.echo", _echoed, (168,), _F),
    _row("K3L-713", "answer.unrelated", _unrelated, (168,), _F, MEDIUM),
    _row("K3L-714", "answer.parts", _parts, (133,), _F),
    _row("K3L-602", "model.other-family", lambda seen: _echo(seen, "other"), (156, 157), _F),
    _row("K3L-636", "answer.cut", _cut, (154,), _W),
    _row("K3L-604", "model.echo-different", lambda seen: _echo(seen, "different"), (156,), _W,
         MEDIUM),
    _row("K3L-640", "model.echo-missing", lambda seen: _echo(seen, "missing"), (156,), _W),
    _row("K3L-605", "usage.missing", _usage_missing, (148,), _W),
    _row("K3L-606", "usage.broken", _usage_broken, (159,), _W),
    _row("K3L-614", "usage.cached-too-many", _cached, (167,), _W),
    _row("K3L-609", "reasoning.stripped", _stripped, (160,), _W, MEDIUM),
    _row("K3L-610", "reasoning.in-content", _leaked, (151,), _W),
    _row("K3L-641", "finish.missing", _finish_null, (162,), _W),
    _row("K3L-622", "param.limit-ignored", _unlimited, (93,), _W, MEDIUM),
    _row("K3L-613", "answer.canned", _nonce, (168,), _W, MEDIUM),
    _row("K3L-621", "answer.too-many", _many, (178,), _W),
    _row("K3L-603", "model.echo-alias", lambda seen: _echo(seen, "alias"), (156,), _N),
    _row("K3L-607", "reasoning.missing", _no_reasoning, (161,), _N, LOW),
    _row("K3L-608", "reasoning.renamed", _renamed, (161,), _N),
    _row("K3L-612", "finish.unknown", _finish, (162,), _N),
    _row("K3L-615", "answer.created-far", _clock, (169,), _N),
)  # fmt: skip
