"""opencode's ``opencode.json``: providers by name, each with options and models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.config.dialects.base import Dialect, Reading, Value, table
from k3check.config.pick import picked, preferred, several, text
from k3check.config.references import FILE, OPENCODE
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Document, Path_

# The package that speaks for a provider; each appends to the base URL as it stands.
_WIRES = {
    "@ai-sdk/openai-compatible": ("openai", "/chat/completions"),
    "@ai-sdk/openai": ("responses", "/responses"),
    "@ai-sdk/anthropic": ("anthropic", "/messages"),
}

_OPTIONS = (("baseURL", "api.base_url"), ("apiKey", "api.api_key"))
_LIMITS = (("context", "model.context_window"), ("output", "model.max_output_tokens"))


def _is_provider(value: object) -> bool:
    return isinstance(value, dict) and any(k in value for k in ("options", "npm", "models"))


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data have a table of providers in this client's manner."""
    return any(_is_provider(value) for value in table(data, "provider").values())


def read(document: Document) -> Reading:
    """The provider in ``model = "provider/model"``; else the one that speaks of Kimi, or the first.

    The model's own name may hold slashes.
    """
    data = document.data
    providers = {n: p for n, p in table(data, "provider").items() if _is_provider(p)}
    name, _, model = text(data, "model").partition("/")
    notes: list[Message | None] = []
    values: list[Value] = []
    if name and name not in providers:
        # The client knows many providers by itself.
        values_ = {"where": document.where(("model",)), "key": "model", "name": name}
        notes.append(Message("K3C-124", values_))
    if name in providers and model:
        values.append(Value("model.name", model, ("model",)))
    else:
        name = preferred(providers)
        models = table(providers[name], "models")
        if models:
            model = preferred(models)
            values.append(Value("model.name", model, ("provider", name, "models", model)))
    at: Path_ = ("provider", name)
    options = table(providers[name], "options")
    values += picked(options, (*at, "options"), _OPTIONS)
    timeout = options.get("timeout")
    if isinstance(timeout, int) and not isinstance(timeout, bool):
        values.append(Value("api.timeout_seconds", timeout / 1000, (*at, "options", "timeout")))
    limit = table(table(table(providers[name], "models"), model), "limit")
    values += picked(limit, (*at, "models", model, "limit"), _LIMITS)
    package = text(providers[name], "npm")
    if package and package not in _WIRES:
        where = document.where((*at, "npm"))
        notes.append(Message("K3C-122", {"where": where, "found": package}))
    if options.get("headers"):
        where = document.where((*at, "options", "headers"))
        notes.append(Message("K3C-127", {"where": where, "keys": "headers"}))
    notes.append(several(document, at, name, list(providers)))
    wire, appends = _WIRES.get(package, ("openai", "/chat/completions"))
    values.append(Value("link.protocol", wire, at))
    kept = tuple(note for note in notes if note is not None)
    return Reading(tuple(values), notes=kept, appends=appends)


DIALECT = Dialect(
    name="opencode",
    title="opencode's opencode.json",
    looks_for="a table provider.NAME with npm, options (baseURL, apiKey), models",
    recognise=recognise,
    read=read,
    evidence=lambda _data: ("provider",),
    syntaxes=("JSON",),
    comments=True,
    expands=(OPENCODE, FILE),
    speaks="by the provider's npm package",
)
