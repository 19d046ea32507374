"""Crush's ``crush.json``: providers, and the large and small model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.config.dialects import kimi_code
from k3check.config.dialects.base import Dialect, Reading, Value, table
from k3check.config.pick import picked, preferred, several, text
from k3check.config.references import BARE, BRACED, COMMAND
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Document, Path_

_WIRES = {
    "openai": ("openai", "/chat/completions"),
    "openai-compat": ("openai", "/chat/completions"),
    "": ("openai", "/chat/completions"),
    "anthropic": ("anthropic", ""),
}

_FIELDS = (
    ("base_url", "api.base_url"),
    ("api_key", "api.api_key"),
    ("extra_body", "client.extra_body"),
)
_SIZES = (
    ("context_window", "model.context_window"),
    ("default_max_tokens", "model.max_output_tokens"),
)


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data have providers, and are not Kimi Code's."""
    providers = table(data, "providers")
    tables = [p for p in providers.values() if isinstance(p, dict)]
    endpoint = any(k in p for p in tables for k in ("type", "base_url", "api_key", "models"))
    return endpoint and not kimi_code.recognise(data)


def read(document: Document) -> Reading:
    """The provider of the large model; else the one that speaks of Kimi, or the first."""
    data = document.data
    providers = table(data, "providers")
    large = table(table(data, "models"), "large")
    notes: list[Message | None] = []
    values: list[Value] = []
    name = text(large, "provider")
    if name and name not in providers:
        place: Path_ = ("models", "large", "provider")
        values_ = {"where": document.where(place), "key": "provider", "name": name}
        notes.append(Message("K3C-124", values_))
    if not table(providers, name):
        name = preferred({n: p for n, p in providers.items() if isinstance(p, dict)})
    provider, at = table(providers, name), ("providers", name)
    values += picked(provider, at, _FIELDS)
    values += _model(provider, at, large)
    kind = text(provider, "type")
    if kind not in _WIRES:
        where = document.where((*at, "type"))
        notes.append(Message("K3C-122", {"where": where, "found": kind}))
    if provider.get("extra_headers"):
        where = document.where((*at, "extra_headers"))
        notes.append(Message("K3C-127", {"where": where, "keys": "extra_headers"}))
    notes.append(several(document, at, name, list(providers)))
    wire, appends = _WIRES.get(kind, ("openai", ""))
    values.append(Value("link.protocol", wire, at))
    kept = tuple(note for note in notes if note is not None)
    return Reading(tuple(values), notes=kept, appends=appends)


def _model(provider: Mapping[str, Any], at: Path_, large: Mapping[str, Any]) -> list[Value]:
    """The large model's id, and its sizes from the provider's list."""
    wanted = text(large, "model")
    listed = provider.get("models")
    models = {
        entry["id"]: (entry, (*at, "models", index))
        for index, entry in enumerate(listed if isinstance(listed, list) else [])
        if isinstance(entry, dict) and isinstance(entry.get("id"), str)
    }
    values = []
    if wanted:
        values.append(Value("model.name", wanted, ("models", "large", "model")))
    elif models:
        wanted = preferred(models)
        values.append(Value("model.name", wanted, (*models[wanted][1], "id")))
    entry, path = models.get(wanted, ({}, at))
    return values + picked(entry, path, _SIZES)


DIALECT = Dialect(
    name="crush",
    title="Crush's crush.json",
    looks_for="a table providers with type, base_url, api_key, models",
    recognise=recognise,
    read=read,
    evidence=lambda data: [k for k in data if k in ("providers", "models")],
    syntaxes=("JSON",),
    expands=(BARE, BRACED, COMMAND),
    speaks="by the provider's type",
)
