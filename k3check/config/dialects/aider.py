"""Aider's ``.aider.conf.yml``: its options as keys.

Aider asks through LiteLLM, so the model's first part chooses the API (Aider-AI/aider
aider/models.py, aider/args.py; for prefixes see :mod:`k3check.config.dialects.litellm`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.config.dialects import litellm
from k3check.config.dialects.base import Dialect, Reading, Value
from k3check.config.pick import picked, text
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Document

_OWN = ("openai-api-base", "openai-api-key", "anthropic-api-key")


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data have one of the options that name an endpoint's address or key."""
    return any(key in data for key in _OWN)


def read(document: Document) -> Reading:
    """The main model, and the address and key of its API."""
    data = document.data
    prefix, model, provider = litellm.provider_of(text(data, "model"))
    values = litellm.defaults(provider)
    notes = []
    if model:
        values.append(Value("model.name", model, ("model",)))
    if prefix:
        found = {"where": document.where(("model",)), "prefix": prefix, "model": model}
        notes.append(Message("K3C-126", found))
    own = "anthropic-api-key" if provider.client.wire == "anthropic" else "openai-api-key"
    fields = [(own, "api.api_key")]
    if own == "openai-api-key":
        fields.append(("openai-api-base", "api.base_url"))
    values += picked(data, (), fields)
    first = next(key for key in (*_OWN, "model") if key in data)
    return Reading(
        tuple(values),
        notes=tuple(notes),
        client=provider.client,
        client_at=("model",) if model else (first,),
    )


DIALECT = Dialect(
    name="aider",
    title="Aider's .aider.conf.yml",
    looks_for="openai-api-base, openai-api-key, anthropic-api-key, model",
    recognise=recognise,
    read=read,
    evidence=lambda data: [key for key in (*_OWN, "model") if key in data],
    syntaxes=("YAML",),
    speaks="by the model's prefix",
    precedence="the file > shell",
    clients=litellm.DIALECT.clients,
)
