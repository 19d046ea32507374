"""Look at the settings; send nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check import hints
from k3check.link import lint
from k3check.link.findings import finding
from k3check.link.probes import Probe
from k3check.link.problem import Severity
from k3check.masking import MASK
from k3check.model import Confidence, Diagnosis, Message, Outcome

if TYPE_CHECKING:
    from k3check.link.session import Session
    from k3check.model import Finding

_TITLE = "settings: base URL, key, model"
# A run of the default probes needs no announcement.
_UNSAID = 3
# Problems of these keys keep only what needs the key or the model from being sent.
_PARTIAL = {"api.api_key": "key", "model.name": "model"}


def run(session: Session) -> Finding:
    """Check the settings; a blocking problem ends what would need them."""
    problems = lint.check(session.request)
    failing = [p for p in problems if p.severity in (Severity.BLOCK, Severity.FAIL)]
    warnings = [p for p in problems if p.severity is Severity.WARN]
    notes = [p for p in problems if p.severity is Severity.NOTE]
    for problem in problems:
        if problem.severity is Severity.BLOCK:
            slug = hints.get(problem.code).slug
            reason = Message("K3L-903", {"code": problem.code, "slug": slug})
            if problem.key in _PARTIAL:
                session.blocked = session.blocked or reason
            else:
                session.ended = session.ended or reason
    outcome = Outcome.FAIL if failing else Outcome.ACCEPTABLE if warnings else Outcome.PASS
    listed = [
        Diagnosis(p.code, Confidence.HIGH, values=session.redactor.value(dict(p.values)))
        for p in (*failing, *warnings)
    ]
    from k3check.link.runner import cost  # the runner finds probes, this one among them

    request, shown = session.request, session.redactor.excerpt
    evidence = {
        "base_url": shown(session.base.shown) or "not set",
        "model": shown(request.model or "") or "not set",
        "api_key": MASK if request.api_key else "not set",
    }
    # With a query or a fragment there is an address, though a wrong one: it shows what is wrong.
    shown_all = ("K3L-004", "K3L-005")
    unusable = any(
        p.severity is Severity.BLOCK and p.key == "api.base_url" and p.code not in shown_all
        for p in problems
    )
    if session.base.host and not unusable:
        evidence["effective_url"] = shown(session.base.url(session.wire))
    for key, name in (("api.base_url", "base_url"), ("api.api_key", "api_key"),
                      ("model.name", "model")):  # fmt: skip
        origin = request.origin(key)
        if origin and evidence[name] != "not set":
            evidence[f"{name}_from"] = shown(origin)
    remarks = [Message(p.code, session.redactor.value(dict(p.values))) for p in notes]
    if not request.offline and (total := cost(request)).requests > _UNSAID:
        remarks.append(Message("K3L-915", {"requests": total.requests, "tokens": total.tokens}))
    return finding(
        "lint",
        _TITLE,
        outcome,
        diagnoses=listed,
        notes=remarks,
        evidence=evidence,
    )


PROBE = Probe("lint", _TITLE, 0, run, default=True, quick=True, sends=False)
