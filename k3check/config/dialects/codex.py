"""Codex's ``config.toml``: the provider that ``model_provider`` names.

Source: openai/codex codex-rs/model-provider-info. The key comes from the variable that ``env_key``
names, else from ``experimental_bearer_token``, else from ``auth.json`` beside the file (written by
``codex login``) where the provider says ``requires_openai_auth``. /responses is appended to
``base_url`` as it stands (codex-rs/codex-api/src/provider.rs, url_for_path).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from k3check.config.client import sdk
from k3check.config.dialects.base import Dialect, Layer, Reading, Value, table
from k3check.config.pick import picked, several, text
from k3check.masking.settings import VARIABLE
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from k3check.config.document import Document, Path_

_KNOWN = frozenset(
    {
        "name", "base_url", "env_key", "env_key_instructions", "wire_api", "query_params",
        "http_headers", "env_http_headers", "request_max_retries", "stream_max_retries",
        "stream_idle_timeout_ms", "requires_openai_auth", "supports_websockets",
        "experimental_bearer_token", "auth",
    }
)  # fmt: skip
_FIELDS = (
    ("base_url", "api.base_url"),
    ("request_max_retries", "api.max_retries"),
    ("http_headers", "api.headers"),
)
_BUILT_IN = "openai"
CLIENT = sdk("Codex", "responses")


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data have a table of providers, or name one."""
    return isinstance(data.get("model_providers"), dict) or bool(text(data, "model_provider"))


def _profile(data: Mapping[str, Any]) -> Path_:
    """The key path of the active profile; empty if none is."""
    name = text(data, "profile")
    return ("profiles", name) if name and table(table(data, "profiles"), name) else ()


def provider_of(data: Mapping[str, Any]) -> tuple[str, Path_]:
    """The active provider's name, and where it is chosen."""
    name = _profile(data)[-1:] and text(data, "profiles", text(data, "profile"), "model_provider")
    if name:
        return name, (*_profile(data), "model_provider")
    return text(data, "model_provider") or _BUILT_IN, ("model_provider",)


def read(document: Document) -> Reading:
    """The active provider's endpoint and the active model."""
    data = document.data
    name, chosen_at = provider_of(data)
    providers = table(data, "model_providers")
    provider = table(providers, name)
    at: Path_ = ("model_providers", name)
    notes: list[Message | None] = []
    faults: list[Message] = []
    values: list[Value] = []
    for path in ((), _profile(data)):
        model = text(data, *(str(part) for part in path), "model")
        if model and (path or not values):
            values.append(Value("model.name", model, (*path, "model"), rival=False))
    if not provider and name != _BUILT_IN:
        faults.append(Message("K3L-058", {"provider": name}))
    if name == _BUILT_IN and provider:
        notes.append(Message("K3C-118", {"where": document.where(at), "name": name}))
    values += picked(provider, at, _FIELDS)
    if isinstance(provider.get("env_http_headers"), dict):
        path = (*at, "env_http_headers")
        values.append(Value("api.headers", provider["env_http_headers"], path, source="variable"))
    values += _key(document, provider, at, notes, faults)
    if text(provider, "wire_api") == "chat":
        faults.append(Message("K3L-064"))
    if name == _BUILT_IN and not provider:
        values.append(Value("api.base_url", "https://api.openai.com/v1", (), source="client"))
    faults += [
        Message("K3C-117", {"where": document.where((*at, field)), "key": field})
        for field in provider
        if field not in _KNOWN
    ]
    query = tuple((k, str(v)) for k, v in table(provider, "query_params").items())
    notes.append(several(document, chosen_at, name, list(providers)) if provider else None)
    return Reading(
        tuple(values),
        notes=tuple(note for note in notes if note is not None),
        client=replace(CLIENT, query=query),
        client_at=at,
        faults=tuple(faults),
        absent=_keyless(document, provider, name, at),
    )


def _keyless(
    document: Document, provider: Mapping[str, Any], name: str, at: Path_
) -> dict[str, Message]:
    """Why the provider has no key, where none of its fields names one."""
    where = document.where(at)
    if text(provider, "env_key") or (not provider and name != _BUILT_IN):
        return {}
    if isinstance(provider.get("auth"), dict):
        return {"api.api_key": Message("K3C-116", {"where": document.where((*at, "auth"))})}
    if provider.get("requires_openai_auth") is True or not provider:
        login = {"where": where, "client": "Codex", "login": "codex login"}
        return {"api.api_key": Message("K3C-150", login)}
    return {"api.api_key": Message("K3C-153", {"where": where})}


def _key(
    document: Document,
    provider: Mapping[str, Any],
    at: Path_,
    notes: list[Message | None],
    faults: list[Message],
) -> list[Value]:
    values = []
    if text(provider, "experimental_bearer_token"):
        path = (*at, "experimental_bearer_token")
        token = text(provider, "experimental_bearer_token")
        values.append(Value("api.api_key", token, path, rank=1))
    variable = text(provider, "env_key")
    if variable:
        # A key that was written there is neither looked up nor shown.
        if VARIABLE.fullmatch(variable):
            path = (*at, "env_key")
            values.append(Value("api.api_key", variable, path, source="variable", rank=2))
        else:
            faults.append(Message("K3L-059"))
        if provider.get("requires_openai_auth") is True:
            where = document.where((*at, "requires_openai_auth"))
            notes.append(Message("K3C-119", {"where": where}))
    return values


def layers(path: Path, document: Document, _env: Mapping[str, str]) -> tuple[Layer, ...]:
    """``auth.json`` beside the file, where the provider takes its key from the login."""
    name, _ = provider_of(document.data)
    provider = table(table(document.data, "model_providers"), name)
    login = provider.get("requires_openai_auth") is True or (name == _BUILT_IN and not provider)
    if not login:
        return ()
    return (Layer(path.parent / "auth.json", frozenset({"api.api_key"})), Layer(path))


DIALECT = Dialect(
    name="codex",
    title="Codex's config.toml",
    looks_for="model_provider, tables [model_providers.NAME] with base_url, env_key, wire_api",
    recognise=recognise,
    read=read,
    evidence=lambda data: [k for k in data if k in ("model_providers", "model_provider")],
    layers=layers,
    speaks="responses",
    clients=(CLIENT,),
    precedence="`env_key`'s variable > `experimental_bearer_token` > `auth.json` beside it (with "
    "`requires_openai_auth`); the active profile before the top",
)
