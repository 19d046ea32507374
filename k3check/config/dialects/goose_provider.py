"""A custom provider of Goose's, ``custom_providers/NAME.json``.

``base_url`` is taken apart: its host, and its path as the request's path, v1/chat/completions where
it has none (block/goose crates/goose/src/providers/openai.rs, from_custom_config).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from k3check.config.client import Client, sdk
from k3check.config.dialects.base import Dialect, Reading, Value
from k3check.config.pick import picked, preferred, text
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Document

_WHOLE = Client("Goose's custom provider", path="")
_HOST = Client("Goose's custom provider without a path", path="/v1/chat/completions")
_MESSAGES = sdk("Goose's custom provider with engine anthropic", "anthropic")
_ENGINES = ("openai", "openai_compatible", "anthropic", "anthropic_compatible")


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data have an engine, an address and the variable of the key."""
    return all(isinstance(data.get(key), str) for key in ("engine", "base_url", "api_key_env"))


def read(document: Document) -> Reading:
    """The address, the key's variable, and the model that speaks of Kimi or the first."""
    data = document.data
    values = picked(data, (), (("base_url", "api.base_url"), ("headers", "api.headers")))
    variable = text(data, "api_key_env")
    if variable:
        values.append(Value("api.api_key", variable, ("api_key_env",), source="variable"))
    entries = data.get("models")
    listed = {
        entry["name"]: (entry, index)
        for index, entry in enumerate(entries if isinstance(entries, list) else [])
        if isinstance(entry, dict) and isinstance(entry.get("name"), str)
    }
    if listed:
        name = preferred(listed)
        entry, index = listed[name]
        values.append(Value("model.name", name, ("models", index, "name")))
        limit = (("context_limit", "model.context_window"),)
        values += picked(entry, ("models", index), limit)
    engine = text(data, "engine").casefold()
    notes = []
    if engine not in _ENGINES:
        where = document.where(("engine",))
        notes.append(Message("K3C-122", {"where": where, "found": text(data, "engine")}))
    client = _HOST if _path(text(data, "base_url")) in ("", "/") else _WHOLE
    return Reading(
        tuple(values),
        notes=tuple(notes),
        client=_MESSAGES if engine.startswith("anthropic") else client,
        client_at=("engine",),
    )


def _path(url: str) -> str:
    try:
        return urlsplit(url).path
    except ValueError:
        return ""


DIALECT = Dialect(
    name="goose-provider",
    title="Goose's custom provider",
    looks_for="engine, base_url, api_key_env, models",
    recognise=recognise,
    read=read,
    evidence=lambda _data: ("engine", "base_url", "api_key_env"),
    syntaxes=("JSON",),
    speaks="by the engine",
    clients=(_WHOLE, _HOST, _MESSAGES),
)
