"""Claude Code's ``settings.json``: the endpoint stands in its ``env`` table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from k3check.config.dialects.base import Reading, Value, table, table_dialect
from k3check.report.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Document

# The file's own "model" is used only where the variable is not set, so it stands first.
_FIELDS: dict[str, str | None] = {
    "model": "model.name",
    "env.ANTHROPIC_BASE_URL": "api.base_url",
    "env.ANTHROPIC_API_KEY": "api.api_key",
    "env.ANTHROPIC_AUTH_TOKEN": "api.api_key",
    "env.ANTHROPIC_MODEL": "model.name",
    "env.API_TIMEOUT_MS": "api.timeout_seconds",
    "permissions": "client.permissions",
    "agent": "client.agent",
}
_ORDER = tuple(_FIELDS)


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data have an ``env`` table with one of the client's variables."""
    return any(name.startswith("ANTHROPIC_") for name in table(data, "env"))


def _seconds(value: Value) -> Value:
    """The client's variable is a text of milliseconds."""
    raw = value.value
    if isinstance(raw, str) and raw.isascii() and raw.isdigit() and len(raw) < 16:
        return replace(value, value=int(raw) / 1000)
    return value


def finish(document: Document, reading: Reading) -> Reading:
    """Set the protocol, order by precedence, and note keys that the client does not have."""
    values = sorted(
        (_seconds(v) if v.key == "api.timeout_seconds" else v for v in reading.values),
        key=lambda value: _ORDER.index(".".join(str(part) for part in value.path)),
    )
    env = ("env",)
    values.append(Value("link.protocol", "anthropic", env))
    by_name = {str(value.path[-1]): value for value in values}
    # With both set the client sends both headers; the token's is the one most gateways read.
    if "ANTHROPIC_AUTH_TOKEN" in by_name:
        values.append(Value("link.auth", "bearer", by_name["ANTHROPIC_AUTH_TOKEN"].path))
    elif "ANTHROPIC_API_KEY" in by_name:
        values.append(Value("link.auth", "x-api-key", by_name["ANTHROPIC_API_KEY"].path))
    notes = list(reading.notes)
    if "agent" in by_name:
        where = document.where(by_name["agent"].path)
        notes.append(Message("K3C-048", {"key": "agent", "where": where}))
    return replace(reading, values=tuple(values), notes=tuple(notes))


DIALECT = table_dialect(
    name="claude-code",
    title="Claude Code's settings.json",
    looks_for='an "env" table with ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY, ANTHROPIC_MODEL',
    fields=_FIELDS,
    recognise=recognise,
    open_=True,
    finish=finish,
)
