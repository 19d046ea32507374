"""What a dialect reads from a file: values with their places, and what is worth telling."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from k3check.config.client import Client
    from k3check.config.document import Path_
    from k3check.errors import UsageError
    from k3check.model import Message


@dataclass(frozen=True)
class Value:
    """One value of a file: what our key it sets, and the file's own key path.

    Attributes:
        key: our dotted key.
        value: the value; for another ``source`` than the file, a variable's name.
        path: the file's own key path.
        source: ``file``; ``variable`` that the file names (Codex's ``env_key``); the shell's
            variable that the client reads besides its files, ``below`` or ``above`` them; or
            ``client`` for what the client has by itself where nothing is set.
        instead: what a variable of the shell sets by being there at all; None for its value.
        rank: the client's order among its own keys, whichever of its files they stand in; higher
            ranks win.
        rival: whether a weaker value that differs is a contradiction to tell of.
    """

    key: str
    value: Any = field(repr=False)
    path: Path_
    source: Literal["file", "variable", "below", "above", "client"] = "file"
    instead: str | None = None
    rank: int = 0
    rival: bool = True


@dataclass(frozen=True)
class Found:
    """A value with its origin, once references and variables are looked up.

    Attributes:
        item: what the dialect read.
        value: the value itself.
        where: the file's name, or the variable's; with the line where a reference was resolved.
        name: the source's own key path.
        line: the line, where the value itself stands in the file.
        place: the place for messages.
    """

    item: Value
    value: Any = field(repr=False)
    where: str
    name: str
    line: int | None
    place: str


@dataclass(frozen=True)
class Layer:
    """One of the files that a client reads together.

    Attributes:
        path: the file; it need not exist.
        keys: our keys that are taken from it; empty for all.
    """

    path: Path
    keys: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Reading:
    """What a dialect read from a document.

    Attributes:
        values: in the order of precedence; a later one shadows an earlier one of the same key.
        tables: key paths of tables that origins are asked for by themselves
            (``operators.kda_chunk``), by our dotted key.
        problems: unknown keys and misplaced tables.
        notes: what a user of this dialect should know.
        defines: variables that the file itself defines, for references.
        client: how the file's client makes requests of it; None where the file is of no client
            in particular: then k3check's own way is taken, with exactly one /v1.
        client_at: the key path that decides on it.
        faults: what keeps the client itself from starting or asking.
        absent: by our key, why the file does not set it, or what else the client does for it.
        released: whether values are compared with those of the released model.
    """

    values: tuple[Value, ...]
    tables: Mapping[str, Path_] = field(default_factory=dict)
    problems: tuple[UsageError, ...] = ()
    notes: tuple[Message, ...] = ()
    defines: Mapping[str, str] = field(default_factory=dict, repr=False)
    client: Client | None = None
    client_at: Path_ = ()
    faults: tuple[Message, ...] = ()
    absent: Mapping[str, Message] = field(default_factory=dict)
    released: bool = True
