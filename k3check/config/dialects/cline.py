"""Cline's settings for its provider "OpenAI Compatible".

The official library, which takes the base as it stands (cline/cline
src/core/api/providers/openai.ts).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.config.client import sdk
from k3check.config.dialects.base import Reading, table_dialect
from k3check.config.pick import text
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Document

CLIENT = sdk("Cline")
_OWN = ("openAiBaseUrl", "openAiApiKey", "openAiModelId", "actModeOpenAiModelId")
_PROVIDERS = ("actModeApiProvider", "apiProvider")


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data have a key of this client's provider."""
    return any(key in data for key in _OWN)


def finish(document: Document, reading: Reading) -> Reading:
    """Set the protocol; say where another provider is the active one."""
    notes = [
        Message("K3C-122", {"where": document.where((key,)), "found": text(document.data, key)})
        for key in _PROVIDERS
        if text(document.data, key) not in ("", "openai")
    ]
    own = next(key for key in _OWN if key in document.data)
    store = {"where": document.where((own,)), "store": "VS Code's secret storage or secrets.json"}
    return Reading(
        reading.values,
        notes=tuple(notes[:1]),
        client=CLIENT,
        client_at=(own,),
        absent={"api.api_key": Message("K3C-151", store)},
    )


DIALECT = table_dialect(
    name="cline",
    title="Cline's settings",
    looks_for="openAiBaseUrl, openAiApiKey, openAiModelId",
    fields={
        "openAiBaseUrl": "api.base_url",
        "openAiApiKey": "api.api_key",
        "openAiModelId": "model.name",
        "actModeOpenAiModelId": "model.name",
        "requestTimeoutMs": None,
        "openAiHeaders": "api.headers",
    },
    recognise=recognise,
    open_=True,
    finish=finish,
    syntaxes=("JSON",),
    clients=(CLIENT,),
)
