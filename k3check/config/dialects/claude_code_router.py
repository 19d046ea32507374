"""claude-code-router's ``config.json``: ``Providers``, and ``Router`` that chooses among them.

``api_base_url`` is the whole URL of the request, nothing is appended to it; texts may hold
``$NAME`` and ``${NAME}``; the file is JSON5 (musistudio/claude-code-router README.md,
config.example.json). What is asked is the endpoint behind the router, as the router would ask it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.config.client import Client
from k3check.config.dialects.base import Dialect, Reading, Value, table
from k3check.config.pick import picked, preferred, several, text
from k3check.config.references import BARE, BRACED
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Document, Path_

_CHAT = Client("claude-code-router", path="")
_MESSAGES = Client(
    "claude-code-router with transformer Anthropic", "anthropic", path="", auth="bearer"
)
# Transformers that make another API's request of a chat.
_OTHERS = ("gemini", "vertex-gemini", "vertex-claude")
_FIELDS = (("api_base_url", "api.base_url"), ("api_key", "api.api_key"))


def _providers(data: Mapping[str, Any]) -> dict[str, tuple[dict[str, Any], int]]:
    found: dict[str, tuple[dict[str, Any], int]] = {}
    entries = data.get("Providers", data.get("providers"))
    for index, entry in enumerate(entries if isinstance(entries, list) else []):
        if isinstance(entry, dict) and "api_base_url" in entry:
            found.setdefault(text(entry, "name") or f"[{index}]", (entry, index))
    return found


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data have a list of providers with the URLs of their requests."""
    return bool(_providers(data))


def read(document: Document) -> Reading:
    """The provider and the model of ``Router.default``; else the first that speaks of Kimi."""
    data = document.data
    providers = _providers(data)
    name, comma, model = (part.strip() for part in text(data, "Router", "default").partition(","))
    chosen: Path_ = ("Router", "default")
    notes: list[Message | None] = []
    values: list[Value] = []
    if name and name not in providers:
        told = {"where": document.where(chosen), "key": "default", "name": name}
        notes.append(Message("K3C-124", told))
    if name in providers and comma and model:
        values.append(Value("model.name", model, chosen))
    else:
        name = preferred(providers)
        model = ""
    entry, index = providers[name]
    at: Path_ = ("Providers" if "Providers" in data else "providers", index)
    models = entry.get("models")
    if not model and isinstance(models, list) and models and isinstance(models[0], str):
        values.append(Value("model.name", models[0], (*at, "models", 0)))
    values += picked(entry, at, _FIELDS)
    timeout = data.get("API_TIMEOUT_MS")
    if isinstance(timeout, int) and not isinstance(timeout, bool):
        values.append(Value("api.timeout_seconds", timeout / 1000, ("API_TIMEOUT_MS",)))
    used = _transformers(entry)
    for other in (name for name in used if name in _OTHERS):
        where = document.where((*at, "transformer"))
        notes.append(Message("K3C-122", {"where": where, "found": other}))
    notes.append(several(document, at, name, list(providers)))
    return Reading(
        tuple(values),
        notes=tuple(note for note in notes if note is not None),
        client=_MESSAGES if "Anthropic" in used else _CHAT,
        client_at=at,
    )


def _transformers(entry: Mapping[str, Any]) -> list[str]:
    """Names of what changes a provider's requests; each stands alone or before its options."""
    use = table(entry, "transformer").get("use")
    names = (
        [one[0] if isinstance(one, list) and one else one for one in use or ()]
        if isinstance(use, list)
        else []
    )
    return [name for name in names if isinstance(name, str)]


DIALECT = Dialect(
    name="claude-code-router",
    title="claude-code-router's config.json",
    looks_for="a list Providers with name, api_base_url, api_key, models; Router.default",
    recognise=recognise,
    read=read,
    evidence=lambda data: [k for k in data if k in ("Providers", "providers", "Router")],
    syntaxes=("JSON",),
    comments=True,
    json5=True,
    expands=(BARE, BRACED),
    speaks="chat completions; messages with the transformer Anthropic",
    precedence="`Router.default` chooses",
    clients=(_CHAT, _MESSAGES),
)
