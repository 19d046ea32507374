"""The same long prefix twice, on whichever API: is it found in the prefix cache the second time?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.link.asking import Asked, ask, most_output, request_body, streamed
from k3check.link.findings import finding, of_asked
from k3check.link.gate import NAMES
from k3check.link.probes import Cost, Probe
from k3check.link.probes.needle import context
from k3check.model import Confidence, Diagnosis, Message, Outcome

if TYPE_CHECKING:
    from k3check.link.session import Session
    from k3check.model import Finding

_TITLE = "the same prefix twice"
PREFIX_TOKENS = 4096


def _ask(session: Session, prefix: str, text: str) -> Asked:
    wire = session.wire
    body = request_body(session, wire, prefix + text) | streamed(wire)
    if wire == "anthropic":
        # That API caches what is marked, as Claude Code marks it; the others whatever repeats.
        blocks: list[dict[str, Any]] = [
            {"type": "text", "text": prefix, "cache_control": {"type": "ephemeral"}},
            {"type": "text", "text": text},
        ]
        body["messages"] = [{"role": "user", "content": blocks}]
    return ask(session, wire, body, stream=True, facts={"long": True})


def run(session: Session) -> Finding:
    """Ask two questions behind one prefix that no other run has."""
    prefix = f"Run {session.nonce}.\n{context(PREFIX_TOKENS, 1)}\n"
    first = _ask(session, prefix, "Reply with the word one and nothing else.")
    if not first.result.answered:
        return of_asked(session, "cache", _TITLE, first)
    second = _ask(session, prefix, "Reply with the word two and nothing else.")
    if not second.result.answered:
        return of_asked(session, "cache", _TITLE, second)
    metrics = {}
    for name, asked in (("first", first), ("second", second)):
        at = asked.result.seen.stream.first_at
        if at is not None:
            metrics[f"{name}_token_seconds"] = at
    answer = second.result.seen.answer
    usage = answer.usage if answer is not None else None
    if usage is None or usage.cached is None:
        return finding(
            "cache", _TITLE, Outcome.SKIPPED, notes=(Message("K3L-659"),), metrics=metrics
        )
    values = {"cached": usage.cached, "prompt": usage.whole_prompt, "field": usage.cached_as}
    if not usage.cached:
        more = [Diagnosis("K3L-658", Confidence.MEDIUM, values=values)]
        return of_asked(session, "cache", _TITLE, second, more=more, metrics=metrics)
    notes = [Message("K3L-660", values)]
    return of_asked(session, "cache", _TITLE, second, notes=notes, metrics=metrics)


PROBE = Probe(
    "cache",
    _TITLE,
    70,
    run,
    cost=lambda request: Cost(2, 2 * (PREFIX_TOKENS + most_output(request))),
    needs=NAMES,
)
