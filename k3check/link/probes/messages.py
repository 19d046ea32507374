"""Anthropic's API, which Claude Code speaks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.link.asking import DEFAULT_OUTPUT, ask, configured, question
from k3check.link.findings import of_asked
from k3check.link.probes import Cost, Probe

if TYPE_CHECKING:
    from k3check.link.session import Session
    from k3check.report.model import Finding

_TITLE = "one request to /v1/messages"


def run(session: Session) -> Finding:
    """Ask once."""
    body = {
        "model": session.request.model,
        "max_tokens": session.request.max_output_tokens or DEFAULT_OUTPUT,
        "messages": [{"role": "user", "content": question(session)}],
        **configured(session),
    }
    asked = ask(session, "anthropic", body, nonce=session.nonce)
    if asked.result.answered:
        session.passed.add("messages")
    return of_asked(session, "messages", _TITLE, asked)


PROBE = Probe(
    "messages",
    _TITLE,
    21,
    run,
    cost=lambda request: Cost(1, 40 + (request.max_output_tokens or 200)),
    wires=("anthropic",),
    default=True,
    quick=True,
    ends=True,
)
