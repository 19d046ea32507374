"""Continue's ``config.yaml``, and its older ``config.json`` of nearly the same shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.config.dialects.base import Dialect, Reading, Value, table
from k3check.config.pick import picked, preferred, several, text
from k3check.config.references import SECRETS
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Document, Path_

_WIRES = {
    "openai": ("openai", "/chat/completions"),
    "moonshot": ("openai", "/chat/completions"),
    "anthropic": ("anthropic", "/messages"),
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
    if request.get("headers"):
        where = document.where((*at, "requestOptions", "headers"))
        notes.append(Message("K3C-127", {"where": where, "keys": "headers"}))
    provider = text(entry, "provider")
    wire, appends = _WIRES.get(provider, ("openai", "/chat/completions"))
    if provider not in _WIRES:
        where = document.where((*at, "provider"))
        notes.append(Message("K3C-122", {"where": where, "found": provider}))
    notes.append(several(document, at, name, list(models)))
    values.append(Value("link.protocol", wire, at))
    kept = tuple(note for note in notes if note is not None)
    return Reading(tuple(values), notes=kept, appends=appends)


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
)
