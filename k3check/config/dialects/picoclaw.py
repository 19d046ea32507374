"""PicoClaw's ``config.json``: ``model_list``, and in older files ``providers``.

The first part of a model's name is its vendor, which has a base of its own; it is left out of the
request's model. /chat/completions is appended to the base (sipeed/picoclaw
docs/configuration/model-list.md, pkg/providers/openai_compat/provider.go); for Anthropic an ending
/v1 is left out and /v1/messages appended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.config.client import Client, sdk
from k3check.config.dialects.base import Dialect, Reading, Value, table
from k3check.config.pick import picked, preferred, several, text
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Document, Path_

_CHAT = sdk("PicoClaw")
_MESSAGES = Client("PicoClaw with anthropic", "anthropic", "/v1/messages", drops="/v1")
_VENDORS = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com/v1",
    "moonshot": "https://api.moonshot.cn/v1",
    "openrouter": "https://openrouter.ai/api/v1",
    "groq": "https://api.groq.com/openai/v1",
    "nvidia": "https://integrate.api.nvidia.com/v1",
    "deepseek": "https://api.deepseek.com/v1",
    "zhipu": "https://open.bigmodel.cn/api/paas/v4",
    "qwen": "https://dashscope.aliyuncs.com/compatible-mode/v1",
    "ollama": "http://localhost:11434/v1",
    "vllm": "http://localhost:8000/v1",
}
_FIELDS = (("api_base", "api.base_url"), ("api_key", "api.api_key"), ("proxy", "link.proxy"))
_DEFAULTS = (("max_tokens", "model.max_output_tokens"), ("temperature", "model.temperature"))


def _models(data: Mapping[str, Any]) -> dict[str, tuple[dict[str, Any], Path_]]:
    """The models by name; of several with one name the first stands for all."""
    found: dict[str, tuple[dict[str, Any], Path_]] = {}
    entries = data.get("model_list")
    for index, entry in enumerate(entries if isinstance(entries, list) else []):
        # LiteLLM's entries hold the model one level deeper.
        if isinstance(entry, dict) and text(entry, "model") and text(entry, "model_name"):
            found.setdefault(text(entry, "model_name"), (entry, ("model_list", index)))
    return found


def _chosen(data: Mapping[str, Any]) -> tuple[str, Path_]:
    """The agents' model, and where it stands."""
    for key in ("model_name", "model"):
        name = text(data, "agents", "defaults", key)
        if name:
            return name, ("agents", "defaults", key)
    return "", ("agents", "defaults")


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data have a list of models in this client's manner, or agents and providers."""
    providers = [p for p in table(data, "providers").values() if isinstance(p, dict)]
    older = any("api_base" in p or "api_key" in p for p in providers)
    return bool(_models(data)) or (older and bool(table(table(data, "agents"), "defaults")))


def read(document: Document) -> Reading:
    """The model of the agents' defaults; else the one that speaks of Kimi, or the first."""
    data = document.data
    models = _models(data)
    name, chosen_at = _chosen(data)
    notes: list[Message | None] = []
    if not models:
        return _older(document, name, chosen_at)
    if name and name not in models:
        told = {"where": document.where(chosen_at), "key": "model", "name": name}
        notes.append(Message("K3C-124", told))
    name = name if name in models else preferred(models)
    entry, at = models[name]
    full = text(entry, "model")
    vendor, slash, model = full.partition("/")
    known = bool(slash) and vendor in _VENDORS
    values = [Value("model.name", model if known else full, (*at, "model"))]
    if known:
        found = {"where": document.where((*at, "model")), "prefix": vendor, "model": model}
        notes.append(Message("K3C-126", found))
        values.append(Value("api.base_url", _VENDORS[vendor], (), source="client"))
    defaults = table(table(data, "agents"), "defaults")
    values += picked(defaults, ("agents", "defaults"), _DEFAULTS)
    values += [v for v in picked(entry, at, _FIELDS) if v.value != ""]
    notes.append(several(document, at, name, list(models)))
    login = {"where": document.where(at), "client": "PicoClaw", "login": "picoclaw auth login"}
    own = text(entry, "auth_method") in ("oauth", "token")
    return Reading(
        tuple(values),
        notes=tuple(note for note in notes if note is not None),
        client=_MESSAGES if vendor == "anthropic" and slash else _CHAT,
        client_at=(*at, "model"),
        absent={"api.api_key": Message("K3C-150", login)} if own else {},
    )


def _older(document: Document, model: str, model_at: Path_) -> Reading:
    """A file with ``providers``: the first that has a key, or an address."""
    providers = {n: p for n, p in table(document.data, "providers").items() if isinstance(p, dict)}
    usable = [n for n, p in providers.items() if text(p, "api_key") or text(p, "api_base")]
    prefix = model.partition("/")[0]
    name = prefix if prefix in usable else (usable or list(providers))[0]
    entry, at = providers[name], ("providers", name)
    values = [Value("model.name", model, model_at)] if model else []
    if name in _VENDORS:
        values.append(Value("api.base_url", _VENDORS[name], (), source="client"))
    values += [v for v in picked(entry, at, _FIELDS) if v.value != ""]
    other = several(document, at, name, usable)
    return Reading(
        tuple(values),
        notes=(other,) if other else (),
        client=_MESSAGES if name == "anthropic" else _CHAT,
        client_at=at,
    )


DIALECT = Dialect(
    name="picoclaw",
    title="PicoClaw's config.json",
    looks_for="model_list with model_name, model, api_base, api_key; agents.defaults.model",
    recognise=recognise,
    read=read,
    evidence=lambda data: [k for k in data if k in ("model_list", "agents", "providers")],
    syntaxes=("JSON",),
    speaks="by the vendor in the model's name",
    precedence="`agents.defaults` chooses",
    clients=(_CHAT, _MESSAGES),
)
