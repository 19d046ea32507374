"""Name, connection, proxy, TLS: each by itself and timed apart; no HTTP, no key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.link.diagnosis import classify
from k3check.link.findings import diagnosis, finding
from k3check.link.probes import Probe
from k3check.link.wire.exchange import Call, Exchange
from k3check.link.wire.transport import direct, walk
from k3check.model import Message, Outcome

if TYPE_CHECKING:
    from k3check.link.session import Session
    from k3check.model import Finding

_TITLE = "name, connection, TLS"
_SOON_DAYS = 14
_DIRECT_S = 3.0


def run(session: Session) -> Finding:
    """Go the way to the endpoint."""
    path = walk(session.base, session.proxy, session.request)
    exchange = Exchange(
        Call("GET", session.url(session.wire)), failure=path.failure, proxy=session.proxy.shown
    )
    seen = session.observe(exchange, session.wire)
    hits = classify(seen, session.redactor) if path.failure else ()
    notes = []
    if session.proxy.url:
        values = {"proxy": session.proxy.shown, "proxy_source": session.proxy.source}
        notes.append(Message("K3L-909", session.redactor.value(values)))
    elif session.proxy.bypassed:
        notes.append(Message("K3L-908", {"entry": session.proxy.bypassed,
                                         "proxy_source": session.proxy.source}))  # fmt: skip
    if path.dead:
        notes.append(Message("K3L-106", {"dead": ", ".join(path.dead)}))
    if path.expires_in_days is not None and path.expires_in_days < _SOON_DAYS:
        notes.append(Message("K3L-132", {"days": path.expires_in_days}))
    if path.failure is not None and path.failure.at_proxy:
        how = direct(session.base, min(_DIRECT_S, session.request.timeout_s))
        notes.append(Message("K3L-910", {"result": how, "host": session.base.host}))
    evidence = {"peer": exchange.failure.peer if exchange.failure else
                f"{session.base.host}:{session.base.port}"}  # fmt: skip
    if path.addresses:
        evidence["addresses"] = ", ".join(path.addresses[:4])
    if path.tls:
        evidence["tls"] = path.tls
    if path.failure is not None:
        evidence["failure"] = path.failure.kind.value
        if path.failure.text:
            evidence["exception"] = session.redactor.excerpt(path.failure.text)
    return finding(
        "transport",
        _TITLE,
        Outcome.FAIL if hits else Outcome.PASS,
        diagnoses=[diagnosis(hit) for hit in hits],
        notes=notes,
        metrics={f"{name}_seconds": value for name, value in path.times.items()},
        evidence=evidence,
    )


PROBE = Probe("transport", _TITLE, 10, run, default=True, ends=True)
