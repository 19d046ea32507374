"""TOML with positions: tomllib reads the values, a scanner of our own finds the keys' places."""

from __future__ import annotations

import contextlib
import re
import tomllib
from typing import TYPE_CHECKING, Any

from k3check.config.document import Position, dotted, excerpt
from k3check.config.problems import problem
from k3check.config.quotes import unquoted

if TYPE_CHECKING:
    from k3check.config.document import Path_
    from k3check.config.source import Source

MAX_DEPTH = 32
_PLACE = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")
# How tomllib begins when the syntax is right and a key or a table is there already.
_WRITTEN_TWICE = ("Cannot ", "Duplicate ")
_BARE = re.compile(r"[A-Za-z0-9_\-]+")
_SCALAR = re.compile(r"[^,\]}\n#]*")
_BASIC = re.compile(r'"(?:[^"\\]|\\.)*"')
_LITERAL = re.compile(r"'[^']*'")
_LONG_BASIC = re.compile(r'"""(?:[^"\\]|\\.|"(?!""))*"{3,5}', re.DOTALL)
_LONG_LITERAL = re.compile(r"'''(?:[^']|'(?!''))*'{3,5}")
_BLANK = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")


def parse(source: Source) -> tuple[dict[str, Any], dict[Path_, Position]]:
    """Parse a TOML text.

    Returns:
        The data, and the position of every key and list item by key path.

    Raises:
        UsageError: a syntax error, a key that is written twice, or nesting deeper than
            ``MAX_DEPTH``.
    """
    try:
        data = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        raise _refused(source, str(error)) from None
    except RecursionError:
        raise problem("K3C-016", where=source.file, limit=MAX_DEPTH) from None
    except ValueError:
        # Python refuses to convert integers of thousands of digits.
        raise problem("K3C-018", where=source.file) from None
    if too_deep(data):
        raise problem("K3C-016", where=source.file, limit=MAX_DEPTH)
    return data, _Scanner(source.text).scan()


def too_deep(data: Any) -> bool:
    """Whether data nest deeper than ``MAX_DEPTH``; needs no stack itself."""
    level: list[Any] = [data]
    for _ in range(MAX_DEPTH + 1):
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                below += value.values()
            elif isinstance(value, list):
                below += value
        if not below:
            return False
        level = below
    return any(isinstance(value, dict | list) for value in level)


def _refused(source: Source, message: str) -> Exception:
    """What tomllib refuses: a key that is written twice, or a syntax error."""
    place = _PLACE.search(message)
    last = int(place[1]) if place is not None and place[1] else source.text.count("\n") + 1
    twice = _twice(source.text, last) if message.startswith(_WRITTEN_TWICE) else None
    if twice is None:
        return _syntax_error(source, message)
    path, first, second = twice
    return problem(
        "K3C-029",
        where=f"{source.file}:{second.line}:{second.column}  {dotted(path)}",
        detail=excerpt(source.text, second),
        key=dotted(path),
        first=first.line,
    )


def _twice(text: str, last: int) -> tuple[Path_, Position, Position] | None:
    """The first key that is written twice, in the lines up to the one that tomllib stopped in."""
    scanner = _Scanner("\n".join([*text.split("\n")[:last], ""]))
    # The line's end may be no TOML any more; what is found by then stays found.
    with contextlib.suppress(IndexError, ValueError, RecursionError):
        scanner.scan()
    return scanner.twice


def _syntax_error(source: Source, message: str) -> Exception:
    place = _PLACE.search(message)
    reason = _PLACE.sub("", message)
    reason = reason[:1].lower() + reason[1:]
    if place is None or place[1] is None:
        lines = source.text.rstrip("\n").split("\n")
        position = Position(len(lines), len(lines[-1]) + 1)
        reason += ", at the end of the file"
    else:
        position = Position(int(place[1]), int(place[2]))
    line = source.text.split("\n")[position.line - 1]
    invalid = reason.startswith("invalid value")
    bare = unquoted(line[position.column - 1 :]) if invalid else None
    if bare is not None:
        reason, fix = bare.reason, bare.fix(line[: position.column - 1].rstrip(" \t="))
    else:
        fix = None
    return problem(
        "K3C-011",
        fix=fix,
        where=f"{source.file}:{position.line}:{position.column}",
        detail=excerpt(source.text, position),
        reason=reason,
    )


class _Scanner:
    """Finds keys in a text that tomllib has accepted; so nothing here has to judge syntax."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.positions: dict[Path_, Position] = {}
        self.twice: tuple[Path_, Position, Position] | None = None
        self._written: set[Path_] = set()
        self._lengths: dict[Path_, int] = {}
        self._line, self._line_start, self._counted = 1, 0, 0

    def scan(self) -> dict[Path_, Position]:
        table: Path_ = ()
        while True:
            self.skip(_BLANK)
            start = self.at
            if start >= len(self.text):
                return self.positions
            if self.text.startswith("[[", start):
                self.at += 2
                parts = self.key()
                self.at += 2
                outer = self.resolve(parts[:-1])
                inner = (*outer, parts[-1])
                index = self._lengths.get(inner, 0)
                self._lengths[inner] = index + 1
                self.note((), (*inner, index), start)
                table = (*inner, index)
            elif self.text[start] == "[":
                self.at += 1
                parts = self.key()
                self.at += 1
                table = self.resolve(parts)
                self.note((), table, start)
            else:
                self.pair(table)

    def skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        if match is None:
            return ""
        self.at = match.end()
        return match[0]

    def note(self, base: Path_, path: Path_, offset: int) -> None:
        """Record a key and the tables that it creates on its way."""
        newlines = self.text.count("\n", self._counted, offset)
        if newlines:
            self._line += newlines
            self._line_start = self.text.rfind("\n", self._counted, offset) + 1
        self._counted = offset
        place = Position(self._line, offset - self._line_start + 1)
        if path in self._written and self.twice is None:
            self.twice = (path, self.positions[path], place)
        self._written.add(path)
        for end in range(len(base) + 1, len(path) + 1):
            self.positions.setdefault(path[:end], place)

    def resolve(self, parts: Path_) -> Path_:
        """A header's key path: an array of tables stands for its last element."""
        path: Path_ = ()
        for part in parts:
            path = (*path, part)
            if path in self._lengths:
                path = (*path, self._lengths[path] - 1)
        return path

    def key(self) -> tuple[str, ...]:
        parts: list[str] = []
        while True:
            self.skip(_SPACE)
            quote = self.text[self.at]
            if quote == '"':
                # tomllib itself undoes the escapes.
                (part,) = tomllib.loads(f"{self.skip(_BASIC)} = 0")
            elif quote == "'":
                part = self.skip(_LITERAL)[1:-1]
            else:
                part = self.skip(_BARE)
            parts.append(part)
            self.skip(_SPACE)
            if self.text[self.at] != ".":
                return tuple(parts)
            self.at += 1

    def pair(self, table: Path_) -> None:
        start = self.at
        path = (*table, *self.key())
        self.note(table, path, start)
        self.at += 1  # the equals sign
        self.skip(_SPACE)
        self.value(path)

    def value(self, path: Path_) -> None:
        text, at = self.text, self.at
        if text.startswith('"""', at):
            self.skip(_LONG_BASIC)
        elif text.startswith("'''", at):
            self.skip(_LONG_LITERAL)
        elif text[at] == '"':
            self.skip(_BASIC)
        elif text[at] == "'":
            self.skip(_LITERAL)
        elif text[at] in "[{":
            self.items(path, is_list=text[at] == "[")
        else:
            self.skip(_SCALAR)

    def items(self, path: Path_, *, is_list: bool) -> None:
        end = "]" if is_list else "}"
        self.at += 1
        index = 0
        while True:
            self.skip(_BLANK)
            if self.text[self.at] == end:
                self.at += 1
                return
            if is_list:
                self.note(path, (*path, index), self.at)
                self.value((*path, index))
                index += 1
            else:
                self.pair(path)
            self.skip(_BLANK)
            if self.text[self.at] == ",":
                self.at += 1
