"""The JSON Schema of our own dialect: what ``k3check config schema`` prints."""

from __future__ import annotations

from typing import Any

from k3check.config.models import Config


def schema() -> dict[str, Any]:
    """The schema, for editors that complete and check TOML or JSON."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Config.model_json_schema(),
        "title": "k3check configuration",
        "description": "config.toml, k3check.toml, or [tool.k3check] in pyproject.toml.",
    }
