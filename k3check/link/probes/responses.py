"""The Responses API, which Codex speaks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.link import gate
from k3check.link.asking import most_output
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
    cost=lambda request: Cost(1, 40 + most_output(request)),
    wires=("responses",),
    default=True,
    quick=True,
    ends=True,
)
