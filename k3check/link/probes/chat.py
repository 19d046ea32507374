"""One chat request as configured: the gate for everything after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.link.asking import ask, chat_body, post, question
from k3check.link.findings import of_asked
from k3check.link.probes import Cost, Probe
from k3check.report.model import Message

if TYPE_CHECKING:
    from k3check.link.asking import Asked
    from k3check.link.session import Session
    from k3check.report.model import Finding

_TITLE = "one chat request, as configured"
_LOST = "url."


def run(session: Session) -> Finding:
    """Ask once; if the base URL is at fault, ask again with the corrected one."""
    asked = ask(session, "openai", chat_body(session, question(session)), nonce=session.nonce)
    notes = list(_corrected(session, asked))
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
