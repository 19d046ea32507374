"""Qwen Code's ``settings.json``: ``modelProviders`` by API, or an endpoint in ``security.auth``.

The official libraries make the requests, so a path is appended to ``baseUrl`` as it stands; texts
may hold ``$NAME`` and ``${NAME}`` (QwenLM/qwen-code docs/users/configuration/model-providers.md,
settings.md). Keys come from the variable that ``envKey`` names; the file's ``env`` may set it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.config.client import sdk
from k3check.config.dialects.base import Dialect, Reading, Value, table
from k3check.config.pick import picked, preferred, several, text
from k3check.config.references import BARE, BRACED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Document, Path_

_CLIENTS = {
    "openai": sdk("Qwen Code"),
    "anthropic": sdk("Qwen Code with anthropic", "anthropic"),
}
_KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
_AUTH = (("baseUrl", "api.base_url"), ("apiKey", "api.api_key"))


def _models(data: Mapping[str, Any]) -> dict[str, tuple[dict[str, Any], Path_]]:
    """The models by id, those of the API that is selected first."""
    found: dict[str, tuple[dict[str, Any], Path_]] = {}
    providers = table(data, "modelProviders")
    selected = text(data, "security", "auth", "selectedType")
    for wire in sorted(_CLIENTS, key=lambda wire: wire != selected):
        entries = providers.get(wire)
        for index, entry in enumerate(entries if isinstance(entries, list) else []):
            if isinstance(entry, dict) and text(entry, "id"):
                found.setdefault(text(entry, "id"), (entry, ("modelProviders", wire, index)))
    return found


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data have models by API, or an address under security."""
    return bool(_models(data)) or bool(text(data, "security", "auth", "baseUrl"))


def read(document: Document) -> Reading:
    """The model of ``model.name``; else the one that speaks of Kimi, or the first."""
    data = document.data
    models = _models(data)
    name = text(data, "model", "name")
    auth = table(table(data, "security"), "auth")
    values: list[Value] = []
    if name:
        values.append(Value("model.name", name, ("model", "name")))
    elif models:
        name = preferred(models)
        values.append(Value("model.name", name, (*models[name][1], "id")))
    values += picked(auth, ("security", "auth"), _AUTH)
    entry, at = models.get(name, ({}, ("security", "auth")))
    wire = str(at[1]) if entry else text(auth, "selectedType")
    wire = wire if wire in _CLIENTS else "openai"
    values += picked(entry, at, (("baseUrl", "api.base_url"),))
    variable = text(entry, "envKey")
    if variable:
        values.append(Value("api.api_key", variable, (*at, "envKey"), source="variable"))
    else:
        values.append(Value("api.api_key", _KEYS[wire], (), source="below"))
    other = several(document, at, name, list(models)) if entry else None
    defines = {n: v for n, v in table(data, "env").items() if isinstance(v, str)}
    return Reading(
        tuple(values),
        notes=(other,) if other else (),
        defines=defines,
        client=_CLIENTS[wire],
        client_at=at,
    )


DIALECT = Dialect(
    name="qwen-code",
    title="Qwen Code's settings.json",
    looks_for="modelProviders with id, baseUrl, envKey; security.auth with baseUrl; model.name",
    recognise=recognise,
    read=read,
    evidence=lambda data: [k for k in data if k in ("modelProviders", "security", "model")],
    syntaxes=("JSON",),
    comments=True,
    expands=(BARE, BRACED),
    speaks="by the provider",
    precedence="`model.name` chooses; the shell's variable > the file's `env`",
    clients=tuple(_CLIENTS.values()),
)
