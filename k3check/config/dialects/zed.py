"""Zed's ``settings.json``: providers under ``language_models``.

A path is appended to ``api_url`` as it stands: /chat/completions (crates/open_ai/src/open_ai.rs),
/responses for a model whose capabilities leave chat completions out (.../responses.rs),
/v1/messages for Anthropic (crates/anthropic/src/anthropic.rs). Keys stand in the system's keychain,
or in a variable named after the provider (crates/language_models/src/provider/; all of them in
zed-industries/zed). ``max_tokens`` of a model is its window.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from k3check.config.client import sdk
from k3check.config.dialects.base import Dialect, Reading, Value, table
from k3check.config.pick import picked, preferred, several, text
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Document, Path_

_COMPATIBLE = "openai_compatible"
_CHAT, _RESPONSES = sdk("Zed"), sdk("Zed with responses", "responses")
_MESSAGES = sdk("Zed with anthropic", "anthropic")
_CLIENTS = {"openai": _CHAT, "anthropic": _MESSAGES}
_SIZES = (
    ("max_tokens", "model.context_window"),
    ("max_output_tokens", "model.max_output_tokens"),
)


def _providers(data: Mapping[str, Any]) -> dict[str, tuple[dict[str, Any], Path_]]:
    found: dict[str, tuple[dict[str, Any], Path_]] = {}
    models = table(data, "language_models")
    for name, entry in table(models, _COMPATIBLE).items():
        if isinstance(entry, dict) and "api_url" in entry:
            found[name] = (entry, ("language_models", _COMPATIBLE, name))
    for name in _CLIENTS:
        if "api_url" in table(models, name):
            found.setdefault(name, (dict(table(models, name)), ("language_models", name)))
    return found


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data have a provider of language models with an address."""
    return bool(_providers(data))


def read(document: Document) -> Reading:
    """The provider of ``agent.default_model``; else the first that speaks of Kimi, or the first."""
    providers = _providers(document.data)
    chosen = table(table(document.data, "agent"), "default_model")
    name, model = text(chosen, "provider"), text(chosen, "model")
    values: list[Value] = []
    if name in providers and model:
        values.append(Value("model.name", model, ("agent", "default_model", "model")))
    else:
        name, model = preferred({n: entry for n, (entry, _) in providers.items()}), ""
    entry, at = providers[name]
    entries = entry.get("available_models")
    listed = {
        one["name"]: (one, (*at, "available_models", index))
        for index, one in enumerate(entries if isinstance(entries, list) else [])
        if isinstance(one, dict) and isinstance(one.get("name"), str)
    }
    if not model and listed:
        model = preferred(listed)
        values.append(Value("model.name", model, (*listed[model][1], "name")))
    one, one_at = listed.get(model, ({}, at))
    values += picked(one, one_at, _SIZES)
    values += picked(entry, at, (("api_url", "api.base_url"),))
    variable = re.sub(r"[^A-Z0-9]+", "_", name.upper()).strip("_") + "_API_KEY"
    values.append(Value("api.api_key", variable, (), source="below"))
    other = several(document, at, name, list(providers))
    inside = table(one, "capabilities").get("chat_completions") is False
    client = _MESSAGES if at[-1] == "anthropic" and len(at) == 2 else _CHAT
    store = {"where": document.where(at), "store": f"the system's keychain, or in {variable}"}
    return Reading(
        tuple(values),
        notes=(other,) if other else (),
        client=_RESPONSES if inside and client is _CHAT else client,
        client_at=at,
        absent={"api.api_key": Message("K3C-151", store)},
    )


DIALECT = Dialect(
    name="zed",
    title="Zed's settings.json",
    looks_for="language_models with api_url and available_models",
    recognise=recognise,
    read=read,
    evidence=lambda _data: ("language_models",),
    syntaxes=("JSON",),
    comments=True,
    speaks="by the provider",
    precedence="`agent.default_model` chooses; the key from the shell's NAME_API_KEY",
    clients=(_CHAT, _RESPONSES, _MESSAGES),
)
