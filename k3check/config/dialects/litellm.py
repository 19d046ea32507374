"""LiteLLM's ``config.yaml``: the deployments in its ``model_list``.

What is asked is the endpoint behind the proxy, as the proxy would ask it. The first part of
``litellm_params.model`` chooses the API and is not sent on; the base of most providers is known to
LiteLLM, which looks at a variable PROVIDER_API_BASE before (BerriAI/litellm
litellm/litellm_core_utils/get_llm_provider_logic.py, litellm/llms/*/chat/transformation.py). An
address that ends in the API's path already is taken as it is (the same files, get_complete_url).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from k3check.config.client import Client
from k3check.config.dialects.base import Dialect, Reading, Value, table
from k3check.config.pick import picked, preferred, several, text
from k3check.config.references import LITELLM
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Document, Path_


@dataclass(frozen=True)
class Provider:
    """What LiteLLM knows of a prefix.

    Attributes:
        base: the address where none is set; empty if one must be.
        bases, keys: variables of the address and the key, the stronger first.
        client: how it is asked.
    """

    base: str = ""
    bases: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    client: Client = Client("LiteLLM", once=True)  # noqa: RUF009 - frozen


_MESSAGES = Client("LiteLLM with anthropic/", "anthropic", "/v1/messages", once=True)
_SDK = Client("LiteLLM with openai/")


def _known(base: str, name: str, *keys: str) -> Provider:
    return Provider(base, (f"{name}_API_BASE",), keys or (f"{name}_API_KEY",))


# Prefixes that lead to an API of OpenAI's or Anthropic's form.
_PREFIXES = {
    "openai": Provider(
        "https://api.openai.com/v1",
        ("OPENAI_API_BASE", "OPENAI_BASE_URL"),
        ("OPENAI_API_KEY",),
        _SDK,
    ),
    "custom_openai": Provider(client=_SDK),
    "openai_like": Provider(),
    "hosted_vllm": Provider("", ("HOSTED_VLLM_API_BASE",), ("HOSTED_VLLM_API_KEY",)),
    "litellm_proxy": Provider("", ("LITELLM_PROXY_API_BASE",), ("LITELLM_PROXY_API_KEY",)),
    "moonshot": _known("https://api.moonshot.ai/v1", "MOONSHOT"),
    "fireworks_ai": _known(
        "https://api.fireworks.ai/inference/v1",
        "FIREWORKS",
        "FIREWORKS_API_KEY",
        "FIREWORKS_AI_API_KEY",
        "FIREWORKSAI_API_KEY",
        "FIREWORKS_AI_TOKEN",
    ),
    "together_ai": _known(
        "https://api.together.xyz/v1",
        "TOGETHER_AI",
        "TOGETHER_API_KEY",
        "TOGETHER_AI_API_KEY",
        "TOGETHERAI_API_KEY",
        "TOGETHER_AI_TOKEN",
    ),
    "openrouter": _known("https://openrouter.ai/api/v1", "OPENROUTER"),
    "deepinfra": _known("https://api.deepinfra.com/v1/openai", "DEEPINFRA"),
    "groq": _known("https://api.groq.com/openai/v1", "GROQ"),
    "nvidia_nim": _known("https://integrate.api.nvidia.com/v1", "NVIDIA_NIM"),
    "volcengine": _known("https://ark.cn-beijing.volces.com/api/v3", "VOLCENGINE"),
    "dashscope": _known("https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE"),
    "novita": _known("https://api.novita.ai/v3/openai", "NOVITA"),
    "nscale": _known("https://inference.api.nscale.com/v1", "NSCALE"),
    "anthropic": Provider(
        "https://api.anthropic.com",
        ("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"),
        ("ANTHROPIC_API_KEY",),
        _MESSAGES,
    ),
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
    ("extra_headers", "api.headers"),
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
    prefix, model, provider = provider_of(text(params, "model"))
    place = document.where((*at, "model"))
    if model:
        values.append(Value("model.name", model, (*at, "model")))
    values += defaults(provider)
    if prefix:
        notes.append(Message("K3C-126", {"where": place, "prefix": prefix, "model": model}))
    elif "/" in model:
        notes.append(Message("K3C-122", {"where": place, "found": model.partition("/")[0]}))
    notes.append(several(document, at, name, list(deployments)))
    return Reading(
        tuple(values),
        notes=tuple(note for note in notes if note is not None),
        client=provider.client,
        client_at=(*at, "model"),
    )


def provider_of(model: str) -> tuple[str, str, Provider]:
    """What a model's first part chooses.

    Returns:
        The first part, empty if it chooses nothing that is known; the model as it is sent; the
        provider.
    """
    prefix, slash, rest = model.partition("/")
    if slash and prefix in _PREFIXES:
        return prefix, rest, _PREFIXES[prefix]
    return "", model, Provider() if slash else _PREFIXES["openai"]


def defaults(provider: Provider) -> list[Value]:
    """What the proxy takes where a deployment names nothing; of several variables the first."""
    values = [Value("api.base_url", provider.base, (), source="client")] if provider.base else []
    for key, names in (("api.base_url", provider.bases), ("api.api_key", provider.keys)):
        values += [
            Value(key, name, (), source="below", rank=-1 - rank, rival=False)
            for rank, name in enumerate(names)
        ]
    return values


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
    clients=(Provider().client, _SDK, _MESSAGES),
    precedence="the deployment > `litellm_settings` > the prefix's own variables "
    "(`OPENAI_API_KEY` ...)",
)
