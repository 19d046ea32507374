"""Check a value against the few words of JSON Schema that our own tools use.

Not a validator for anybody's schema: the schemas are ours, and jsonschema would be a dependency for
these thirty lines.
"""

from __future__ import annotations

from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


def violation(value: Any, schema: dict[str, Any], path: str = "$") -> str:
    """The first thing that breaks the schema, as text; empty if the value fits."""
    kind = schema.get("type")
    if kind is not None:
        fits = isinstance(value, _TYPES[kind])
        if isinstance(value, bool) and kind != "boolean":
            fits = False
        if not fits:
            return f"{path} is {type(value).__name__}, not {kind}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{path} is none of {', '.join(map(str, schema['enum']))}"
    if isinstance(value, dict):
        for name in schema.get("required", ()):
            if name not in value:
                return f"{path}.{name} is missing"
        known = schema.get("properties", {})
        for name, item in value.items():
            if name in known:
                if found := violation(item, known[name], f"{path}.{name}"):
                    return found
            elif schema.get("additionalProperties") is False:
                return f"{path}.{name} is not in the schema"
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value[:100]):
            if found := violation(item, schema["items"], f"{path}[{i}]"):
                return found
    return ""
