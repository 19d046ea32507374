"""LiteLLM's ``config.yaml``: the deployments in its ``model_list``.

What is asked is the endpoint behind the proxy, as the proxy would ask it. The first part of
``litellm_params.model`` chooses the API and is not sent on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.config.dialects.base import Dialect, Reading, Value, table
from k3check.config.pick import picked, preferred, several, text
from k3check.config.references import LITELLM
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Document, Path_

# Prefixes that lead to an API of OpenAI's or Anthropic's form.
_PREFIXES = {
    "openai": "openai",
    "custom_openai": "openai",
    "openai_like": "openai",
    "hosted_vllm": "openai",
    "moonshot": "openai",
    "openrouter": "openai",
    "litellm_proxy": "openai",
    "anthropic": "anthropic",
}
# Variables that the proxy reads where a deployment names none.
_DEFAULTS = {
    "openai": (("api.api_key", "OPENAI_API_KEY"), ("api.base_url", "OPENAI_API_BASE")),
    "moonshot": (("api.api_key", "MOONSHOT_API_KEY"),),
}
_FIELDS = (
    ("api_base", "api.base_url"),
    ("base_url", "api.base_url"),
    ("api_key", "api.api_key"),
    ("timeout", "api.timeout_seconds"),
    ("max_retries", "api.max_retries"),
    ("max_tokens", "model.max_output_tokens"),
    ("temperature", "model.temperature"),
    ("top_p", "model.top_p"),
    ("extra_body", "client.extra_body"),
)
_SETTINGS = (("request_timeout", "api.timeout_seconds"), ("num_retries", "api.max_retries"))


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data have a list of deployments."""
    return bool(_deployments(data))


def _deployments(data: Mapping[str, Any]) -> dict[str, tuple[dict[str, Any], int]]:
    """The deployments by name; several of one name share the load, and the first stands for it."""
    found: dict[str, tuple[dict[str, Any], int]] = {}
    entries = data.get("model_list")
    for index, entry in enumerate(entries if isinstance(entries, list) else []):
        if isinstance(entry, dict) and isinstance(entry.get("litellm_params"), dict):
            found.setdefault(text(entry, "model_name") or f"[{index}]", (entry, index))
    return found


def read(document: Document) -> Reading:
    """The deployment that speaks of Kimi, else the first."""
    deployments = _deployments(document.data)
    name = preferred(deployments)
    entry, index = deployments[name]
    params = entry["litellm_params"]
    at: Path_ = ("model_list", index, "litellm_params")
    notes: list[Message | None] = []
    settings = table(document.data, "litellm_settings")
    values = picked(settings, ("litellm_settings",), _SETTINGS) + picked(params, at, _FIELDS)
    if params.get("extra_headers"):
        where = document.where((*at, "extra_headers"))
        notes.append(Message("K3C-127", {"where": where, "keys": "extra_headers"}))
    prefix, slash, model = text(params, "model").partition("/")
    wire = _PREFIXES.get(prefix, "openai") if slash else "openai"
    place = document.where((*at, "model"))
    if slash and prefix in _PREFIXES:
        values.append(Value("model.name", model, (*at, "model")))
        found = {"where": place, "prefix": prefix, "model": model}
        notes.append(Message("K3C-126", found))
        values += [Value(k, v, (), source="below") for k, v in _DEFAULTS.get(prefix, ())]
    elif text(params, "model"):
        values.append(Value("model.name", text(params, "model"), (*at, "model")))
        if slash:
            notes.append(Message("K3C-122", {"where": place, "found": prefix}))
    notes.append(several(document, at, name, list(deployments)))
    values.append(Value("link.protocol", wire, at))
    kept = tuple(note for note in notes if note is not None)
    appends = "/chat/completions" if wire == "openai" else ""
    return Reading(tuple(values), notes=kept, appends=appends)


DIALECT = Dialect(
    name="litellm",
    title="LiteLLM's config.yaml",
    looks_for="model_list with litellm_params (model, api_base, api_key)",
    recognise=recognise,
    read=read,
    evidence=lambda _data: ("model_list",),
    syntaxes=("YAML", "JSON"),
    expands=(LITELLM,),
    speaks="by the model's prefix",
    precedence="the deployment > `litellm_settings` > the prefix's own variables "
    "(`OPENAI_API_KEY` ...)",
)
