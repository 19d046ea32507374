"""The Responses API, which Codex speaks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.link.asking import DEFAULT_OUTPUT, ask, configured, question
from k3check.link.findings import of_asked
from k3check.link.probes import Cost, Probe

if TYPE_CHECKING:
    from k3check.link.session import Session
    from k3check.report.model import Finding

_TITLE = "one request to /v1/responses"


def run(session: Session) -> Finding:
    """Ask once."""
    body = {
        "model": session.request.model,
        "max_output_tokens": session.request.max_output_tokens or DEFAULT_OUTPUT,
        "input": question(session),
        "reasoning": {"effort": "low"},
        **configured(session),
    }
    asked = ask(session, "responses", body, nonce=session.nonce)
    if asked.result.answered:
        session.passed.add("responses")
    return of_asked(session, "responses", _TITLE, asked)


PROBE = Probe(
    "responses",
    _TITLE,
    22,
    run,
    cost=lambda request: Cost(1, 40 + (request.max_output_tokens or 200)),
    wires=("responses",),
    default=True,
    quick=True,
    ends=True,
)
