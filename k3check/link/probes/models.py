"""The list of models: is the configured one in it, how large is its window."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from k3check.link.asking import Asked
from k3check.link.findings import evidence, finding, of_asked
from k3check.link.probes import Probe
from k3check.link.wire.exchange import Call
from k3check.link.wire.jsonsafe import get
from k3check.model import Confidence, Diagnosis, Message, Outcome
from k3check.released import CONTEXT

if TYPE_CHECKING:
    from k3check.link.session import Session
    from k3check.model import Finding

_TITLE = "the list of models"
# Many vendors offer no list: that says nothing about chatting.
_HIDDEN = (403, 404, 405, 501)
_CONTEXTS = ("context_length", "max_model_len", "context_window", "max_context_length")
_MOST = 2000


def run(session: Session) -> Finding:
    """Ask for the list."""
    call = Call("GET", session.url("models"), auth=session.auth(session.wire))
    result = session.ask(call, "models")
    seen = result.seen
    if result.failing and seen.status in _HIDDEN:
        return finding(
            "models",
            _TITLE,
            Outcome.SKIPPED,
            notes=(Message("K3L-651", {"status": seen.status}),),
            evidence=evidence(session, seen),
        )
    asked = Asked(result, notes=result.notes)
    if result.failing:
        return of_asked(session, "models", _TITLE, asked)
    cards = [c for c in (seen.at("data") or [])[:_MOST] if isinstance(get(c, "id"), str)]
    ids = [c["id"] for c in cards]
    model = session.request.model or ""
    more, notes = [], []
    card: dict[str, Any] | None = next((c for c in cards if c["id"] == model), None)
    if card is None:
        near = difflib.get_close_matches(model, ids, n=3, cutoff=0.4)
        values = {"model": model, "count": len(ids), "right": ", ".join(near) or "none of them"}
        more.append(Diagnosis("K3L-650", Confidence.MEDIUM, values=session.redactor.value(values)))
    window = next((get(card, n) for n in _CONTEXTS if isinstance(get(card, n), int)), None)
    if window is not None and window < CONTEXT:
        notes.append(Message("K3L-652", {"window": window, "right": CONTEXT, "model": model}))
    return of_asked(
        session,
        "models",
        _TITLE,
        asked,
        more=more,
        notes=notes,
        metrics={"models": float(len(ids))},
    )


PROBE = Probe("models", _TITLE, 15, run)
