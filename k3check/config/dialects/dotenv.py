"""A ``.env`` file with the SDKs' variables.

Libraries that read such files leave a variable alone that the shell has already, so the shell wins.
Only variables that the file names are looked up there. One family is read: a key must not go to
another company's address.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from k3check.config.dialects.base import Dialect, Reading, Value
from k3check.config.document import Document, Position
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
        wire: the API that it speaks.
        appends: what is appended to the base as it stands.
        current: the name that replaces the first of ``bases``, which only old tools read.
    """

    name: str
    bases: tuple[str, ...]
    keys: tuple[str, ...]
    models: tuple[str, ...]
    wire: str = "openai"
    appends: str = "/chat/completions"
    current: str = ""

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
        wire="anthropic",
        appends="",
    ),
)
OURS = {
    "K3CHECK_BASE_URL": "api.base_url",
    "K3CHECK_API_KEY": "api.api_key",
    "K3CHECK_MODEL": "model.name",
}
_KNOWN = frozenset(name for family in FAMILIES for name in family.names()) | frozenset(OURS)
_LINE = re.compile(
    r"[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_]\w*)[ \t]*=[ \t]*"
    r"(?:\"(?P<double>(?:[^\"\\]|\\.)*)\"|'(?P<single>[^']*)'|(?P<bare>[^\n\"'][^\n]*)?)"
    r"[ \t]*(?:#[^\n]*)?(?:\n|\Z)",
    re.DOTALL,
)
_BLANK = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\n|\Z)")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def parse(source: Source) -> Document | None:
    """Read a text whose every line is an assignment or blank, one of them of an SDK's variable."""
    text = source.text
    data: dict[str, Any] = {}
    positions: dict[Path_, Position] = {}
    at, line = 0, 1
    while at < len(text):
        match = _BLANK.match(text, at) or _LINE.match(text, at)
        if match is None:
            return None
        if "name" in match.groupdict():
            name = match["name"]
            positions[(name,)] = Position(line, match.start("name") - at + 1)
            data[name] = _value(match)
        line += text.count("\n", at, match.end())
        at = match.end()
    if not _KNOWN & set(data):
        return None
    return Document(data, positions, source.file, "env")


def _value(match: re.Match[str]) -> str:
    if match["double"] is not None:
        return _ESCAPE.sub(lambda m: _ESCAPES.get(m[1], m[1]), match["double"])
    if match["single"] is not None:
        # As python-dotenv reads it, whose references are expanded inside these quotes too.
        return match["single"]
    bare = match["bare"] or ""
    return re.split(r"\s#", bare, maxsplit=1)[0].strip()


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
    appends = ""
    if there:
        family = (whole or there)[0]
        appends = family.appends
        values += _of_family(family, data)
        first = next(name for name in family.names() if data.get(name))
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
    return Reading(tuple(values), notes=tuple(notes), defines=defines, appends=appends)


def _of_family(family: Family, data: Mapping[str, Any]) -> list[Value]:
    values = []
    for rank, (name, key) in enumerate(family.names().items()):
        if data.get(name):
            values.append(Value(key, data[name], (name,), rank=rank))
            values.append(Value(key, name, (), source="above", rank=rank))
            if family.wire == "anthropic" and key == "api.api_key":
                auth = "bearer" if name == "ANTHROPIC_AUTH_TOKEN" else "x-api-key"
                values.append(Value("link.auth", auth, (name,), rank=rank))
    first = next(name for name in family.names() if data.get(name))
    values.append(Value("link.protocol", family.wire, (first,)))
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
    expands=(BRACED, BARE),
    speaks="chat completions; messages for ANTHROPIC_*",
    precedence="the shell's variable of the same name > the file; `OPENAI_BASE_URL` before "
    "`OPENAI_API_BASE`, `ANTHROPIC_AUTH_TOKEN` before `ANTHROPIC_API_KEY`",
)
