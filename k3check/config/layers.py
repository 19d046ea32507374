"""The files and variables that a client reads together, and the values that they give.

Most dialects are one file. Claude Code merges up to four and the shell's variables, Codex takes the
key from a second one, a ``.env`` file gives way to the shell. What comes out is one list of values,
the weakest first, each with its origin.
"""

from __future__ import annotations

import re
from collections import ChainMap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from k3check.config import dialects, source
from k3check.config.dialects.base import Found
from k3check.config.document import dotted
from k3check.config.references import Context, resolve
from k3check.errors import UsageError
from k3check.masking.address import secrets_in_values
from k3check.masking.settings import is_secret_path, known_secrets, secrets_in_text
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from k3check.config.dialects.base import Dialect, Layer, Reading, Value
    from k3check.config.document import Document

# What a client's user means to set once; and where a reference is worth flagging.
ENDPOINT = ("api.base_url", "api.api_key", "model.name")
_VERSIONED = re.compile(r"/v\d")


@dataclass(frozen=True)
class File:
    """One file that was read."""

    path: Path
    document: Document
    dialect: Dialect
    reading: Reading
    notes: tuple[Message, ...] = ()


def read_file(path: Path, name: str | Path, seen: list[str]) -> File:
    """Read one file; its secrets are added to ``seen`` as soon as they are known.

    Raises:
        UsageError: it cannot be read or is not understood.
    """
    text = source.read(path, name)
    seen += secrets_in_text(text.text)
    document = dialects.parse_text(text)
    seen += [*known_secrets(document.data), *secrets_in_values(document.data)]
    dialect = dialects.recognise(document)
    reading = dialect.read(document)
    bom = (Message("K3C-030", {"file": text.file}),) if text.bom else ()
    return File(path, document, dialect, reading, (*bom, *reading.notes))


def gather(
    main: File, cwd: Path, env: Mapping[str, str], seen: list[str]
) -> tuple[list[Found], list[Message]]:
    """All values of a file and of what its client reads together with it.

    Args:
        main: the file that was named or found.
        cwd: the working directory, for names.
        env: the environment.
        seen: the secrets that are known; resolved ones are added.

    Returns:
        The values, the weakest first; and what is worth telling.
    """
    notes: list[Message] = []
    shell: dict[tuple[str, str, str], Value] = {}
    values: list[tuple[File, Value]] = []
    for file, keys in _files(main, cwd, env, seen, notes):
        notes += file.notes
        for item in file.reading.values:
            if item.source in ("below", "above"):
                shell.setdefault((item.key, item.value, item.source), item)
            elif not keys or item.key in keys:
                values.append((file, item))
    found: list[Found] = []
    found += _of_shell(shell.values(), "below", env)
    for file, item in values:
        made = _looked_up(file, item, env, notes)
        if made is not None:
            found.append(made)
    found += _of_shell(shell.values(), "above", env)
    for one in found:
        if is_secret_path(one.item.key.split(".")):
            seen += known_secrets(str(one.value))
    found.sort(key=lambda one: one.item.rank)
    notes += main.dialect.review(found)
    notes += [note for note in (_version(main, found), *disagreements(found)) if note is not None]
    return found, notes


def _files(
    main: File, cwd: Path, env: Mapping[str, str], seen: list[str], notes: list[Message]
) -> list[tuple[File, frozenset[str]]]:
    """The client's files that exist, the weakest first; the main one must be readable."""
    layers: Sequence[Layer] = main.dialect.layers(main.path, main.document, env)
    found: list[tuple[File, frozenset[str]]] = []
    for layer in layers:
        if layer.path == main.path:
            found.append((main, frozenset()))
            continue
        name = layer.path.relative_to(cwd) if layer.path.is_relative_to(cwd) else layer.path
        try:
            found.append((read_file(layer.path, name, seen), layer.keys))
        except UsageError as error:
            if error.code not in ("K3C-001", "K3C-020"):
                notes.append(Message("K3C-123", {"file": source.display(name), "code": error.code}))
    return found or [(main, frozenset())]


def _of_shell(items: Iterable[Value], which: str, env: Mapping[str, str]) -> list[Found]:
    found = []
    for item in items:
        name = str(item.value)
        value = env.get(name, "").strip()
        if item.source == which and value:
            found.append(Found(item, item.instead or value, name, name, None, name))
    return found


def _looked_up(
    file: File, item: Value, env: Mapping[str, str], notes: list[Message]
) -> Found | None:
    """A value of a file, with its variable or its references looked up; None if not set."""
    document = file.document
    place, line, name = document.where(item.path), document.line(item.path), dotted(item.path)
    context = Context(ChainMap(dict(env), dict(file.reading.defines)), file.path.parent)
    if item.source == "variable":
        variable = str(item.value)
        value = context.variable(variable)
        if value is None:
            notes.append(Message("K3C-110", {"where": place, "variable": variable}))
            return None
        return _via(file, item, value, (variable,))
    if not isinstance(item.value, str):
        return Found(item, item.value, document.file, name, line, place)
    expands = file.dialect.expands
    if not expands and item.key not in ENDPOINT:
        return Found(item, item.value, document.file, name, line, place)
    secret = item.key == "api.api_key"
    context = Context(context.env, context.folder, expands)
    resolved = resolve(item.value, context, place, from_file=secret)
    notes += resolved.notes if item.key in ENDPOINT else ()
    if not resolved.usable:
        return None
    if resolved.via:
        return _via(file, item, resolved.text, resolved.via)
    return Found(item, resolved.text, document.file, name, line, place)


def _via(file: File, item: Value, value: Any, via: Sequence[str]) -> Found:
    # No line of its own: what stands there is a reference, not the value, so nobody may edit it.
    line = file.document.line(item.path)
    where = file.document.file if line is None else f"{file.document.file}:{line}"
    name = f"{dotted(item.path)} -> {', '.join(via)}"
    return Found(item, value, where, name, None, f"{where}  {name}")


def disagreements(found: Sequence[Found]) -> list[Message]:
    """A note for each endpoint value that two sources set differently."""
    notes = []
    for key in ENDPOINT:
        some = [one for one in found if one.item.key == key]
        if not some or not some[-1].item.rival:
            continue
        winner = some[-1]
        losers = [o for o in some[:-1] if o.item.rival and o.value != winner.value]
        if losers:
            others = ", ".join(dict.fromkeys(one.place for one in reversed(losers)))
            values = {"key": key, "where": winner.place, "others": others}
            notes.append(Message("K3C-113", values))
    return notes


def _version(main: File, found: Sequence[Found]) -> Message | None:
    """The note that a client appends its path to a base URL without a version."""
    appends = main.reading.appends
    some = [one for one in found if one.item.key == "api.base_url"]
    if not appends or not some or not isinstance(some[-1].value, str):
        return None
    text = some[-1].value
    if not text.startswith(("http://", "https://")) or _VERSIONED.search(text):
        return None
    return Message("K3C-125", {"where": some[-1].place, "appends": appends})
