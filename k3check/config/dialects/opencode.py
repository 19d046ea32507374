"""opencode's ``opencode.json``: providers by name, each with options and models.

The npm package of a provider makes the requests; each takes ``baseURL`` as it stands: vercel/ai
packages/openai-compatible/src/openai-compatible-provider.ts appends /chat/completions,
packages/openai/src/responses /responses, packages/anthropic/src (anthropic-messages-language-model)
/messages, so that the version belongs into the base. A provider without ``npm`` is one that
opencode knows from models.dev, which names package and base; an unset ``{env:NAME}`` becomes an
empty text (anomalyco/opencode packages/opencode/src/config/config.ts).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from k3check.config.client import Client
from k3check.config.dialects.base import Dialect, Reading, Value, table
from k3check.config.pick import picked, preferred, several, text
from k3check.config.references import FILE, OPENCODE
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Document, Path_

_COMPATIBLE, _ANTHROPIC = "@ai-sdk/openai-compatible", "@ai-sdk/anthropic"
_CLIENTS = {
    _COMPATIBLE: Client(f"opencode with {_COMPATIBLE}"),
    "@ai-sdk/openai": Client("opencode with @ai-sdk/openai", "responses", "/responses"),
    _ANTHROPIC: Client(f"opencode with {_ANTHROPIC}", "anthropic", "/messages"),
}
# models.dev, providers/*/provider.toml: package and base of those that serve Kimi's models, and
# the variable of the key.
_CATALOGUE = {
    "moonshotai": (_COMPATIBLE, "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
    "moonshotai-cn": (_COMPATIBLE, "https://api.moonshot.cn/v1", "MOONSHOT_API_KEY"),
    "kimi-for-coding": (_ANTHROPIC, "https://api.kimi.com/coding/v1", "KIMI_API_KEY"),
    "openrouter": (_COMPATIBLE, "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "openai": ("@ai-sdk/openai", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    "anthropic": (_ANTHROPIC, "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
}
_OPTIONS = (("baseURL", "api.base_url"), ("apiKey", "api.api_key"), ("headers", "api.headers"))
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
        # An entry may send another id than its own name.
        given = table(table(providers[name], "models"), model)
        at: Path_ = ("provider", name, "models", model, "id")
        values.append(
            Value("model.name", given["id"], at)
            if text(given, "id")
            else Value("model.name", model, ("model",))
        )
    else:
        name = preferred(providers)
        models = table(providers[name], "models")
        if models:
            model = preferred(models)
            values.append(Value("model.name", model, ("provider", name, "models", model)))
    at = ("provider", name)
    options = table(providers[name], "options")
    values += picked(options, (*at, "options"), _OPTIONS)
    timeout = options.get("timeout")
    if isinstance(timeout, int) and not isinstance(timeout, bool):
        values.append(Value("api.timeout_seconds", timeout / 1000, (*at, "options", "timeout")))
    limit = table(table(table(providers[name], "models"), model), "limit")
    values += picked(limit, (*at, "models", model, "limit"), _LIMITS)
    known, base, variable = _CATALOGUE.get(name, ("", "", ""))
    package = text(providers[name], "npm") or known
    if base:
        values.append(Value("api.base_url", base, (), source="client"))
        values.append(Value("api.api_key", variable, (), source="below"))
    if package and package not in _CLIENTS:
        where = document.where((*at, "npm"))
        notes.append(Message("K3C-122", {"where": where, "found": package}))
    notes.append(several(document, at, name, list(providers)))
    query = tuple((k, str(v)) for k, v in table(options, "queryParams").items())
    login = {"where": document.where(at), "client": "opencode", "login": "opencode auth login"}
    return Reading(
        tuple(values),
        notes=tuple(note for note in notes if note is not None),
        client=replace(_CLIENTS.get(package, _CLIENTS[_COMPATIBLE]), query=query),
        client_at=at,
        # The client keeps keys in its own auth.json where a provider's options name none.
        absent={} if options.get("apiKey") else {"api.api_key": Message("K3C-150", login)},
    )


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
    clients=tuple(_CLIENTS.values()),
)
