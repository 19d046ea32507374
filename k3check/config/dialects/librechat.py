"""LibreChat's ``librechat.yaml``: endpoints of OpenAI's form under ``endpoints.custom``.

/chat/completions is appended to ``baseURL`` as it stands, by OpenAI's library (danny-avila/
LibreChat packages/api/src/endpoints/custom/). ``user_provided`` means that each user types it in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.config.client import sdk
from k3check.config.dialects.base import Dialect, Reading, Value, table
from k3check.config.pick import picked, preferred, several, text
from k3check.config.references import BRACED
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Document, Path_

_CLIENT = sdk("LibreChat")
_TYPED = "user_provided"
_FIELDS = (("baseURL", "api.base_url"), ("apiKey", "api.api_key"), ("headers", "api.headers"))


def _endpoints(data: Mapping[str, Any]) -> dict[str, tuple[dict[str, Any], int]]:
    found: dict[str, tuple[dict[str, Any], int]] = {}
    entries = table(data, "endpoints").get("custom")
    for index, entry in enumerate(entries if isinstance(entries, list) else []):
        if isinstance(entry, dict) and "baseURL" in entry:
            found.setdefault(text(entry, "name") or f"[{index}]", (entry, index))
    return found


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data have an endpoint of the users' own."""
    return bool(_endpoints(data))


def read(document: Document) -> Reading:
    """The endpoint that speaks of Kimi, else the first, with its first model."""
    endpoints = _endpoints(document.data)
    name = preferred(endpoints)
    entry, index = endpoints[name]
    at: Path_ = ("endpoints", "custom", index)
    values = [v for v in picked(entry, at, _FIELDS) if v.value != _TYPED]
    models = table(entry, "models").get("default")
    listed = [m for m in models if isinstance(m, str)] if isinstance(models, list) else []
    if listed:
        model = preferred(dict.fromkeys(listed))
        path = (*at, "models", "default", listed.index(model))
        values.append(Value("model.name", model, path))
    other = several(document, at, name, list(endpoints))
    store = {"where": document.where((*at, "apiKey")), "store": "each user's own settings"}
    typed = entry.get("apiKey") == _TYPED
    return Reading(
        tuple(values),
        notes=(other,) if other else (),
        client=_CLIENT,
        client_at=at,
        absent={"api.api_key": Message("K3C-151", store)} if typed else {},
    )


DIALECT = Dialect(
    name="librechat",
    title="LibreChat's librechat.yaml",
    looks_for="endpoints.custom, each with name, baseURL, apiKey, models",
    recognise=recognise,
    read=read,
    evidence=lambda _data: ("endpoints",),
    syntaxes=("YAML", "JSON"),
    expands=(BRACED,),
    clients=(_CLIENT,),
)
