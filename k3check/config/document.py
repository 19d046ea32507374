"""A parsed file: its data, and where each key stands."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from k3check.masking.settings import hide_opaque, nearly_secret_key

if TYPE_CHECKING:
    from collections.abc import Mapping

Path_: TypeAlias = "tuple[str | int, ...]"

_BARE = re.compile(r"[A-Za-z0-9_\-]+")
_TOML_KEY = re.compile(r"\s*[\w.\"'\- ]+?\s*=(?!=)")
_JSON_KEY = re.compile(r"\s*[{,]?\s*\"[^\"]*\"\s*:")
_HEADER = re.compile(r"\s*\[[\w.\"'\- \[\]]+\]\s*(#.*)?$")
_WORD = re.compile(r"[\w\-]+")
_MULTILINE = re.compile(r"\"\"\"|'''")
_WIDTH = 68


class Position(NamedTuple):
    """A place in a text, both counted from 1."""

    line: int
    column: int


@dataclass(frozen=True)
class Document:
    """A parsed file.

    Attributes:
        data: the parsed content; it holds secrets, so it is not in the repr.
        positions: where each key and list item stands, by key path.
        file: the file's name as shown to the user.
        syntax: ``TOML``, ``JSON``, ``YAML``, or a dialect's own.
        text: the file's own text, where a dialect asks for it.
    """

    data: Mapping[str, Any] = field(repr=False)
    positions: Mapping[Path_, Position] = field(repr=False)
    file: str = ""
    syntax: str = "TOML"
    text: str = field(default="", repr=False)

    def line(self, path: Path_) -> int | None:
        """The line of a key path, or of the nearest table around it."""
        for end in range(len(path), 0, -1):
            position = self.positions.get(path[:end])
            if position is not None:
                return position.line
        return None

    def where(self, path: Path_) -> str:
        """``config.toml:12  kda.d_k``."""
        line = self.line(path)
        place = self.file if line is None else f"{self.file}:{line}"
        return f"{place}  {dotted(path)}" if path else place


def dotted(path: Path_) -> str:
    """A key path as it is written: ``a."b.c"[0].d``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
            continue
        name = part if _BARE.fullmatch(part) else '"' + part.replace('"', '\\"') + '"'
        text += f".{name}" if text else name
    return text


_PART = re.compile(r"\.?(?:\[(\d+)\]|\"((?:[^\"\\]|\\.)*)\"|([^.\[\"]+))")


def parts_of(text: str) -> Path_:
    """The key path that :func:`dotted` wrote; empty if it is none."""
    parts: list[str | int] = []
    at = 0
    while at < len(text):
        match = _PART.match(text, at)
        if match is None:
            return ()
        number, quoted, bare = match.groups()
        parts.append(
            int(number) if number else bare if quoted is None else quoted.replace('\\"', '"')
        )
        at = match.end()
    return tuple(parts)


def position_at(text: str, offset: int) -> Position:
    """Line and column of an offset."""
    start = text.rfind("\n", 0, offset) + 1
    return Position(text.count("\n", 0, offset) + 1, offset - start + 1)


def excerpt(text: str, position: Position) -> str:
    """The line of an error with a caret under the column, without any secret.

    A syntax error leaves nothing parsed to compare with, so whatever follows a word that names a
    secret is blanked, up to the next line that starts a key or a table of its own.
    """
    lines = text.split("\n")
    if position.line > len(lines):
        return ""
    line = lines[position.line - 1].expandtabs(1)
    cut = _secret_from(lines, position.line - 1)
    if cut is not None:
        line = f"{line[:cut]} (not shown)" if cut else "(not shown)"
    line = hide_opaque(line)
    column = min(position.column - 1, len(line))
    start = max(0, column - _WIDTH // 2) if len(line) > _WIDTH else 0
    number = str(position.line)
    blank = " " * len(number)
    return f"{number} | {line[start : start + _WIDTH]}\n{blank} | {' ' * (column - start)}^"


def _secret_from(lines: list[str], wanted: int) -> int | None:
    """The column from which a line may show a secret; None if it shows none."""
    hidden = quoted = False
    cut: int | None = None
    for number in range(wanted + 1):
        line = lines[number]
        starts_key = any(p.match(line) for p in (_TOML_KEY, _JSON_KEY, _HEADER))
        if starts_key and not quoted:
            hidden = False
        cut = 0 if hidden else None
        if cut is None:
            for word in _WORD.finditer(line):
                if nearly_secret_key(word[0]):
                    hidden, cut = True, word.end()
                    break
        if hidden and len(_MULTILINE.findall(line)) % 2:
            quoted = not quoted
    return cut
