"""VS Code's ``settings.json`` with Copilot's own models of OpenAI's form.

A URL that ends in the API's path is taken as it is; else /chat/completions is appended, with /v1
in between where the URL does not end in a version (microsoft/vscode-copilot-chat
src/extension/byok/vscode-node/customOAIProvider.ts, resolveCustomOAIUrl). Keys stand in VS Code's
secret storage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.config.client import Client
from k3check.config.dialects.base import Dialect, Reading, Value, table
from k3check.config.pick import picked, preferred, several
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Document, Path_

KEY = "github.copilot.chat.customOAIModels"
_CLIENT = Client("Copilot in VS Code", once=True, adds_version=True)
_FIELDS = (
    ("url", "api.base_url"),
    ("maxOutputTokens", "model.max_output_tokens"),
    ("requestHeaders", "api.headers"),
)


def _models(data: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {n: m for n, m in table(data, KEY).items() if isinstance(m, dict) and "url" in m}


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data have a model with an address of its own."""
    return bool(_models(data))


def read(document: Document) -> Reading:
    """The model that speaks of Kimi, else the first; its key in the table is its id."""
    models = _models(document.data)
    name = preferred(models)
    at: Path_ = (KEY, name)
    values = [Value("model.name", name, at), *picked(models[name], at, _FIELDS)]
    other = several(document, at, name, list(models))
    store = {"where": document.where(at), "store": "VS Code's secret storage"}
    return Reading(
        tuple(values),
        notes=(other,) if other else (),
        client=_CLIENT,
        client_at=at,
        absent={"api.api_key": Message("K3C-151", store)},
    )


DIALECT = Dialect(
    name="vscode-copilot",
    title="VS Code's settings.json for Copilot's own models",
    looks_for=f'a table "{KEY}" of models with url',
    recognise=recognise,
    read=read,
    evidence=lambda _data: (KEY,),
    syntaxes=("JSON",),
    comments=True,
    clients=(_CLIENT,),
)
