"""A fact at the start of a long context, asked for at its end, on whichever API."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from k3check.link.asking import LIMITS, ask, most_output, request_body, streamed
from k3check.link.findings import of_asked
from k3check.link.gate import NAMES
from k3check.link.probes import Cost, Probe
from k3check.model import Confidence, Diagnosis

if TYPE_CHECKING:
    from k3check.link.session import Session
    from k3check.model import Finding

_TITLE = "a fact at the start of a long context"
_NAME = "MAX_RETRY_COUNT"
# English prose has about four characters a token in every current tokenizer.
CHARACTERS_PER_TOKEN = 4
# Below this share of the tokens that were sent, something cut the context.
_TRUNCATED = 0.4


def context(tokens: int, value: int) -> str:
    """The fact and as much ordinary text behind it as asked for."""
    lines = [f"The value of {_NAME} is {value}.\n"]
    size, number = len(lines[0]), 0
    while size < tokens * CHARACTERS_PER_TOKEN:
        number += 1
        line = (
            f"Record {number}: the valve in room {number * 7 % 311} was checked at "
            f"{number % 24:02d}:{number * 13 % 60:02d} and found in order.\n"
        )
        lines.append(line)
        size += len(line)
    return "".join(lines)


def run(session: Session) -> Finding:
    """Hide a number and ask for it."""
    tokens = session.request.needle_tokens
    value = 1000 + int.from_bytes(os.urandom(4), "big") % 9000
    text = (
        f"{context(tokens, value)}\n"
        f"What is the value of {_NAME}? Reply with the number and nothing else."
    )
    wire = session.wire
    most = most_output(session.request)
    body = request_body(session, wire, text) | streamed(wire) | {LIMITS[wire]: most}
    # A long context takes its time before the first token: that is no buffer on the way.
    asked = ask(session, wire, body, stream=True, facts={"long": True})
    answer, more = asked.result.seen.answer, []
    metrics = {"context_tokens": float(tokens)}
    if asked.result.answered and answer is not None:
        view = asked.result.seen.stream
        if view.first_at is not None:
            metrics["first_token_seconds"] = view.first_at
        counted = answer.usage.whole_prompt if answer.usage else None
        values = {"sent": tokens, "counted": counted, "value": value, "answer": answer.text[:80]}
        values = session.redactor.value(values)
        if counted is not None and counted < _TRUNCATED * tokens:
            more.append(Diagnosis("K3L-662", Confidence.HIGH, values=values))
        elif str(value) not in answer.text and not asked.result.failing:
            more.append(Diagnosis("K3L-661", Confidence.HIGH, values=values))
    return of_asked(session, "needle", _TITLE, asked, failures=more, metrics=metrics)


PROBE = Probe(
    "needle",
    _TITLE,
    100,
    run,
    cost=lambda request: Cost(1, request.needle_tokens + most_output(request)),
    needs=NAMES,
)
