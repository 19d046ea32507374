"""Every effective value and where it came from: what ``k3check config show`` prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from k3check.masking.settings import masked, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from k3check.config.loaded import Loaded, Origin


@dataclass(frozen=True)
class Row:
    """One effective value.

    Attributes:
        key: our dotted key.
        value: the value as text; a secret is masked.
        origin: where it came from.
        is_default: whether nothing set it.
    """

    key: str
    value: str
    origin: Origin
    is_default: bool


def effective(loaded: Loaded) -> Iterator[tuple[str, Any]]:
    """Every dotted key with its value; secrets are unwrapped, so mask before showing."""
    config = loaded.config
    for section in type(config).model_fields:
        part = getattr(config, section)
        if section == "operators":
            for name, operator in part.items():
                for field in type(operator).model_fields:
                    yield f"operators.{name}.{field}", getattr(operator, field)
            continue
        for field in type(part).model_fields:
            value = getattr(part, field)
            if isinstance(value, SecretStr):
                value = value.get_secret_value()
            yield f"{section}.{field}", value


def rows(loaded: Loaded) -> tuple[Row, ...]:
    """All effective values in the model's order."""
    return tuple(
        Row(
            key=key,
            value=shown(value, key.split("."), loaded.secrets),
            origin=loaded.origins[key],
            is_default=loaded.origins[key].where == "default",
        )
        for key, value in effective(loaded)
    )


def to_json(loaded: Loaded) -> dict[str, Any]:
    """The same as JSON-able data; values keep their types, secrets are masked texts."""
    values = []
    for key, value in effective(loaded):
        origin = loaded.origins[key]
        values.append(
            {
                "key": key,
                "value": masked(value, key.split("."), loaded.secrets),
                "origin": {"where": origin.where, "key": origin.key, "line": origin.line},
                "shadows": [{"where": where, "value": text} for where, text in origin.shadows],
            }
        )
    return {
        "path": _printable(loaded),
        "dialect": loaded.dialect,
        "values": values,
        "notes": [
            {"code": note.code, "values": masked(dict(note.values), (), loaded.secrets)}
            for note in loaded.messages
        ],
    }


def _printable(loaded: Loaded) -> str | None:
    from k3check.config.source import display

    return None if loaded.path is None else display(loaded.path)
