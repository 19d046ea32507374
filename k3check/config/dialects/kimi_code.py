"""Kimi Code's ``~/.kimi-code/config.toml``, and the older kimi-cli's file of the same shape.

The model that ``default_model`` names leads to its provider. The new client does not look at the
shell's variables; the older one (in a folder ``.kimi``) lets KIMI_API_KEY and KIMI_BASE_URL win
(MoonshotAI/kimi-cli#2641). Both use the official libraries (MoonshotAI/kimi-cli
packages/kosong/src/kosong/chat_provider). A provider with a table ``oauth`` signs in by itself
(``/login``), and then its ``api_key`` is empty.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from k3check.config.client import sdk
from k3check.config.dialects.base import Dialect, Reading, Value, table
from k3check.config.pick import picked, several, text
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Document, Path_

_CHAT = sdk("Kimi Code")
_CLIENTS = {
    "kimi": _CHAT,
    "openai": _CHAT,
    "openai_legacy": _CHAT,
    "openai_responses": sdk("Kimi Code with type openai_responses", "responses"),
    "anthropic": sdk("Kimi Code with type anthropic", "anthropic"),
}
_MODEL = (
    ("model", "model.name"),
    ("max_context_size", "model.context_window"),
    ("max_output_size", "model.max_output_tokens"),
)
_ENDPOINT = (
    ("base_url", "api.base_url"),
    ("api_key", "api.api_key"),
    ("custom_headers", "api.headers"),
)
_OTHER_WIRES = ("google-genai", "vertexai", "gemini")
_OWN_TYPES = frozenset({"kimi", "openai_legacy", "openai_responses", "google-genai"})


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data have providers, and a sign that the file is Kimi's and not Crush's."""
    providers = table(data, "providers")
    if not providers:
        return False
    models = [m for m in table(data, "models").values() if isinstance(m, dict)]
    kinds = {text(providers, name, "type") for name in providers}
    return (
        isinstance(data.get("default_model"), str)
        or any("max_context_size" in model for model in models)
        or bool(kinds & _OWN_TYPES)
    )


def read(document: Document) -> Reading:
    """The default model and its provider; else the first provider."""
    data = document.data
    providers, models = table(data, "providers"), table(data, "models")
    alias = text(data, "default_model")
    model = table(models, alias)
    notes: list[Message | None] = []
    values: list[Value] = []
    absent: dict[str, Message] = {}
    if alias and not model:
        where = document.where(("default_model",))
        values_ = {"where": where, "key": "default_model", "name": alias}
        absent["model.name"] = Message("K3C-124", values_)
    name = text(model, "provider")
    if name and name not in providers:
        place: Path_ = ("models", alias, "provider")
        where = document.where(place)
        notes.append(Message("K3C-124", {"where": where, "key": "provider", "name": name}))
    if not name:
        name = next(iter(providers), "")
    values += picked(model, ("models", alias), _MODEL)
    provider, at = table(providers, name), ("providers", name)
    kind = text(provider, "type") or "kimi"
    if kind in _OTHER_WIRES:
        where = document.where((*at, "type"))
        notes.append(Message("K3C-122", {"where": where, "found": kind}))
    values += _endpoint(document, provider, at)
    if provider:
        notes.append(several(document, at, name, list(providers)))
    if table(provider, "oauth"):
        where = document.where((*at, "oauth"))
        login = {"where": where, "client": "Kimi Code", "login": "/login"}
        absent["api.api_key"] = Message("K3C-150", login)
    return Reading(
        tuple(values),
        notes=tuple(note for note in notes if note is not None),
        client=_CLIENTS.get(kind, _CHAT),
        client_at=at,
        absent=absent,
    )


def _endpoint(document: Document, provider: Mapping[str, Any], at: Path_) -> list[Value]:
    """Address and key: the provider's own keys before its table of variables."""
    values = []
    for variable in table(provider, "env"):
        key = {"_API_KEY": "api.api_key", "_BASE_URL": "api.base_url"}.get(
            f"_{'_'.join(variable.split('_')[-2:])}"
        )
        if key is not None:
            path = (*at, "env", variable)
            values.append(Value(key, provider["env"][variable], path, rank=-1))
    # The client writes an empty text where it has none.
    values += [v for v in picked(provider, at, _ENDPOINT) if v.value != ""]
    if ".kimi" in PurePath(document.file).parts:
        values += [
            Value("api.base_url", "KIMI_BASE_URL", (), source="above"),
            Value("api.api_key", "KIMI_API_KEY", (), source="above"),
        ]
    return values


DIALECT = Dialect(
    name="kimi-code",
    title="Kimi Code's config.toml",
    looks_for="default_model, tables [providers.NAME] with type, base_url, api_key, [models.NAME]",
    recognise=recognise,
    read=read,
    evidence=lambda data: [k for k in data if k in ("default_model", "providers", "models")],
    speaks="by the provider's type",
    clients=tuple(dict.fromkeys(_CLIENTS.values())),
    precedence="the provider's `base_url`, `api_key` > its `env` table; in a folder `.kimi` "
    "`KIMI_BASE_URL`, `KIMI_API_KEY` of the shell win",
)
