"""The model's keys, and what each accepts in words; all derived from the model itself."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel

from k3check.config.models import Config, OperatorConfig
from k3check.model import Text
from k3check.operators import OPERATORS


@cache
def sections() -> dict[str, tuple[str, ...]]:
    """The fields of every section but ``operators``, in the model's order."""
    return {
        name: tuple(field.annotation.model_fields)
        for name, field in Config.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
    }


@cache
def keys() -> tuple[str, ...]:
    """Every dotted key that a configuration can set, operators' included."""
    plain = [f"{section}.{field}" for section, fields in sections().items() for field in fields]
    own = [f"operators.{name}.{f}" for name in OPERATORS for f in OperatorConfig.model_fields]
    return (*plain, *own)


@cache
def _schema() -> dict[str, Any]:
    return Config.model_json_schema()


def _property(key: str) -> dict[str, Any]:
    """The JSON Schema of one dotted key."""
    section, *rest = key.split(".")
    model = "OperatorConfig" if section == "operators" else None
    if model is None:
        model = _schema()["properties"][section]["$ref"].rsplit("/", 1)[-1]
    found: dict[str, Any] = _schema()["$defs"][model]["properties"][rest[-1]]
    # "X | None": null is never written by a user of our dialect.
    for option in found.get("anyOf", ()):
        if option.get("type") != "null":
            return {**option, "description": found.get("description", "")}
    return found


def choices(key: str) -> tuple[str, ...]:
    """The values that a key with a fixed list accepts, else nothing."""
    return tuple(_property(key).get("enum", ()))


def _number(value: float) -> str:
    return str(int(value)) if math.isfinite(value) and value == int(value) else str(value)


def accepted(key: str) -> str:
    """What a dotted key accepts, in words: ``an integer from 1 to 100``."""
    spec = _property(key)
    if "enum" in spec:
        return Text("one of {names}", names=", ".join(spec["enum"]))
    if "pattern" in spec:
        return str(spec["description"]).rstrip(" .")
    kind: Literal["integer", "number", "boolean", "string", "object", "array"] = spec["type"]
    words = {
        "integer": "an integer",
        "number": "a number",
        "boolean": "true or false",
        "string": "a text",
        "object": "a table",
        # The only list that we have is one of layers.
        "array": "a list of integers",
    }[kind]
    low, above = spec.get("minimum"), spec.get("exclusiveMinimum")
    high = spec.get("maximum")
    if kind == "string" and "maxLength" in spec:
        return Text(words + " of at most {n} characters", n=spec["maxLength"])
    if low is not None and high is not None:
        return Text(words + " from {low} to {high}", low=_number(low), high=_number(high))
    if above is not None and high is not None:
        return Text(words + " above {low}, at most {high}", low=_number(above), high=_number(high))
    return words
