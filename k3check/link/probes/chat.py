"""One chat request as configured: the gate for everything after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.link import gate
from k3check.link.asking import most_output
from k3check.link.probes import Cost, Probe

if TYPE_CHECKING:
    from k3check.link.session import Session
    from k3check.model import Finding

_TITLE = "one chat request, as configured"


def run(session: Session) -> Finding:
    """Ask once."""
    return gate.first(session, "chat", _TITLE, "openai")


PROBE = Probe(
    "chat",
    _TITLE,
    20,
    run,
    cost=lambda request: Cost(1, 40 + most_output(request)),
    wires=("openai",),
    default=True,
    quick=True,
    ends=True,
)
