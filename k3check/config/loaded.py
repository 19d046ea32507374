"""A configuration that was read and checked, and where each of its values came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from k3check.config.client import LOGINS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from k3check.config.client import Client
    from k3check.config.models import Config
    from k3check.model import Message


@dataclass(frozen=True)
class Origin:
    """Where an effective value came from.

    Attributes:
        where: the file's name, a variable, an option, or ``default``.
        key: the source's own key path, e.g. ``modelConfig.contextWindow``.
        line: the line in the file.
        shadows: what it takes precedence over, the nearest first: (where, value with secrets
            masked).
        repeats: for each of them, whether its value is the effective one: of two keys nothing
            is shown that would tell.
    """

    where: str
    key: str
    line: int | None = None
    shadows: tuple[tuple[str, str], ...] = ()
    repeats: tuple[bool, ...] = ()

    def __str__(self) -> str:
        """``config.toml:12  [operators.kda_chunk]``, or the variable's or option's name."""
        if self.where == self.key:
            return self.where
        return f"{self.where}:{self.line}  {self.key}" if self.line else f"{self.where}  {self.key}"


@dataclass(frozen=True)
class Loaded:
    """A checked configuration.

    Attributes:
        config: the effective values.
        path: the file; None if there is none.
        dialect: the name of the file's dialect.
        origins: by dotted key: every leaf, and ``operators.NAME`` for each configured operator.
        client: how the file's own client makes requests; None for k3check's way.
        faults: what keeps that client from starting or asking.
        absent: by dotted key, why nothing sets it.
        notes: contradictions of the released model and other things worth knowing.
        secrets: the values of all keys that were seen, to be removed from anything shown; not in
            the repr.
    """

    config: Config
    path: Path | None = None
    dialect: str | None = None
    origins: Mapping[str, Origin] = field(default_factory=dict)
    notes: tuple[Message, ...] = ()
    client: Client | None = None
    faults: tuple[Message, ...] = ()
    absent: Mapping[str, Message] = field(default_factory=dict)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @property
    def messages(self) -> tuple[Message, ...]:
        """All that is worth telling: what stops the client, what is not set, and the notes."""
        return (*self.faults, *self.absent.values(), *self.notes)

    @property
    def login(self) -> Message | None:
        """Where the client has its key from, if that is a right way without a key in a setting."""
        why = self.absent.get("api.api_key")
        return why if why is not None and why.code in LOGINS else None
