"""Is a value that K3 refuses refused, by name? Silence means that something drops the field."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.link.asking import LIMITS, Asked, most_output, post, question, request_body
from k3check.link.diagnosis.requests import named_field
from k3check.link.findings import evidence, finding, of_asked
from k3check.link.gate import NAMES
from k3check.link.probes import Cost, Probe
from k3check.model import Message, Outcome
from k3check.released import SAMPLING

if TYPE_CHECKING:
    from k3check.link.session import Result, Session
    from k3check.model import Finding

_TITLE = "parameters that K3 refuses"
# One value for each parameter that the official service answers with 400.
WRONG = {
    "temperature": 0.6,
    "top_p": 0.8,
    "n": 2,
    "presence_penalty": 0.5,
    "frequency_penalty": 0.5,
}
# The other APIs have no more than these; a field that none has proves nothing.
_SHARED = ("temperature", "top_p")


def wrong(wire: str) -> dict[str, float]:
    """The wrong values of the parameters that an API has."""
    return {name: v for name, v in WRONG.items() if wire == "openai" or name in _SHARED}


def run(session: Session) -> Finding:
    """Send each wrong value alone; a refusal counts only if it names the parameter."""
    wire, notes, unclear = session.wire, [], []
    values_of = wrong(wire)
    last: Result | None = None
    for name, value in values_of.items():
        body = request_body(session, wire, question(session), as_configured=False) | {
            LIMITS[wire]: most_output(session.request)
        }
        # Sent even if the chat had to do without it: whether it is refused is the question here.
        sent = session.prepared(body) | {name: value}
        last = session.ask(post(session, wire, sent), wire)
        values = {"parameter": name, "found": value, "accepted": SAMPLING[name]}
        if last.answered:
            notes.append(Message("K3L-653", values))
        elif named_field(last.seen) != name:
            hit = last.failing[0] if last.failing else None
            if hit is not None and hit.row.slug.split(".")[0] in ("auth", "quota", "limit"):
                return of_asked(session, "params", _TITLE, Asked(last, notes=last.notes))
            unclear.append(Message("K3L-655", values | {"status": last.seen.status or "none"}))
    outcome = Outcome.SKIPPED if len(unclear) == len(values_of) else Outcome.PASS
    return finding(
        "params",
        _TITLE,
        outcome,
        notes=(*unclear, *notes),
        metrics={"refused": float(len(values_of) - len(notes) - len(unclear))},
        evidence=evidence(session, last.seen) if last else {},
    )


PROBE = Probe(
    "params",
    _TITLE,
    80,
    run,
    cost=lambda request: Cost(
        len(wrong(request.protocol)),
        len(wrong(request.protocol)) * (40 + most_output(request)),
    ),
    needs=NAMES,
)
