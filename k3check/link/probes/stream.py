"""The same question as a stream, on whichever API: framing, order, end, usage, times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.link.asking import ask, most_output, question, request_body, streamed
from k3check.link.findings import of_asked
from k3check.link.gate import NAMES
from k3check.link.probes import Cost, Probe

if TYPE_CHECKING:
    from k3check.link.session import Session
    from k3check.model import Finding

_TITLE = "the same answer as a stream"


def run(session: Session) -> Finding:
    """Ask for a stream."""
    wire = session.wire
    body = request_body(session, wire, question(session)) | streamed(wire)
    asked = ask(
        session, wire, body, stream=True, nonce=session.nonce, facts={"plain": session.plain}
    )
    seen, metrics = asked.result.seen, {}
    if seen.exchange.events:
        view = seen.stream
        metrics = {"chunks": float(view.chunks)}
        if view.first_at is not None:
            metrics["first_token_seconds"] = view.first_at
    if asked.result.answered:
        session.passed.add("stream")
    return of_asked(session, "stream", _TITLE, asked, metrics=metrics)


PROBE = Probe(
    "stream",
    _TITLE,
    30,
    run,
    cost=lambda request: Cost(1, 40 + most_output(request)),
    needs=NAMES,
    default=True,
)
