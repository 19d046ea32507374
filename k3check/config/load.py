"""Find, read and check a configuration, and remember where every value came from.

Precedence, lowest first: defaults, the file, the variables ``K3CHECK_BASE_URL``,
``K3CHECK_API_KEY`` and ``K3CHECK_MODEL``, options.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k3check.config import facts, meaning, source
from k3check.config.check import Setting, build
from k3check.config.client import secret_headers
from k3check.config.describe import keys
from k3check.config.dialects import pyproject, taken_as
from k3check.config.document import dotted
from k3check.config.layers import HEADERS, File, gather, read_file
from k3check.config.loaded import Loaded, Origin
from k3check.config.operator_tables import check_names
from k3check.config.parse import parse
from k3check.config.problems import combined, scrubbed
from k3check.errors import UsageError
from k3check.masking.address import secrets_in_address
from k3check.masking.settings import known_secrets, shown
from k3check.model import Message
from k3check.released import is_k3

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


SEARCHED = ("k3check.toml", "config.toml", "settings.json", "pyproject.toml")
VARIABLES = {
    "K3CHECK_BASE_URL": "api.base_url",
    "K3CHECK_API_KEY": "api.api_key",
    "K3CHECK_MODEL": "model.name",
}
# Other tools have files of these names too, so one that is not ours is passed over with a note.
_SHARED_NAMES = ("config.toml", "settings.json")
# What is shown, and may hold a key that was written into it.
_SHOWN = ("api.base_url", "model.name", "link.proxy")
_PATHS = ("link.ca_file", "logging.log_dir", "model.path")
# Nobody takes these for another tool's.
_OWN = ("k3check", "pyproject")
_SAMPLING = ("model.temperature", "model.top_p", "model.context_window")
_MISSING = "K3C-001"
_UNRECOGNISED = "K3C-020"


@dataclass(frozen=True)
class Override:
    """A value from an option.

    Attributes:
        value: the value, already of the right type.
        origin: the option, e.g. ``--base-url``.
    """

    value: Any = field(repr=False)
    origin: str


def load(
    path: Path | None = None,
    *,
    cwd: Path,
    env: Mapping[str, str],
    overrides: Mapping[str, Override] | None = None,
) -> Loaded:
    """Load the configuration.

    Args:
        path: the file that the user names, relative to ``cwd``; None to search ``cwd``.
        cwd: the working directory.
        env: the environment.
        overrides: values of options by dotted key, e.g. ``api.base_url``.

    Returns:
        The configuration; with ``path`` None where no file was found, which is no error.

    Raises:
        UsageError: the file cannot be read, is not understood, or says something impossible. No
            text of it holds a secret.
    """
    overrides = overrides or {}
    key = overrides.get("api.api_key")
    secrets = known_secrets(
        env.get("K3CHECK_API_KEY"),
        key.value if key is not None and isinstance(key.value, str) else None,
    )
    # The file's secrets are known only once it is parsed; a list carries them to the handler.
    seen: list[str] = list(secrets)
    for target, override in overrides.items():
        if target in _SHOWN and isinstance(override.value, str):
            seen += secrets_in_address(override.value)
    try:
        return _load(path, cwd, env, overrides, seen)
    except UsageError as error:
        raise scrubbed(error, seen) from None


def _load(
    path: Path | None,
    cwd: Path,
    env: Mapping[str, str],
    overrides: Mapping[str, Override],
    seen: list[str],
) -> Loaded:
    notes: list[Message] = []
    if path is not None:
        path = Path(source.at_home(str(path), env))
    file = read_file(cwd / path, path, seen) if path is not None else _search(cwd, seen, notes)
    settings: dict[str, Setting] = {}
    stacks: dict[str, list[Origin]] = {}
    values: dict[str, list[tuple[str, Any]]] = {}
    absent: Mapping[str, Message] = {}

    def put(target: str, value: Any, origin: Origin, where: str) -> None:
        if target in _SHOWN and isinstance(value, str):
            seen.extend(secrets_in_address(value))
        if isinstance(value, str) and (target in _PATHS or target.endswith(".target")):
            value = source.at_home(value, env)
        if target == HEADERS and isinstance(value, dict):
            seen.extend(secret_headers({k: v for k, v in value.items() if isinstance(v, str)}))
        stacks.setdefault(target, []).append(origin)
        values.setdefault(target, []).append((shown(value, target.split("."), seen), value))
        settings[target] = Setting(value, where)

    if file is not None:
        if file.reading.problems:
            own = file.dialect.name in _OWN
            why = "" if own else taken_as(file.dialect, file.document)
            raise combined(file.reading.problems, why)
        gathered = gather(file, cwd, env, seen)
        notes += gathered.notes
        absent = gathered.absent
        for one in gathered.values:
            origin = Origin(one.where, one.name, one.line)
            put(one.item.key, one.value, origin, one.place)
    for variable, target in VARIABLES.items():
        text = env.get(variable)
        if text == "":
            # What an unset secret of a CI system looks like; it must not hide the file's value.
            notes.append(Message("K3C-032", {"variable": variable}))
        elif text is not None:
            put(target, text, Origin(variable, variable), variable)
    for target, override in overrides.items():
        origin = Origin(override.origin, override.origin)
        put(target, override.value, origin, override.origin)

    origins: dict[str, Origin] = {}
    if file is not None:
        for name, table in file.reading.tables.items():
            if name.startswith("operators."):
                line = file.document.line(table)
                origins[name] = Origin(file.document.file, f"[{dotted(table)}]", line)
    config = build(settings, [name.removeprefix("operators.") for name in origins])
    origins |= _origins(stacks, values)
    for name in config.operators:
        if f"operators.{name}" not in origins:
            # No table of a file, so an option: its first key stands for the whole.
            key = next(key for key in stacks if key.startswith(f"operators.{name}."))
            origins[f"operators.{name}"] = origins[key]
    for default in keys():
        configured = not default.startswith("operators.") or default.split(".")[1] in (
            config.operators
        )
        if configured:
            origins.setdefault(default, Origin("default", "default"))
    check_names(config.operators, {key: setting.where for key, setting in settings.items()})
    if file is None or file.reading.released:
        # What only the released model fixes is no matter of another one's.
        other = "model.name" in settings and not is_k3(str(settings["model.name"].value))
        stated = {
            k: s.value
            for k, s in settings.items()
            if s.value is not None and not (other and k in _SAMPLING)
        }
        notes += facts.notes(stated, origins)
    notes += meaning.notes(config, origins)
    return Loaded(
        config=config,
        path=file.path if file else None,
        dialect=file.dialect.name if file else None,
        origins=origins,
        notes=tuple(notes),
        client=file.reading.client if file else None,
        faults=file.reading.faults if file else (),
        absent={key: why for key, why in absent.items() if key not in settings},
        secrets=tuple(dict.fromkeys(seen)),
    )


def _origins(
    stacks: Mapping[str, Sequence[Origin]], values: Mapping[str, Sequence[tuple[str, Any]]]
) -> dict[str, Origin]:
    """The last origin of each key, with the ones before it as what it shadows."""
    found: dict[str, Origin] = {}
    for target, stack in stacks.items():
        (*hidden, last), (*before, (_, effective)) = stack, values[target]
        shadows = tuple(
            (str(origin), text) for origin, (text, _) in zip(hidden, before, strict=True)
        )
        repeats = tuple(value == effective for _, value in before)
        found[target] = Origin(last.where, last.key, last.line, shadows[::-1], repeats[::-1])
    return found


def _search(cwd: Path, seen: list[str], notes: list[Message]) -> File | None:
    for name in SEARCHED:
        path = cwd / name
        if not path.exists() and not path.is_symlink():
            continue
        if name == "pyproject.toml":
            return read_file(path, name, seen) if _mentions_us(path) else None
        try:
            return read_file(path, name, seen)
        except UsageError as error:
            if error.code == _MISSING:
                continue
            if name not in _SHARED_NAMES or error.code != _UNRECOGNISED:
                raise
            notes.append(Message("K3C-031", {"file": name}))
    return None


def _mentions_us(path: Path) -> bool:
    """Whether a pyproject.toml has our table; one that is broken elsewhere is not our business."""
    try:
        text = source.read(path)
    except UsageError:
        return False
    try:
        return pyproject.recognise(parse(text).data)
    except UsageError:
        return "tool.k3check" in text.text
