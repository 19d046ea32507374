"""A wrong key and a model that does not exist, on whichever API: both must be refused."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from k3check.link.asking import post, question, request_body
from k3check.link.findings import evidence, finding
from k3check.link.gate import NAMES
from k3check.link.probes import Cost, Probe
from k3check.model import Confidence, Diagnosis, Message, Outcome

if TYPE_CHECKING:
    from k3check.link.session import Result, Session
    from k3check.model import Finding

_TITLE = "a wrong key and a wrong model"
_WRONG_KEY = ("auth.", "access.", "quota.user")
_WRONG_MODEL = ("model.", "access.model")


def run(session: Session) -> Finding:
    """Send both."""
    wire = session.wire
    body = session.prepared(request_body(session, wire, question(session)))
    call = post(session, wire, body)
    wrong_key = session.ask(
        replace(call, key=f"sk-k3check-{os.urandom(16).hex()}"), wire, retries=False
    )
    nonsense = f"k3check-no-such-model-{os.urandom(3).hex()}"
    wrong_model = session.ask(
        replace(call, body=body | {"model": nonsense}),
        wire,
        facts={"nonsense_model": True},
        retries=False,
    )
    diagnoses: list[Diagnosis] = []
    notes: list[Message] = []
    if wrong_key.answered:
        diagnoses.append(Diagnosis("K3L-664", Confidence.HIGH, values={"host": session.base.host}))
    elif not _refused(wrong_key, _WRONG_KEY):
        notes.append(_unclear("key", wrong_key))
    if wrong_model.answered:
        answer = wrong_model.seen.answer
        values = {"asked": nonsense, "answered": answer.model if answer else ""}
        diagnoses.append(
            Diagnosis("K3L-665", Confidence.HIGH, values=session.redactor.value(values))
        )
    elif not _refused(wrong_model, _WRONG_MODEL):
        notes.append(_unclear("model", wrong_model))
    unclear = len(notes) == 2
    return finding(
        "negative",
        _TITLE,
        Outcome.ACCEPTABLE if diagnoses else Outcome.SKIPPED if unclear else Outcome.PASS,
        diagnoses=diagnoses,
        notes=notes,
        evidence={
            "wrong_key": evidence(session, wrong_key.seen).get("excerpt", ""),
            "wrong_model": evidence(session, wrong_model.seen).get("excerpt", ""),
        },
    )


def _refused(result: Result, slugs: tuple[str, ...]) -> bool:
    return bool(result.failing) and result.failing[0].row.slug.startswith(slugs)


def _unclear(what: str, result: Result) -> Message:
    slug = result.failing[0].row.slug if result.failing else "none"
    return Message("K3L-666", {"what": what, "slug": slug, "status": result.seen.status or "none"})


PROBE = Probe(
    "negative",
    _TITLE,
    90,
    run,
    cost=lambda _: Cost(2, 0),
    needs=NAMES,
)
