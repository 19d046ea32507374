"""JSON with positions: the standard parser tells neither where a key stands nor of duplicates."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NoReturn

from k3check.config.document import Position, dotted, excerpt, position_at
from k3check.config.problems import problem
from k3check.config.quotes import unquoted

if TYPE_CHECKING:
    from k3check.config.document import Path_
    from k3check.config.source import Source

MAX_DEPTH = 32
_BLANK = " \t\n\r"
_NO_TEXT = (
    "expected a value",
    "expected a key in double quotes",
    "keys stand in straight double quotes",
    "texts stand in straight double quotes",
)
# JSON's own words, and those of other languages, which are told of otherwise.
_WORD = re.compile(r"(?:true|false|null|True|False|None|NaN|Infinity|undefined)\b")
_TYPOGRAPHIC = "“”„‟‘’«»"
# Words of other languages that are often written for JSON's own.
_WORDS = {
    "True": "true",
    "False": "false",
    "None": "null",
    "NaN": "a finite number",
    "Infinity": "a finite number",
    "-Infinity": "a finite number",
    "undefined": "null",
}


def parse(source: Source) -> tuple[Any, dict[Path_, Position]]:
    """Parse a JSON text.

    Returns:
        The value, and the position of every key and list item by key path.

    Raises:
        UsageError: a syntax error, a comment, a trailing comma, a duplicate key, or nesting
            deeper than ``MAX_DEPTH``.
    """
    parser = _Parser(source)
    value = parser.value(())
    parser.blanks()
    if parser.at < len(source.text):
        parser.fail("something follows the end of the JSON value")
    return value, parser.positions


_TOKEN = re.compile(
    r"\"(?:[^\"\\\n]|\\.)*\"|(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<comma>,)(?=(?:\s|//[^\n]*|/\*.*?\*/)*[}\]])",
    re.DOTALL,
)


def without_comments(text: str) -> str:
    """JSON with comments and commas before an end, with blanks in their place: places stay."""

    def blank(match: re.Match[str]) -> str:
        if match["comment"] is None and match["comma"] is None:
            return match[0]
        return "".join(char if char == "\n" else " " for char in match[0])

    return _TOKEN.sub(blank, text)


_JSON5_TOKEN = re.compile(
    r"\"(?:[^\"\\\n]|\\.)*\""
    r"|'(?P<single>(?:[^'\\\n]|\\.)*)'"
    r"|(?P<comment>//[^\n]*|/\*.*?\*/)"
    r"|(?P<comma>,)(?=(?:\s|//[^\n]*|/\*.*?\*/)*[}\]])"
    r"|(?P<name>[A-Za-z_$][\w$]*)(?=\s*:)",
    re.DOTALL,
)


def json5_as_json(text: str) -> str:
    """JSON5 as JSON: keys get quotes, single ones become double, comments go; lines stay."""

    def changed(match: re.Match[str]) -> str:
        if match["name"] is not None:
            return f'"{match["name"]}"'
        if match["single"] is not None:
            inner = match["single"].replace("\\'", "'")
            return '"' + re.sub(r'(?<!\\)"', r"\"", inner) + '"'
        if match["comment"] is None and match["comma"] is None:
            return match[0]
        return "".join(char if char == "\n" else " " for char in match[0])

    return _JSON5_TOKEN.sub(changed, text)


class _Parser:
    def __init__(self, source: Source) -> None:
        self.text = source.text
        self.file = source.file
        self.at = 0
        self.positions: dict[Path_, Position] = {}
        self._scalar = json.JSONDecoder()
        self._line, self._line_start, self._counted = 1, 0, 0

    def position(self, offset: int) -> Position:
        """As position_at, in linear time over a whole text: offsets only grow here."""
        newlines = self.text.count("\n", self._counted, offset)
        if newlines:
            self._line += newlines
            self._line_start = self.text.rfind("\n", self._counted, offset) + 1
        self._counted = offset
        return Position(self._line, offset - self._line_start + 1)

    def fail(
        self, reason: str, offset: int | None = None, code: str = "K3C-012", **values: Any
    ) -> NoReturn:
        offset = self.at if offset is None else offset
        if reason in _NO_TEXT:
            line = self.text[offset:].partition("\n")[0]
            bare = unquoted(line.rstrip(" \t,}]"))
            if bare is not None and not _WORD.match(line):
                head = self.text[:offset].rpartition("\n")[2].rstrip()
                key = head.removesuffix(":").rstrip().rpartition('"')[0].rpartition('"')[2]
                reason, values = bare.reason, {"fix": bare.fix(key, ": "), **values}
        place = position_at(self.text, self.at if offset is None else offset)
        raise problem(
            code,
            where=f"{self.file}:{place.line}:{place.column}",
            detail=excerpt(self.text, place),
            reason=reason,
            **values,
        )

    def blanks(self) -> None:
        text, at = self.text, self.at
        while at < len(text) and text[at] in _BLANK:
            at += 1
        self.at = at
        if text.startswith(("//", "/*", "#"), at):
            self.fail("a comment", code="K3C-013")

    def peek(self) -> str:
        self.blanks()
        return self.text[self.at : self.at + 1]

    def value(self, path: Path_) -> Any:
        start = self.peek()
        if start in ("{", "[") and len(path) >= MAX_DEPTH:
            self.fail("too deep", code="K3C-016", limit=MAX_DEPTH)
        if start == "{":
            return self.table(path)
        if start == "[":
            return self.list(path)
        return self.scalar(start)

    def table(self, path: Path_) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self.at += 1
        if self.peek() == "}":
            self.at += 1
            return found
        while True:
            start = self.at
            if self.peek() != '"':
                self.fail(self.not_a_key(self.peek()))
            start = self.at
            key = self.scalar('"')
            inner = (*path, key)
            if key in found:
                first = self.positions[inner].line
                self.fail("twice", start, code="K3C-015", key=dotted(inner), first=first)
            self.positions[inner] = self.position(start)
            if self.peek() != ":":
                self.fail("expected ':' after a key")
            self.at += 1
            found[key] = self.value(inner)
            if not self.more("}"):
                return found

    def list(self, path: Path_) -> list[Any]:
        found: list[Any] = []
        self.at += 1
        if self.peek() == "]":
            self.at += 1
            return found
        while True:
            self.blanks()
            inner = (*path, len(found))
            self.positions[inner] = self.position(self.at)
            found.append(self.value(inner))
            if not self.more("]"):
                return found

    def more(self, end: str) -> bool:
        """Step over a comma (True) or over the end of the table or list (False)."""
        sign = self.peek()
        if sign == end:
            self.at += 1
            return False
        if sign != ",":
            self.fail(f"expected ',' or '{end}'" if sign else f"the text ends before '{end}'")
        comma = self.at
        self.at += 1
        if self.peek() in ("}", "]"):
            self.fail("a comma before the end", comma, code="K3C-014", end=self.peek())
        return True

    def not_a_key(self, start: str) -> str:
        if not start:
            return "the text ends inside a table"
        if start in _TYPOGRAPHIC or start == "'":
            return "keys stand in straight double quotes"
        return "expected a key in double quotes"

    def scalar(self, start: str) -> Any:
        if not start:
            self.fail("the text ends where a value is expected")
        if start in _TYPOGRAPHIC or start == "'":
            self.fail("texts stand in straight double quotes")
        for word, instead in _WORDS.items():
            if self.text.startswith(word, self.at):
                self.fail(f"{word} is not JSON; write {instead}")
        try:
            value, self.at = self._scalar.raw_decode(self.text, self.at)
        except json.JSONDecodeError as error:
            place = max(self.at, error.pos)
            self.fail(_reason(error.msg), min(place, len(self.text)))
        except ValueError:
            # Python refuses to convert integers of thousands of digits.
            self.fail("too large", code="K3C-018")
        return value


def _reason(message: str) -> str:
    """The standard parser's message in the manner of ours."""
    if message.startswith("Expecting value"):
        return "expected a value"
    if message.startswith("Unterminated string"):
        return "the closing double quote is missing"
    if message.startswith("Invalid control character"):
        return "a line break or control character stands inside a text"
    return f"{message[:1].lower()}{message[1:]}".removesuffix(" at")
