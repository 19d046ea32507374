"""Continue's ``config.yaml``, and its older ``config.json`` of nearly the same shape.

A slash is added to ``apiBase`` and the API's path resolved against it: chat/completions for
OpenAI's form, messages for Anthropic's, whose own default base ends in /v1/ (continuedev/continue
core/llm/llms/OpenAI.ts, Anthropic.ts, Moonshot.ts).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.config.client import Client
from k3check.config.dialects.base import Dialect, Reading, Value, table
from k3check.config.pick import picked, preferred, several, text
from k3check.config.references import SECRETS
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Document, Path_

_CHAT = Client("Continue")
_CLIENTS = {
    "openai": _CHAT,
    "moonshot": _CHAT,
    "openrouter": _CHAT,
    "anthropic": Client("Continue with provider anthropic", "anthropic", "/messages"),
}
# The bases of those that need no apiBase.
_BASES = {
    "openai": "https://api.openai.com/v1/",
    "moonshot": "https://api.moonshot.cn/v1/",
    "openrouter": "https://openrouter.ai/api/v1/",
    "anthropic": "https://api.anthropic.com/v1/",
}
_OPTIONS = (
    ("contextLength", "model.context_window"),
    ("maxTokens", "model.max_output_tokens"),
    ("temperature", "model.temperature"),
    ("topP", "model.top_p"),
    ("stream", "client.stream"),
)
_FIELDS = (
    ("apiBase", "api.base_url"),
    ("apiKey", "api.api_key"),
    ("model", "model.name"),
    # Only in the older file.
    ("contextLength", "model.context_window"),
)


def _models(data: Mapping[str, Any]) -> dict[str, tuple[dict[str, Any], int]]:
    found: dict[str, tuple[dict[str, Any], int]] = {}
    entries = data.get("models")
    for index, entry in enumerate(entries if isinstance(entries, list) else []):
        if isinstance(entry, dict) and isinstance(entry.get("provider"), str):
            name = text(entry, "name") or text(entry, "title") or f"[{index}]"
            found.setdefault(name, (entry, index))
    return found


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data have a list of models, each with its provider."""
    return bool(_models(data))


def read(document: Document) -> Reading:
    """The model that speaks of Kimi, else the first."""
    models = _models(document.data)
    name = preferred(models)
    entry, index = models[name]
    at: Path_ = ("models", index)
    notes: list[Message | None] = []
    values = picked(entry, at, _FIELDS)
    for group in ("completionOptions", "defaultCompletionOptions"):
        values += picked(table(entry, group), (*at, group), _OPTIONS)
    request = table(entry, "requestOptions")
    if request.get("timeout") is not None:
        # Milliseconds; a value of another type is refused with the file's place.
        given = request["timeout"]
        seconds = given / 1000 if isinstance(given, int) and given is not True else given
        values.append(Value("api.timeout_seconds", seconds, (*at, "requestOptions", "timeout")))
    values += picked(request, (*at, "requestOptions"), (("headers", "api.headers"),))
    provider = text(entry, "provider")
    if provider in _BASES:
        values.append(Value("api.base_url", _BASES[provider], (), source="client"))
    if provider not in _CLIENTS:
        where = document.where((*at, "provider"))
        notes.append(Message("K3C-122", {"where": where, "found": provider}))
    notes.append(several(document, at, name, list(models)))
    kept = tuple(note for note in notes if note is not None)
    client = _CLIENTS.get(provider, _CHAT)
    return Reading(tuple(values), notes=kept, client=client, client_at=at)


DIALECT = Dialect(
    name="continue",
    title="Continue's config.yaml",
    looks_for="models, each with name, provider, model, apiBase, apiKey",
    recognise=recognise,
    read=read,
    evidence=lambda _data: ("models",),
    syntaxes=("YAML", "JSON"),
    comments=True,
    expands=(SECRETS,),
    speaks="by the model's provider",
    clients=tuple(dict.fromkeys(_CLIENTS.values())),
)
