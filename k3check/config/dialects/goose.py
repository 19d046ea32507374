"""Goose's ``config.yaml``: variables in capitals at the top.

``OPENAI_BASE_PATH`` is appended to ``OPENAI_HOST`` (block/goose crates/goose/src/providers/
openai.rs), /v1/messages to ``ANTHROPIC_HOST`` (anthropic.rs). Keys stand in the system's keyring,
or in the shell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.config.client import Client, sdk
from k3check.config.dialects.base import Dialect, Reading, Value
from k3check.config.pick import picked, text
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Document

_PATH = "v1/chat/completions"
_CHAT = Client("Goose", path=f"/{_PATH}")
_MESSAGES = sdk("Goose with anthropic", "anthropic")
# Address, its default, the variable of the key.
_HOSTS = {
    "openai": ("OPENAI_HOST", "https://api.openai.com", "OPENAI_API_KEY"),
    "anthropic": ("ANTHROPIC_HOST", "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
}


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data have the client's provider."""
    return "GOOSE_PROVIDER" in data


def read(document: Document) -> Reading:
    """The provider and the model that are set."""
    data = document.data
    provider = text(data, "GOOSE_PROVIDER")
    values = picked(data, (), (("GOOSE_MODEL", "model.name"),))
    notes = []
    if provider in _HOSTS:
        host, default, variable = _HOSTS[provider]
        values.append(Value("api.base_url", default, (), source="client"))
        values.append(Value("api.api_key", variable, (), source="below"))
        values += picked(data, (), ((host, "api.base_url"), (variable, "api.api_key")))
    else:
        where = document.where(("GOOSE_PROVIDER",))
        notes.append(Message("K3C-122", {"where": where, "found": provider or "no provider"}))
    path = "/" + (text(data, "OPENAI_BASE_PATH") or _PATH).lstrip("/")
    where = document.where(("GOOSE_PROVIDER",))
    return Reading(
        tuple(values),
        notes=tuple(notes),
        client=_MESSAGES if provider == "anthropic" else Client("Goose", path=path),
        client_at=("GOOSE_PROVIDER",),
        absent={"api.api_key": Message("K3C-151", {"where": where, "store": "the keyring"})},
    )


DIALECT = Dialect(
    name="goose",
    title="Goose's config.yaml",
    looks_for="GOOSE_PROVIDER, GOOSE_MODEL, OPENAI_HOST, OPENAI_BASE_PATH",
    recognise=recognise,
    read=read,
    evidence=lambda data: [k for k in data if k.startswith("GOOSE_")],
    syntaxes=("YAML",),
    speaks="by the provider",
    precedence="the file > shell",
    clients=(_CHAT, _MESSAGES),
)
