"""Build the requests that the probes send, and send them again without a field that was refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from k3check.link.wire.exchange import Call
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.link.diagnosis import Hit
    from k3check.link.request import LinkRequest
    from k3check.link.session import Result, Session
    from k3check.link.wire.exchange import Attempt

DEFAULT_OUTPUT = 2048
# A refused field is left out and the request sent again at most this often.
_MOST_REPAIRS = 4

SAMPLING = ("temperature", "top_p", "n", "presence_penalty", "frequency_penalty")
# The field that limits the answer, in each API.
LIMITS = {
    "openai": "max_completion_tokens",
    "anthropic": "max_tokens",
    "responses": "max_output_tokens",
}
# What a request is nothing without, in each API.
_NEEDED = {
    "": ("model", "messages", "tools", "input", "stream"),
    "anthropic": ("max_tokens",),
}
_REFUSED = ("K3L-250", "K3L-252", "K3L-253")


@dataclass(frozen=True)
class Asked:
    """A probe's exchange after repairs.

    Attributes:
        result: the last exchange.
        refused: hits of configured fields that the endpoint refused on the way: they fail the
            check although the request went through without them.
        notes: what was left out or renamed of our own fields, and the exchange's remarks.
        attempts: every try of every version of the request.
    """

    result: Result
    refused: tuple[Hit, ...] = ()
    notes: tuple[Message, ...] = ()
    attempts: tuple[Attempt, ...] = ()


def most_output(request: LinkRequest) -> int:
    """The most tokens that a request of ours lets the answer have."""
    return request.max_output_tokens or DEFAULT_OUTPUT


def question(session: Session) -> str:
    """The smallest question whose answer proves that somebody read it."""
    return f"Reply with this word and nothing else: {session.nonce}"


def configured(session: Session) -> dict[str, Any]:
    """Sampling fields and extra fields as the configuration has them."""
    request = session.request
    made = {name: getattr(request, name) for name in SAMPLING}
    return {k: v for k, v in made.items() if v is not None} | dict(request.extra_body)


def chat_body(session: Session, text: str, *, as_configured: bool = True) -> dict[str, Any]:
    """A chat completion request.

    Args:
        session: the run.
        text: the user's message.
        as_configured: with the configuration's sampling and extra fields.
    """
    body: dict[str, Any] = {
        "model": session.request.model,
        "messages": [{"role": "user", "content": text}],
        "max_completion_tokens": session.request.max_output_tokens or DEFAULT_OUTPUT,
        # A check needs no long thought, and thinking is what an answer costs.
        "reasoning_effort": "low",
    }
    return body | (configured(session) if as_configured else {})


def request_body(
    session: Session, wire: str, text: str, *, as_configured: bool = True
) -> dict[str, Any]:
    """A request in the shape of a wire's API.

    Args:
        session: the run.
        wire: ``openai``, ``anthropic`` or ``responses``.
        text: the user's message.
        as_configured: with the configuration's sampling and extra fields.
    """
    if wire == "openai":
        return chat_body(session, text, as_configured=as_configured)
    most = session.request.max_output_tokens or DEFAULT_OUTPUT
    body: dict[str, Any] = {"model": session.request.model, LIMITS[wire]: most}
    if wire == "anthropic":
        body["messages"] = [{"role": "user", "content": text}]
    else:
        body |= {"input": text, "reasoning": {"effort": "low"}}
    return body | (configured(session) if as_configured else {})


def streamed(wire: str) -> dict[str, Any]:
    """The fields that ask for a stream with its usage, which only chat completions leave out."""
    more = {"stream_options": {"include_usage": True}} if wire == "openai" else {}
    return {"stream": True} | more


def tool(wire: str, name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """A tool as a wire's API describes it."""
    about: dict[str, Any] = {"name": name, "description": description}
    if wire == "anthropic":
        return about | {"input_schema": schema}
    if wire == "responses":
        return {"type": "function"} | about | {"parameters": schema}
    return {"type": "function", "function": about | {"parameters": schema}}


def post(session: Session, wire: str, body: Mapping[str, Any], *, stream: bool = False) -> Call:
    """A call with a body; the version header is what Anthropic's API demands."""
    headers = {"anthropic-version": "2023-06-01"} if wire == "anthropic" else {}
    return Call(
        "POST", session.url(wire), body, stream=stream, auth=session.auth(wire), headers=headers
    )


def ask(
    session: Session,
    wire: str,
    body: Mapping[str, Any],
    *,
    stream: bool = False,
    nonce: str = "",
    facts: Mapping[str, Any] | None = None,
) -> Asked:
    """Send a request; if a field is refused by name, leave it out and send again.

    The configured fields are part of what is checked, so their refusal stays a failure; fields
    that only this check added are just noted.
    """
    more = "tools" if body.get("tools") else "stream" if stream else ""
    facts = {"worked": bool(session.passed), "more": more} | dict(facts or {})
    ours = set(body) - set(configured(session))
    if session.request.max_output_tokens is not None:
        ours.discard(LIMITS[wire])
    refused: list[Hit] = []
    notes: list[Message] = []
    attempts: list[Attempt] = []
    for _ in range(_MOST_REPAIRS):
        sent = session.prepared(body)
        result = session.ask(post(session, wire, sent, stream=stream), wire, nonce=nonce,
                             facts=facts)  # fmt: skip
        notes += result.notes
        attempts += result.seen.exchange.attempts
        hit = result.failing[0] if result.failing else None
        name = str(hit.values.get("parameter", "")) if hit else ""
        if hit is None or hit.row.code not in _REFUSED or name not in sent:
            break
        if name == "max_completion_tokens" and "max_tokens" not in body:
            session.renamed[name] = "max_tokens"
            notes.append(Message("K3L-906", {"field": name, "instead": "max_tokens"}))
        elif name in _NEEDED.get(wire, ()) or name in _NEEDED[""] or name in session.dropped:
            break
        else:
            original = next((k for k, v in session.renamed.items() if v == name), name)
            session.dropped.add(original)
            if original in ours:
                notes.append(Message("K3L-907", {"field": name}))
            else:
                refused.append(hit)
    return Asked(result, tuple(refused), tuple(notes), tuple(attempts))
