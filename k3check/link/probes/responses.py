"""The Responses API, which Codex speaks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.link import gate
from k3check.link.probes import Cost, Probe

if TYPE_CHECKING:
    from k3check.link.session import Session
    from k3check.model import Finding

_TITLE = "one request to /v1/responses"


def run(session: Session) -> Finding:
    """Ask once."""
    return gate.first(session, "responses", _TITLE, "responses")


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
