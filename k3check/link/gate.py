"""The first request of a run, on whichever API: the gate for everything after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.link.asking import ask, question, request_body
from k3check.link.findings import of_asked
from k3check.link.looks import look

if TYPE_CHECKING:
    from k3check.link.session import Session
    from k3check.model import Finding

# The probe that opens each API.
NAMES = ("chat", "messages", "responses")


def first(session: Session, name: str, title: str, wire: str) -> Finding:
    """Ask once; where the refusal leaves several causes, look again until one is left."""
    body = request_body(session, wire, question(session))
    asked = ask(session, wire, body, nonce=session.nonce)
    looked = look(session, asked, wire)
    if looked.asked is not None:
        asked = looked.asked
    if asked.result.answered:
        session.plain = asked.result.seen.answer
        session.canned = any(hit.row.code == "K3L-613" for hit in asked.result.hits)
        session.passed.add(name)
    instead = looked.instead if asked is not looked.asked else None
    return of_asked(session, name, title, asked, instead=instead, notes=looked.notes)
