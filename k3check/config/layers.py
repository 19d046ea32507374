"""The files and variables that a client reads together, and the values that they give.

Most dialects are one file. Claude Code merges up to four and the shell's variables, Codex takes the
key from a second one, a ``.env`` file gives way to the shell. What comes out is one list of values,
the weakest first, each with its origin.
"""

from __future__ import annotations

import re
from collections import ChainMap
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from k3check.config import dialects, source
from k3check.config.dialects.base import Found, Value
from k3check.config.document import dotted
from k3check.config.references import Context, resolve
from k3check.errors import UsageError
from k3check.masking.address import secrets_in_values
from k3check.masking.settings import is_secret_path, known_secrets, secrets_in_text
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from k3check.config.dialects.base import Dialect, Layer, Reading
    from k3check.config.document import Document

# What a client's user means to set once; and where a reference is worth flagging.
ENDPOINT = ("api.base_url", "api.api_key", "model.name")
HEADERS = "api.headers"
_VERSIONED = re.compile(r"/v\d")
_WEAKEST = -9


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


@dataclass(frozen=True)
class Gathered:
    """What a client's files and variables say together.

    Attributes:
        values: the weakest first.
        notes: what is worth telling.
        absent: by our key, why nothing sets it: a variable that is not set, say.
    """

    values: tuple[Found, ...]
    notes: tuple[Message, ...]
    absent: Mapping[str, Message]


def gather(main: File, cwd: Path, env: Mapping[str, str], seen: list[str]) -> Gathered:
    """All values of a file and of what its client reads together with it.

    Args:
        main: the file that was named or found.
        cwd: the working directory, for names.
        env: the environment.
        seen: the secrets that are known; resolved ones are added.

    """
    notes: list[Message] = []
    absent: dict[str, Message] = {}
    shell: dict[tuple[str, str, str], Value] = {}
    values: list[tuple[File, Value]] = []
    for file, keys in _files(main, cwd, env, seen, notes):
        notes += file.notes
        absent |= {k: why for k, why in file.reading.absent.items() if not keys or k in keys}
        for item in file.reading.values:
            if item.source in ("below", "above", "client"):
                shell.setdefault((item.key, item.value, item.source), item)
            elif not keys or item.key in keys:
                values.append((file, item))
    found = _of_client(main, shell.values())
    found += _of_shell(shell.values(), "below", env)
    for file, item in values:
        made = _looked_up(file, item, env, notes)
        if isinstance(made, Message):
            absent[item.key] = made
        elif made is not None:
            found.append(made)
    found += _of_shell(shell.values(), "above", env)
    for one in found:
        if is_secret_path(one.item.key.split(".")):
            seen += known_secrets(str(one.value))
    found.sort(key=lambda one: one.item.rank)
    found, reasons = main.dialect.resolve(found)
    found = _one_of_headers(found)
    absent |= reasons
    notes += main.dialect.review(found)
    notes += [note for note in (_version(main, found), *disagreements(found)) if note is not None]
    there = {one.item.key for one in found}
    if main.reading.client is not None and main.dialect.models:
        absent.setdefault("model.name", Message("K3C-156", {"where": main.document.file}))
    # A file that describes no endpoint at all need not name a model.
    there |= set() if "api.base_url" in there else {"model.name"}
    # A variable that is not set, where a weaker source sets the value.
    notes += [why for key, why in absent.items() if key in there and why.code == "K3C-110"]
    absent = {key: why for key, why in absent.items() if key not in there}
    return Gathered(tuple(found), tuple(notes), absent)


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


def _of_client(main: File, items: Iterable[Value]) -> list[Found]:
    """What the client brings along: its API, its header, an address that it knows by itself."""
    client, reading = main.reading.client, main.reading
    found: list[Found] = []
    if client is not None:
        place, line = main.document.where(reading.client_at), main.document.line(reading.client_at)
        name = dotted(reading.client_at)
        given = {"link.protocol": str(client.wire), "link.auth": str(client.auth)}
        for key, value in given.items():
            if value == "auto":
                continue
            item = Value(key, value, reading.client_at, rank=_WEAKEST)
            found.append(Found(item, value, main.document.file, name, line, place))
    for item in items:
        if item.source == "client":
            tool = main.dialect.title.partition("'s ")[0]
            item = replace(item, rank=_WEAKEST, rival=False)
            found.append(Found(item, item.value, tool, tool, None, tool))
    return found


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
) -> Found | Message | None:
    """A value of a file, with its variable or its references looked up.

    None if it is not set; the reason if that is one to tell in its place.
    """
    document = file.document
    place, line, name = document.where(item.path), document.line(item.path), dotted(item.path)
    context = Context(ChainMap(dict(env), dict(file.reading.defines)), file.path.parent)
    if isinstance(item.value, dict) and item.key == HEADERS:
        headers = _headers(item, context, file.dialect.expands, place, notes)
        return Found(replace(item, source="file"), headers, document.file, name, line, place)
    if item.source == "variable":
        variable = str(item.value)
        value = context.variable(variable)
        if value is None:
            return Message("K3C-110", {"where": place, "variable": variable})
        return _via(file, item, value, (variable,))
    if not isinstance(item.value, str):
        return Found(item, item.value, document.file, name, line, place)
    expands = file.dialect.expands
    if not expands and item.key not in ENDPOINT:
        return Found(item, item.value, document.file, name, line, place)
    secret = item.key == "api.api_key"
    context = Context(context.env, context.folder, expands)
    resolved = resolve(item.value, context, place, from_file=secret)
    if item.key in ENDPOINT and resolved.unset is not None:
        return resolved.unset
    if item.key in ("api.base_url", "api.api_key") and resolved.whole is not None:
        # The client would send the reference itself.
        return resolved.whole
    notes += resolved.notes if item.key in ENDPOINT else ()
    if resolved.command:
        return Message("K3C-116", {"where": place})
    if resolved.via:
        return _via(file, item, resolved.text, resolved.via)
    return Found(item, resolved.text, document.file, name, line, place)


def _headers(
    item: Value, context: Context, expands: tuple[str, ...], place: str, notes: list[Message]
) -> dict[str, str]:
    """Headers with their variables or references looked up; what is not set is left out."""
    found: dict[str, str] = {}
    context = replace(context, expands=expands)
    for name, given in item.value.items():
        if item.source == "variable":
            value = context.variable(str(given))
            if value is None:
                notes.append(Message("K3C-110", {"where": place, "variable": str(given)}))
            else:
                found[name] = value
            continue
        resolved = resolve(str(given), context, place)
        notes += (*resolved.notes, *((resolved.unset,) if resolved.unset else ()))
        if resolved.unset is None and not resolved.command:
            found[name] = resolved.text
    return found


def _one_of_headers(found: list[Found]) -> list[Found]:
    """All tables of headers as one, which takes the strongest one's place."""
    some = [one for one in found if one.item.key == HEADERS]
    if len(some) < 2:
        return found
    merged: dict[str, str] = {}
    for one in some:
        merged |= one.value
    return [one for one in found if one.item.key != HEADERS] + [replace(some[-1], value=merged)]


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
    client = main.reading.client
    appends = (
        client.path if client and client.wire != "anthropic" and not client.adds_version else ""
    )
    some = [one for one in found if one.item.key == "api.base_url"]
    if not appends or not some or not isinstance(some[-1].value, str):
        return None
    text = some[-1].value
    if not text.startswith(("http://", "https://")) or _VERSIONED.search(text):
        return None
    return Message("K3C-125", {"where": some[-1].place, "appends": appends})
