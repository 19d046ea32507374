"""One chat request as configured: the gate for everything after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.link.asking import ask, chat_body, post, question
from k3check.link.exchange import Call
from k3check.link.findings import of_asked
from k3check.link.probes import Cost, Probe
from k3check.report.model import Message

if TYPE_CHECKING:
    from k3check.link.asking import Asked
    from k3check.link.session import Session
    from k3check.report.model import Finding

_TITLE = "one chat request, as configured"
_LOST = "url."
_NO_API = ("path.", "body.html-page", "body.success-false", "body.not-json")
# Where gateways keep their API, the most usual first.
_USUAL = ("/v1", "/api/v1", "/openai/v1")


def run(session: Session) -> Finding:
    """Ask once; if the base URL is at fault, ask again with the corrected one."""
    asked = ask(session, "openai", chat_body(session, question(session)), nonce=session.nonce)
    notes = _corrected(session, asked) or _searched(session, asked)
    if asked.result.answered:
        session.plain = asked.result.seen.answer
        session.canned = any(hit.row.code == "K3L-613" for hit in asked.result.hits)
    if asked.result.answered:
        session.passed.add("chat")
    return of_asked(session, "chat", _TITLE, asked, notes=notes)


def _corrected(session: Session, asked: Asked) -> list[Message]:
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
        body = chat_body(fixed, question(fixed))
        result = fixed.ask(post(fixed, "openai", body), "openai", nonce=fixed.nonce, retries=False)
    finally:
        fixed.close()
    values = {"corrected_base_url": fixed.base.shown, "status": result.seen.status or "no answer"}
    if result.answered:
        return [Message("K3L-911", values)]
    slug = result.failing[0].row.slug if result.failing else "no answer"
    return [Message("K3L-912", values | {"slug": slug})]


def _searched(session: Session, asked: Asked) -> list[Message]:
    """Where on the same host an API is, if the configured path leads to none.

    Only its free list of models is asked for, and the key stays with its origin.
    """
    failing = asked.result.failing
    if not failing or not failing[0].row.slug.startswith(_NO_API):
        return []
    parts = session.base.parts
    root = f"{parts.scheme}://{parts.netloc}"
    here = session.base.url("models")
    for path in _USUAL:
        found = session.with_base(root + path)
        if found.url("models") == here:
            continue
        try:
            call = Call("GET", found.url("models"), auth=found.auth("openai"))
            result = found.ask(call, "models", retries=False)
        finally:
            found.close()
        if not result.failing and isinstance(result.seen.at("data"), list):
            values = {"found_base_url": found.base.shown}
            return [Message("K3L-913", session.redactor.value(values))]
    return []


PROBE = Probe(
    "chat",
    _TITLE,
    20,
    run,
    cost=lambda request: Cost(1, 40 + (request.max_output_tokens or 200)),
    wires=("openai",),
    default=True,
    quick=True,
    ends=True,
)
