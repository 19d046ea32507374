"""OpenClaw's ``openclaw.json``: providers under ``models``, the agents' model beside them.

The file is JSON5. ``api`` says how a provider is asked; the official libraries do it, so a path is
appended to ``baseUrl`` as it stands (openclaw/openclaw docs/concepts/model-providers.md,
docs/providers/moonshot.md; badlogic/pi-mono packages/ai/src/providers).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.config.client import sdk
from k3check.config.dialects.base import Dialect, Reading, Value, table
from k3check.config.pick import picked, preferred, several, text
from k3check.config.references import BRACED
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Document, Path_

_CLIENTS = {
    "openai-completions": sdk("OpenClaw"),
    "openai-responses": sdk("OpenClaw with openai-responses", "responses"),
    "anthropic-messages": sdk("OpenClaw with anthropic-messages", "anthropic"),
}
# Providers that OpenClaw knows by itself: api, base, the variable of the key.
_KNOWN = {
    "moonshot": ("openai-completions", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
    "kimi-coding": ("anthropic-messages", "https://api.kimi.com/coding", "KIMI_API_KEY"),
    "openrouter": ("openai-completions", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
}
_FIELDS = (("baseUrl", "api.base_url"), ("apiKey", "api.api_key"), ("headers", "api.headers"))
_SIZES = (("contextWindow", "model.context_window"), ("maxTokens", "model.max_output_tokens"))


def _providers(data: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    entries = table(table(data, "models"), "providers")
    own = ("baseUrl", "api", "apiKey", "models")
    return {n: p for n, p in entries.items() if isinstance(p, dict) and any(k in p for k in own)}


def _primary(data: Mapping[str, Any]) -> tuple[str, Path_]:
    """The agents' model, ``provider/model``, and where it stands."""
    at: Path_ = ("agents", "defaults", "model")
    plain = text(data, "agents", "defaults", "model")
    return (plain, at) if plain else (text(data, *map(str, at), "primary"), (*at, "primary"))


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data have providers under models, or the agents' primary model."""
    agents = text(data, "agents", "defaults", "model", "primary")
    return bool(_providers(data)) or bool(agents)


def read(document: Document) -> Reading:
    """The provider of the agents' model; else the one that speaks of Kimi, or the first."""
    data = document.data
    providers = _providers(data)
    chosen, chosen_at = _primary(data)
    name, _, model = chosen.partition("/")
    notes: list[Message | None] = []
    values: list[Value] = []
    if name and name not in providers and name not in _KNOWN:
        told = {"where": document.where(chosen_at), "key": "model", "name": name}
        notes.append(Message("K3C-124", told))
    if name and (name in providers or name in _KNOWN) and model:
        values.append(Value("model.name", model, chosen_at))
    elif providers:
        name, model = preferred(providers), ""
    provider, at = providers.get(name, {}), ("models", "providers", name)
    entries = provider.get("models")
    listed = {
        entry["id"]: (entry, (*at, "models", index))
        for index, entry in enumerate(entries if isinstance(entries, list) else [])
        if isinstance(entry, dict) and isinstance(entry.get("id"), str)
    }
    if not model and listed:
        model = preferred(listed)
        values.append(Value("model.name", model, (*listed[model][1], "id")))
    entry, entry_at = listed.get(model, ({}, at))
    values += picked(entry, entry_at, (*_SIZES, ("headers", "api.headers")))
    known, base, variable = _KNOWN.get(name, ("openai-completions", "", ""))
    kind = text(provider, "api") or text(entry, "api") or known
    if kind not in _CLIENTS:
        where = document.where((*at, "api"))
        notes.append(Message("K3C-122", {"where": where, "found": kind}))
    if base:
        values.append(Value("api.base_url", base, (), source="client"))
        values.append(Value("api.api_key", variable, (), source="below"))
    secret = provider.get("apiKey")
    if isinstance(secret, dict):
        # A reference to a secret in another place; of those only variables are looked up.
        provider = {k: v for k, v in provider.items() if k != "apiKey"}
        if text(secret, "source") == "env" and text(secret, "id"):
            path = (*at, "apiKey", "id")
            values.append(Value("api.api_key", text(secret, "id"), path, source="variable"))
    values += picked(provider, at, _FIELDS)
    notes.append(several(document, at, name, list(providers)))
    where = document.where(at) if provider else document.where(chosen_at)
    login = {"where": where, "client": "OpenClaw", "login": "openclaw models auth"}
    return Reading(
        tuple(values),
        notes=tuple(note for note in notes if note is not None),
        defines=_variables(data),
        client=_CLIENTS.get(kind, _CLIENTS["openai-completions"]),
        client_at=at if provider else chosen_at,
        absent={} if secret else {"api.api_key": Message("K3C-150", login)},
    )


def _variables(data: Mapping[str, Any]) -> dict[str, str]:
    """The variables that the file itself sets, for references in it."""
    both = {**table(data, "env"), **table(table(data, "env"), "vars")}
    return {name: value for name, value in both.items() if isinstance(value, str)}


DIALECT = Dialect(
    name="openclaw",
    title="OpenClaw's openclaw.json",
    looks_for="models.providers.NAME with baseUrl, apiKey, api, models; agents.defaults.model",
    recognise=recognise,
    read=read,
    evidence=lambda data: [k for k in data if k in ("models", "agents")],
    syntaxes=("JSON",),
    comments=True,
    json5=True,
    expands=(BRACED,),
    speaks="by the provider's api",
    precedence="`agents.defaults.model` chooses; the shell's variable > the file's `env`",
    clients=tuple(_CLIENTS.values()),
)
