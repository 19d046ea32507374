"""VS Code's ``settings.json`` for the extension OAI Compatible Provider for Copilot.

Slashes at the end of ``baseUrl`` are left out and the API's path appended (JohnnyZ93/
oai-compatible-copilot src/provider.ts, src/openai/, src/anthropic/). A model's own ``baseUrl``
wins. Keys stand in VS Code's secret storage, never in the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.config.client import sdk
from k3check.config.dialects.base import Dialect, Reading, Value
from k3check.config.pick import picked, preferred, several, text
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Document, Path_

BASE, MODELS = "oaicopilot.baseUrl", "oaicopilot.models"
_NAME = "OAI Compatible Provider"
_CLIENTS = {
    "openai": sdk(_NAME),
    "openai-responses": sdk(f"{_NAME} with openai-responses", "responses"),
    "anthropic": sdk(f"{_NAME} with anthropic", "anthropic"),
}
_FIELDS = (
    ("baseUrl", "api.base_url"),
    ("id", "model.name"),
    ("context_length", "model.context_window"),
    ("max_tokens", "model.max_output_tokens"),
    ("max_completion_tokens", "model.max_output_tokens"),
    ("temperature", "model.temperature"),
    ("top_p", "model.top_p"),
    ("headers", "api.headers"),
    ("extra", "client.extra_body"),
)


def _models(data: Mapping[str, Any]) -> dict[str, tuple[dict[str, Any], int]]:
    entries = data.get(MODELS)
    found: dict[str, tuple[dict[str, Any], int]] = {}
    for index, entry in enumerate(entries if isinstance(entries, list) else []):
        if isinstance(entry, dict) and text(entry, "id"):
            found.setdefault(text(entry, "id"), (entry, index))
    return found


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data have the extension's address or models."""
    return isinstance(data.get(BASE), str) or bool(_models(data))


def read(document: Document) -> Reading:
    """The model that speaks of Kimi, else the first."""
    models = _models(document.data)
    name = preferred(models)
    entry, index = models.get(name, ({}, 0))
    at: Path_ = (MODELS, index) if entry else (BASE,)
    values = picked(document.data, (), ((BASE, "api.base_url"),))
    # A model's own address is there to differ.
    values = [Value(v.key, v.value, v.path, rank=-1, rival=False) for v in values]
    values += picked(entry, at, _FIELDS)
    mode = text(entry, "apiMode") or "openai"
    notes: list[Message | None] = []
    if mode not in _CLIENTS:
        where = document.where((*at, "apiMode"))
        notes.append(Message("K3C-122", {"where": where, "found": mode}))
    notes.append(several(document, at, name, list(models)) if entry else None)
    store = {"where": document.where(at), "store": "VS Code's secret storage"}
    return Reading(
        tuple(values),
        notes=tuple(note for note in notes if note is not None),
        client=_CLIENTS.get(mode, _CLIENTS["openai"]),
        client_at=at,
        absent={"api.api_key": Message("K3C-151", store)},
    )


DIALECT = Dialect(
    name="vscode-oaicopilot",
    title="VS Code's settings.json for OAI Compatible Provider",
    looks_for=f'"{BASE}" and a list "{MODELS}"',
    recognise=recognise,
    read=read,
    evidence=lambda data: [k for k in (BASE, MODELS) if k in data],
    syntaxes=("JSON",),
    comments=True,
    speaks="by the model's apiMode",
    precedence="the model's `baseUrl` > `oaicopilot.baseUrl`",
    clients=tuple(_CLIENTS.values()),
)
