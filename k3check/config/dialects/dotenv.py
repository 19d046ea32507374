"""A ``.env`` file with the SDKs' variables.

Libraries that read such files leave a variable alone that the shell has already, so the shell wins.
Only variables that the file names are looked up there. One family is read: a key must not go to
another company's address.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from dotenv.parser import parse_stream

from k3check.config.client import Client, sdk
from k3check.config.dialects.base import Dialect, Reading, Value
from k3check.config.document import Document, Position, excerpt
from k3check.config.problems import problem
from k3check.config.references import BARE, BRACED
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Path_
    from k3check.config.source import Source


@dataclass(frozen=True)
class Family:
    """The variables of one SDK; the later of several names of one value wins.

    Attributes:
        name: as messages call it.
        bases, keys, models: names, the weaker first.
        client: how the libraries that read these make requests.
        current: the name that replaces the first of ``bases``, which only old tools read.
    """

    name: str
    bases: tuple[str, ...]
    keys: tuple[str, ...]
    models: tuple[str, ...]
    client: Client = sdk("OpenAI's library")  # noqa: RUF009 - frozen
    current: str = ""

    @property
    def wire(self) -> str:
        """The API that they speak."""
        return self.client.wire

    def names(self) -> dict[str, str]:
        """Our key of each variable."""
        return {
            **dict.fromkeys(self.bases, "api.base_url"),
            **dict.fromkeys(self.keys, "api.api_key"),
            **dict.fromkeys(self.models, "model.name"),
        }


# Those that name the product first.
FAMILIES = (
    Family("MOONSHOT_*", ("MOONSHOT_BASE_URL",), ("MOONSHOT_API_KEY",), ("MOONSHOT_MODEL",)),
    Family("KIMI_*", ("KIMI_BASE_URL",), ("KIMI_API_KEY",), ("KIMI_MODEL", "KIMI_MODEL_NAME")),
    Family(
        "OPENAI_*",
        ("OPENAI_API_BASE", "OPENAI_BASE_URL"),
        ("OPENAI_API_KEY",),
        ("OPENAI_MODEL",),
        current="OPENAI_BASE_URL",
    ),
    Family(
        "ANTHROPIC_*",
        ("ANTHROPIC_BASE_URL",),
        ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
        ("ANTHROPIC_MODEL",),
        client=sdk("Anthropic's library", "anthropic"),
    ),
)
OURS = {
    "K3CHECK_BASE_URL": "api.base_url",
    "K3CHECK_API_KEY": "api.api_key",
    "K3CHECK_MODEL": "model.name",
}
_KNOWN = frozenset(name for family in FAMILIES for name in family.names()) | frozenset(OURS)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_BLANKS = re.compile(r"(?m)^[ \t]*(?:export[ \t]+)?[A-Za-z_]\w*(?:[ \t]+=|=[ \t]+\S)", re.ASCII)


def parse(source: Source) -> Document | None:
    """Read a text of assignments, one of them of an SDK's variable, with python-dotenv's parser.

    Raises:
        UsageError: a line of a file that is called ``.env`` is no assignment (K3C-160).
    """
    data: dict[str, Any] = {}
    positions: dict[Path_, Position] = {}
    broken: int | None = None
    for binding in parse_stream(io.StringIO(source.text)):
        line, text = binding.original.line, binding.original.string
        if binding.key is None and not binding.error:
            continue
        # What stands before the assignment in the same piece: empty lines.
        before = len(text) - len(text.lstrip())
        line += text.count("\n", 0, before)
        name = binding.key or ""
        alone = binding.value is None and not _called(source.file)
        if binding.error or alone or not _NAME.fullmatch(name):
            broken = line if broken is None else broken
            continue
        column = text.index(name, before) - text.rfind("\n", 0, before)
        positions[(name,)] = Position(line, column)
        # A name alone is no value; the libraries leave it out.
        data[name] = binding.value or ""
    if not _KNOWN & set(data):
        # Variables of others: told as that, where the name says that they are variables.
        others = data and broken is None and _called(source.file)
        return Document(data, positions, source.file, "env") if others else None
    if broken is not None:
        if not _called(source.file):
            return None
        place = Position(broken, 1)
        raise problem(
            "K3C-160",
            where=f"{source.file}:{broken}",
            detail=excerpt(source.text, place),
            accepted='NAME=value, NAME="value", a comment after #',
        )
    return Document(data, positions, source.file, "env", source.text)


def _called(file: str) -> bool:
    """Whether a file's name says that it is one of variables."""
    name = PurePath(file).name
    return name.startswith(".env") or name.endswith(".env")


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data have one of the variables; only documents of this syntax are asked about."""
    return bool(_KNOWN & set(data))


def read(document: Document) -> Reading:
    """The first family with an address and a key; else the first with anything."""
    data = document.data
    there = [f for f in FAMILIES if any(data.get(name) for name in f.names())]
    whole = [
        f
        for f in there
        if any(data.get(name) for name in f.bases) and any(data.get(name) for name in f.keys)
    ]
    values: list[Value] = []
    notes: list[Message] = []
    client: Client | None = None
    client_at: Path_ = ()
    if there:
        family = (whole or there)[0]
        client = family.client
        values += _of_family(family, data)
        first = next(name for name in family.names() if data.get(name))
        client_at = (first,)
        if family.current and data.get(family.bases[0]) and family.current not in data:
            legacy = {"legacy": family.bases[0], "variable": family.current}
            notes.append(Message("K3L-924", legacy))
        others = [f.name for f in there if f is not family]
        if others:
            told = {"chosen": family.name, "others": ", ".join(others)}
            notes.append(Message("K3C-114", {"where": document.where((first,)), **told}))
    # Ours win, as they do in the shell.
    values += [Value(key, data[n], (n,), rank=9) for n, key in OURS.items() if data.get(n)]
    defines = {name: value for name, value in data.items() if isinstance(value, str)}
    spaced = _BLANKS.search(document.text)
    if spaced is not None:
        line = document.text.count("\n", 0, spaced.start()) + 1
        notes.append(Message("K3C-161", {"where": f"{document.file}:{line}"}))
    return Reading(
        tuple(values),
        notes=tuple(notes),
        defines=defines,
        client=client,
        client_at=client_at,
    )


def _of_family(family: Family, data: Mapping[str, Any]) -> list[Value]:
    values = []
    for rank, (name, key) in enumerate(family.names().items()):
        if data.get(name):
            values.append(Value(key, data[name], (name,), rank=rank))
            values.append(Value(key, name, (), source="above", rank=rank))
            if family.wire == "anthropic" and key == "api.api_key":
                auth = "bearer" if name == "ANTHROPIC_AUTH_TOKEN" else "x-api-key"
                values.append(Value("link.auth", auth, (name,), rank=rank))
    return values


DIALECT = Dialect(
    name="dotenv",
    title="an .env file",
    looks_for="lines NAME=value with OPENAI_, ANTHROPIC_, KIMI_ or MOONSHOT_ variables",
    recognise=recognise,
    read=read,
    evidence=lambda data: sorted(_KNOWN & set(data)),
    parse=parse,
    syntaxes=("env",),
    models=False,
    expands=(BRACED, BARE),
    speaks="chat completions; messages for ANTHROPIC_*",
    clients=tuple(dict.fromkeys(family.client for family in FAMILIES)),
    precedence="the shell's variable of the same name > the file; `OPENAI_BASE_URL` before "
    "`OPENAI_API_BASE`, `ANTHROPIC_AUTH_TOKEN` before `ANTHROPIC_API_KEY`",
)
