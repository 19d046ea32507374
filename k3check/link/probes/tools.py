"""One request, on whichever API, that has to call a tool with a nested schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.link.asking import ask, request_body
from k3check.link.findings import of_asked
from k3check.link.gate import NAMES
from k3check.link.probes import Cost, Probe

if TYPE_CHECKING:
    from k3check.link.session import Session
    from k3check.report.model import Finding

_TITLE = "a tool call with a nested schema"

# Every property has a type of its own: K3's dialect of JSON Schema demands it.
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "room": {"type": "string", "description": "name of the room"},
        "slot": {
            "type": "object",
            "properties": {
                "day": {"type": "string", "enum": ["monday", "tuesday", "wednesday"]},
                "hour": {"type": "integer"},
            },
            "required": ["day", "hour"],
            "additionalProperties": False,
        },
        "guests": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["room", "slot", "guests"],
    "additionalProperties": False,
}
NAME = "book_room"
_ABOUT = {"name": NAME, "description": "Book a meeting room."}
# The tool and the demand to call one, as each API writes them.
ASKING: dict[str, dict[str, Any]] = {
    "openai": {
        "tools": [{"type": "function", "function": _ABOUT | {"parameters": SCHEMA}}],
        "tool_choice": "required",
    },
    "anthropic": {
        "tools": [_ABOUT | {"input_schema": SCHEMA}],
        "tool_choice": {"type": "any"},
    },
    "responses": {
        "tools": [{"type": "function"} | _ABOUT | {"parameters": SCHEMA}],
        "tool_choice": "required",
    },
}
_TEXT = "Book the room Curie on Tuesday at 15 o'clock for Ada and Emmy. Use the tool."


def run(session: Session) -> Finding:
    """Ask for the tool."""
    body = request_body(session, session.wire, _TEXT) | ASKING[session.wire]
    facts = {"tool": {"name": NAME, "schema": SCHEMA}, "canned": session.canned}
    asked = ask(session, session.wire, body, facts=facts)
    if asked.result.answered:
        session.passed.add("tools")
    return of_asked(session, "tools", _TITLE, asked)


PROBE = Probe(
    "tools",
    _TITLE,
    40,
    run,
    cost=lambda request: Cost(1, 200 + (request.max_output_tokens or 300)),
    needs=NAMES,
    default=True,
)
