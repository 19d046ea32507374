"""Run the probes of a request in order; the first cause found ends what depends on it."""

from __future__ import annotations

import difflib
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from k3check import hints
from k3check.errors import UsageError
from k3check.link.diagnosis import Phase, table
from k3check.link.findings import skipped
from k3check.link.probes import Cost, names, probes
from k3check.link.session import Session
from k3check.model import Message, Outcome

if TYPE_CHECKING:
    from k3check.link.probes import Probe
    from k3check.link.request import LinkRequest
    from k3check.model import Finding
    from k3check.report.listener import Listener

# Causes that every request would meet again, whatever it asks for.
_SHARED = ("auth.", "quota.", "limit.", "access.", "redirect.")


def chosen(request: LinkRequest) -> tuple[Probe, ...]:
    """The probes that a request asks for.

    Raises:
        UsageError: a name is unknown.
    """
    known = names()
    for name in request.probes:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise UsageError(
                code="K3L-950",
                what=f"there is no probe {name!r}",
                where="PROBE",
                found=name,
                accepted=", ".join(known),
                fix=f"Did you mean {near[0]}?" if near else "Name probes from the list.",
            )
    if request.probes:
        # Settings are always looked at first: a placeholder must not be sent by any probe.
        return tuple(p for p in probes() if p.name in request.probes or p.name == "lint")
    fitting = [p for p in probes() if not p.wires or request.protocol in p.wires]
    if request.profile in ("full", "stress"):
        return tuple(fitting)
    if request.profile == "quick":
        return tuple(p for p in fitting if p.quick)
    return tuple(p for p in fitting if p.default)


def cost(request: LinkRequest) -> Cost:
    """What the chosen probes may cost together."""
    costs = [p.cost(request) for p in chosen(request) if p.fits(request.protocol)]
    return Cost(sum(c.requests for c in costs), sum(c.tokens for c in costs))


def run(request: LinkRequest, listener: Listener) -> list[Finding]:
    """Run the chosen probes; see :func:`k3check.link.check`."""
    wanted = chosen(request)
    listener.planned(len(wanted))
    session = Session.of(request)
    findings: list[Finding] = []
    try:
        for probe in wanted:
            listener.started(f"link/{probe.name}", probe.title)
            begun, sent, tokens = time.monotonic(), session.spent.requests, session.spent.tokens
            result = _one(session, probe)
            if session.spent.requests > sent:
                spent = {
                    "requests": float(session.spent.requests - sent),
                    "tokens": float(session.spent.tokens - tokens),
                }
                result = replace(result, metrics={**result.metrics, **spent})
            _remember(session, probe, result)
            # Last line of defence: whatever a probe put together, no key leaves it.
            result = session.redactor.value(result)
            result = replace(result, duration_s=time.monotonic() - begun)
            findings.append(result)
            listener.finished(result)
    finally:
        session.close()
    return findings


def _one(session: Session, probe: Probe) -> Finding:
    if probe.sends:
        if session.request.offline:
            return skipped(probe.name, probe.title, Message("K3L-902"))
        if session.ended is not None:
            return skipped(probe.name, probe.title, session.ended)
        # Transport sends neither key nor model, so it may run without them.
        if session.blocked is not None and probe.name != "transport":
            return skipped(probe.name, probe.title, session.blocked)
        if not probe.fits(session.wire):
            return skipped(probe.name, probe.title, Message("K3L-917", {"protocol": session.wire}))
        for need in probe.needs:
            if need in session.failed:
                return skipped(probe.name, probe.title, session.failed[need])
    return probe.run(session)


def _remember(session: Session, probe: Probe, result: Finding) -> None:
    """Keep what a failure means for later probes."""
    if result.outcome is not Outcome.FAIL or not probe.sends or not result.diagnoses:
        return
    code = result.diagnoses[0].code
    row = next((row for row in table() if row.code == code), None)
    if row is None:
        # Second looks found the cause: it is every further request's cause too.
        if probe.ends:
            values = {"probe": probe.name, "slug": hints.get(code).slug, "code": code}
            session.ended = session.ended or Message("K3L-901", values)
        return
    reason = Message("K3L-901", {"probe": probe.name, "slug": row.slug, "code": code})
    # A refused configured field is repaired on the way: the rest still works without it.
    if code in ("K3L-250", "K3L-252", "K3L-253") and probe.name in session.passed:
        return
    if row.phase < Phase.STREAM or row.slug.startswith("tools."):
        session.failed[probe.name] = reason
    shared = probe.ends or row.phase <= Phase.TLS or row.slug.startswith(_SHARED)
    if row.phase < Phase.STREAM and shared:
        session.ended = session.ended or reason
