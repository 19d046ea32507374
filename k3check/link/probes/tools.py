"""One request, on whichever API, that has to call a tool with a nested schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.link.asking import ask, most_output, request_body, tool
from k3check.link.findings import of_asked
from k3check.link.gate import NAMES
from k3check.link.probes import Cost, Probe

if TYPE_CHECKING:
    from k3check.link.session import Session
    from k3check.model import Finding

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
# The demand to call a tool, as each API writes it.
_CHOICE: dict[str, Any] = {
    "openai": "required",
    "anthropic": {"type": "any"},
    "responses": "required",
}
_TEXT = "Book the room Curie on Tuesday at 15 o'clock for Ada and Emmy. Use the tool."


def run(session: Session) -> Finding:
    """Ask for the tool."""
    wire = session.wire
    body = request_body(session, wire, _TEXT) | {
        "tools": [tool(wire, NAME, "Book a meeting room.", SCHEMA)],
        "tool_choice": _CHOICE[wire],
    }
    facts = {"tool": {"name": NAME, "schema": SCHEMA}, "canned": session.canned}
    asked = ask(session, wire, body, facts=facts)
    if asked.result.answered:
        session.passed.add("tools")
    return of_asked(session, "tools", _TITLE, asked)


PROBE = Probe(
    "tools",
    _TITLE,
    40,
    run,
    cost=lambda request: Cost(1, 200 + most_output(request)),
    needs=NAMES,
    default=True,
)
