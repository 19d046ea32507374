"""From single settings to the checked model; every mistake is found in one go."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from k3check.config.describe import accepted, choices, keys
from k3check.config.models import Config
from k3check.config.names import ALIASES
from k3check.config.problems import combined, meant, nearest, problem, type_of
from k3check.errors import UsageError
from k3check.masking.settings import hide_opaque, is_secret_path, shown
from k3check.model import Text
from k3check.operators import OPERATORS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic_core import ErrorDetails

_RANGE = frozenset(
    {
        "greater_than",
        "greater_than_equal",
        "less_than",
        "less_than_equal",
        "finite_number",
        "string_too_short",
        "string_too_long",
    }
)
_CHOICE = frozenset({"literal_error", "string_pattern_mismatch"})


@dataclass(frozen=True)
class Setting:
    """One effective value and where it stands, for messages."""

    value: Any = field(repr=False)
    where: str


def build(settings: Mapping[str, Setting], operators: Iterable[str] = ()) -> Config:
    """Build the configuration.

    Args:
        settings: by dotted key.
        operators: names of operators that are configured, if only by an empty table.

    Raises:
        UsageError: unknown keys, wrong types, values out of range; all of them at once.
    """
    known = set(keys())
    problems = [_unknown(key, setting) for key, setting in settings.items() if key not in known]
    nested: dict[str, Any] = {"operators": {name: {} for name in operators}}
    for key, setting in settings.items():
        if key in known:
            *parents, last = key.split(".")
            node = nested
            for part in parents:
                node = node.setdefault(part, {})
            node[last] = setting.value
    try:
        config = Config.model_validate(nested)
    except ValidationError as error:
        details = error.errors(include_url=False)
        explained = [_explain(detail, settings) for detail in details]
        # In the order of the file, not of the model.
        order = list(settings)
        explained.sort(key=lambda pair: order.index(pair[0]) if pair[0] in settings else 0)
        raise combined([*problems, *(pair[1] for pair in explained)]) from None
    if problems:
        raise combined(problems)
    return config


def _unknown(key: str, setting: Setting) -> UsageError:
    """An unknown key from an option; those of files are found by their dialects."""
    close = None
    if key.startswith("operators."):
        name = key.removeprefix("operators.").rpartition(".")[0]
        close = nearest(name, OPERATORS)
        listing = ", ".join(OPERATORS)
        key = name
    else:
        close = nearest(key, keys())
        listing = "a key of config.toml"
    return problem(
        "K3C-021",
        where=setting.where,
        accepted=listing,
        key=key,
        fix=meant(close) if close else None,
    )


def _explain(detail: ErrorDetails, settings: Mapping[str, Setting]) -> tuple[str, UsageError]:
    """The dotted key of one of pydantic's errors, and the error in our words."""
    path = [str(part) for part in detail["loc"]]
    kind = detail["type"]
    if kind == "value_error":
        # A model's own validator; it names the field that is at fault before the bar.
        name, _, reason = str(detail["ctx"]["error"]).partition("|")
        key = ".".join((*path, name))
        where = settings[key].where if key in settings else None
        return key, problem("K3C-025", where=where, key=name, reason=reason)
    # What follows a key is a place inside a free table or one of a union's members.
    key = ".".join(path[: 3 if path[0] == "operators" else 2])
    setting = settings[key]
    if kind in _RANGE:
        return key, problem(
            "K3C-024",
            where=setting.where,
            found=_found(key, setting.value),
            accepted=accepted(key),
            key=key,
        )
    options = choices(key) or (("auto", "cpu", "cuda") if key.endswith(".device") else ())
    fix = _fix(key, setting.value, options)
    code = "K3C-026" if kind in _CHOICE and isinstance(setting.value, str) else "K3C-022"
    return key, problem(
        code,
        where=setting.where,
        found=_found(key, setting.value),
        accepted=accepted(key),
        key=key,
        fix=fix,
    )


def _found(key: str, value: Any) -> str:
    """The value in a few words; a secret's type alone."""
    kind = type_of(value)
    if is_secret_path(key.split(".")):
        return Text("{kind} (not shown)", kind=kind)
    if isinstance(value, dict | list):
        return kind
    text = shown(value)
    if isinstance(value, str):
        # Somebody may have put the key under a wrong name.
        return f'"{hide_opaque(text)}"'
    return text


def _unquoted(key: str, text: str) -> bool:
    """Whether a quoted value is right but for its quotes."""
    try:
        value = json.loads(text)
        build({key: Setting(value, "")})
    except (ValueError, RecursionError, UsageError):
        return False
    return True


def _fix(key: str, value: Any, options: tuple[str, ...]) -> str | None:
    if isinstance(value, str):
        close = ALIASES.get(value.casefold())
        if close not in options:
            close = nearest(value, options)
        if close:
            return meant(close)
        wanted = accepted(key)
        if wanted.startswith(("an integer", "a number", "true")):
            if _unquoted(key, value):
                return "Write it without quotes."
            return Text("Write {value}, without quotes.", value=wanted)
    elif not isinstance(value, dict | list) and accepted(key).startswith("a text"):
        return "Put it in quotes."
    return None
