"""Crush's ``crush.json``: providers, and the large and small model.

Providers of its catalogue need no base_url and no type (charmbracelet/catwalk
internal/providers/configs/*.json, api_endpoint and type). OpenAI's library takes the base as it
stands; for Anthropic's, an ending /v1 is left out and /v1/messages appended
(charmbracelet/crush internal/agent/coordinator.go, charmbracelet/fantasy providers/anthropic).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.config.client import Client
from k3check.config.dialects import kimi_code
from k3check.config.dialects.base import Dialect, Reading, Value, table
from k3check.config.pick import picked, preferred, several, text
from k3check.config.references import BARE, BRACED, COMMAND
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Document, Path_

_CHAT = Client("Crush")
_MESSAGES = Client("Crush with type anthropic", "anthropic", "/v1/messages", drops="/v1")
_CLIENTS = {
    "": _CHAT,
    "openai": _CHAT,
    "openai-compat": _CHAT,
    "openrouter": _CHAT,
    "anthropic": _MESSAGES,
}
# Of its catalogue those that serve Kimi's models: type, base, the variable of the key.
_CATALOGUE = {
    "moonshot": ("openai-compat", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
    "kimi-coding": ("anthropic", "https://api.kimi.com/coding", "KIMI_CODING_API_KEY"),
    "openrouter": ("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "groq": ("openai-compat", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "huggingface": ("openai-compat", "https://router.huggingface.co/v1", "HF_TOKEN"),
    "openai": ("openai", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    "anthropic": ("anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
}

_FIELDS = (
    ("base_url", "api.base_url"),
    ("api_key", "api.api_key"),
    ("extra_body", "client.extra_body"),
    ("extra_headers", "api.headers"),
)
_SIZES = (
    ("context_window", "model.context_window"),
    ("default_max_tokens", "model.max_output_tokens"),
)


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data have providers, and are not Kimi Code's."""
    providers = table(data, "providers")
    tables = [p for p in providers.values() if isinstance(p, dict)]
    endpoint = any(k in p for p in tables for k in ("type", "base_url", "api_key"))
    # PicoClaw has agents beside its providers, Kilo's are a list.
    return endpoint and "agents" not in data and not kimi_code.recognise(data)


def read(document: Document) -> Reading:
    """The provider of the large model; else the one that speaks of Kimi, or the first."""
    data = document.data
    providers = table(data, "providers")
    large = table(table(data, "models"), "large")
    notes: list[Message | None] = []
    values: list[Value] = []
    name = text(large, "provider")
    if name and name not in providers and name not in _CATALOGUE:
        place: Path_ = ("models", "large", "provider")
        values_ = {"where": document.where(place), "key": "provider", "name": name}
        notes.append(Message("K3C-124", values_))
    if not table(providers, name) and name not in _CATALOGUE:
        name = preferred({n: p for n, p in providers.items() if isinstance(p, dict)})
    provider, at = table(providers, name), ("providers", name)
    values += picked(provider, at, _FIELDS)
    values += _model(provider, at, large)
    known, base, variable = _CATALOGUE.get(name, ("", "", ""))
    kind = text(provider, "type") or known
    if kind not in _CLIENTS:
        where = document.where((*at, "type"))
        notes.append(Message("K3C-122", {"where": where, "found": kind}))
    if base:
        values.append(Value("api.base_url", base, (), source="client"))
        values.append(Value("api.api_key", variable, (), source="below"))
    notes.append(several(document, at, name, list(providers)))
    kept = tuple(note for note in notes if note is not None)
    inside = {"where": document.where(("models",) if large else at), "client": "Crush"}
    return Reading(
        tuple(values),
        notes=kept,
        client=_CLIENTS.get(kind, _CHAT),
        client_at=at,
        absent={"model.name": Message("K3C-152", inside)},
    )


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
    clients=(_CHAT, _MESSAGES),
)
