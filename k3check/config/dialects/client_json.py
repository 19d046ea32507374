"""A plain client's file, JSON or TOML: ``base_url``, ``api_key``, ``model`` and request fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.config.dialects import codex_auth, goose_provider
from k3check.config.dialects.base import table_dialect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Document

FIELDS = {
    "base_url": "api.base_url",
    "api_key": "api.api_key",
    "timeout": "api.timeout_seconds",
    "max_retries": "api.max_retries",
    "model": "model.name",
    "max_tokens": "model.max_output_tokens",
    "max_completion_tokens": "model.max_output_tokens",
    "temperature": "model.temperature",
    "top_p": "model.top_p",
    "stream": "client.stream",
    "extra_body": "client.extra_body",
}


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data have the endpoint at the top."""
    return ("base_url" in data or "api_key" in data) and not isinstance(data.get("model"), dict)


def fits(document: Document) -> bool:
    """Whether a file is not Codex's or Goose's, which may have the same keys."""
    codex = codex_auth.recognise(document.data) and codex_auth.fits(document)
    return not codex and not goose_provider.recognise(document.data)


DIALECT = table_dialect(
    name="client-json",
    title="a plain JSON client's file",
    looks_for="base_url, api_key and model at the top, with max_tokens, stream, extra_body ...",
    fields=FIELDS,
    recognise=recognise,
    fits=fits,
)
