"""The first request of a run, on whichever API: the gate for everything after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.link.asking import ask, post, question, request_body
from k3check.link.findings import of_asked
from k3check.link.wire.exchange import Call
from k3check.model import Message

if TYPE_CHECKING:
    from k3check.link.asking import Asked
    from k3check.link.session import Session
    from k3check.model import Finding

_LOST = "url."
_NO_API = ("path.", "body.html-page", "body.success-false", "body.not-json")
# Where gateways keep their API, the most usual first.
_USUAL = ("/v1", "/api/v1", "/openai/v1")
# The probe that opens each API.
NAMES = ("chat", "messages", "responses")


def first(session: Session, name: str, title: str, wire: str) -> Finding:
    """Ask once; if the base URL is at fault, ask again with the corrected one."""
    body = request_body(session, wire, question(session))
    asked = ask(session, wire, body, nonce=session.nonce)
    notes = _corrected(session, asked, wire) or _searched(session, asked, wire)
    if asked.result.answered:
        session.plain = asked.result.seen.answer
        session.canned = any(hit.row.code == "K3L-613" for hit in asked.result.hits)
        session.passed.add(name)
    return of_asked(session, name, title, asked, notes=notes)


def _corrected(session: Session, asked: Asked, wire: str) -> list[Message]:
    """What the corrected base URL would bring, if the configured one is the cause.

    Only for the same origin: the key is not tried on another host.
    """
    failing = asked.result.failing
    if not failing or not failing[0].row.slug.startswith(_LOST):
        return []
    fixed = session.with_base(session.base.corrected)
    if fixed.base.origin != session.base.origin or fixed.base.text == session.base.text:
        return []
    try:
        body = request_body(fixed, wire, question(fixed))
        result = fixed.ask(post(fixed, wire, body), wire, nonce=fixed.nonce, retries=False)
    finally:
        fixed.close()
    values = {"corrected_base_url": fixed.base.shown, "status": result.seen.status or "no answer"}
    if result.answered:
        return [Message("K3L-911", values)]
    slug = result.failing[0].row.slug if result.failing else "no answer"
    return [Message("K3L-912", values | {"slug": slug})]


def _searched(session: Session, asked: Asked, wire: str) -> list[Message]:
    """Where on the same host an API is, if the configured path leads to none.

    Only its free list of models is asked for, and the key stays with its origin.
    """
    failing = asked.result.failing
    if wire == "anthropic" or not failing or not failing[0].row.slug.startswith(_NO_API):
        return []
    parts = session.base.parts
    root = f"{parts.scheme}://{parts.netloc}"
    here = session.base.url("models")
    for path in _USUAL:
        found = session.with_base(root + path)
        if found.url("models") == here:
            continue
        try:
            call = Call("GET", found.url("models"), auth=found.auth(wire))
            result = found.ask(call, "models", retries=False)
        finally:
            found.close()
        if not result.failing and isinstance(result.seen.at("data"), list):
            values = {"found_base_url": found.base.shown}
            return [Message("K3L-913", session.redactor.value(values))]
    return []
