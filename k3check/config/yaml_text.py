"""YAML with positions, for the clients that use it; only where PyYAML is installed.

k3check does not depend on PyYAML: two clients' files alone are YAML. Where it is missing, such a
file is refused with the command that installs it.
"""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING, Any, NoReturn

from k3check.config.document import Position, dotted, excerpt
from k3check.config.problems import problem

if TYPE_CHECKING:
    from k3check.config.document import Path_
    from k3check.config.source import Source

MAX_DEPTH = 32
# Aliases let a few lines stand for millions of values.
MAX_NODES = 20_000
NAMES = (".yaml", ".yml")
_START = re.compile(r"(?:---\s*$|[A-Za-z_][\w\-]*:(?:\s|$))")
_TAG = "tag:yaml.org,2002:"
# Messages quote the text; what they quote may be a key.
_QUOTED = re.compile(r"'[^']{2,}'|\"[^\"]{2,}\"")


def looks_like(source: Source) -> bool:
    """Whether the first line that is no comment starts a YAML mapping or document."""
    for line in source.text.split("\n"):
        if line.strip() and not line.lstrip().startswith("#"):
            return _START.match(line) is not None
    return False


def parse(source: Source) -> tuple[Any, dict[Path_, Position]]:
    """Parse a YAML text.

    Returns:
        The data, and the position of every key and list item by key path.

    Raises:
        UsageError: PyYAML is missing, a syntax error, several documents, a duplicate key, a tag of
            the file's own, or nesting deeper than ``MAX_DEPTH``.
    """
    try:
        yaml = importlib.import_module("yaml")
    except ImportError:
        raise problem("K3C-120", where=source.file) from None
    try:
        node = yaml.compose(source.text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = _QUOTED.sub("a text", str(error.problem or error.context or "not YAML"))
        _fail(source, mark, reason)
    except yaml.YAMLError:
        raise problem("K3C-121", where=source.file, reason="not YAML") from None
    except RecursionError:
        raise problem("K3C-016", where=source.file, limit=MAX_DEPTH) from None
    if node is None:
        raise problem("K3C-007", where=source.file, found="comments only")
    reader = _Reader(source, yaml.SafeLoader(""))
    return reader.value(node, ()), reader.positions


def _fail(source: Source, mark: Any, reason: str) -> NoReturn:
    place = Position(mark.line + 1, mark.column + 1) if mark is not None else Position(1, 1)
    raise problem(
        "K3C-121",
        where=f"{source.file}:{place.line}:{place.column}",
        detail=excerpt(source.text, place),
        reason=reason,
    )


class _Reader:
    """Turns PyYAML's nodes into plain data; nodes know their places, finished data do not."""

    def __init__(self, source: Source, scalars: Any) -> None:
        self.source = source
        self.positions: dict[Path_, Position] = {}
        self._scalars = scalars
        self._nodes = 0

    def value(self, node: Any, path: Path_) -> Any:
        self._nodes += 1
        if len(path) >= MAX_DEPTH:
            raise problem("K3C-016", where=self.source.file, limit=MAX_DEPTH)
        if self._nodes > MAX_NODES:
            _fail(self.source, node.start_mark, f"more than {MAX_NODES} values with its aliases")
        if node.id == "mapping":
            return self.mapping(node, path)
        if node.id == "sequence":
            found = []
            for index, item in enumerate(node.value):
                self.note(item, (*path, index))
                found.append(self.value(item, (*path, index)))
            return found
        return self.scalar(node)

    def note(self, node: Any, path: Path_) -> None:
        self.positions.setdefault(
            path, Position(node.start_mark.line + 1, node.start_mark.column + 1)
        )

    def mapping(self, node: Any, path: Path_) -> dict[str, Any]:
        found: dict[str, Any] = {}
        own: dict[str, Position] = {}
        for key, value in node.value:
            if key.tag == f"{_TAG}merge":
                merged = self.value(value, path)
                for more in merged if isinstance(merged, list) else [merged]:
                    if isinstance(more, dict):
                        found = {**more, **found}
                continue
            if key.id != "scalar":
                _fail(self.source, key.start_mark, "a key that is no text")
            inner = (*path, str(key.value))
            place = Position(key.start_mark.line + 1, key.start_mark.column + 1)
            if str(key.value) in own:
                raise problem(
                    "K3C-015",
                    where=f"{self.source.file}:{place.line}:{place.column}",
                    key=dotted(inner),
                    first=own[str(key.value)].line,
                )
            own[str(key.value)] = self.positions[inner] = place
            found[str(key.value)] = self.value(value, inner)
        return found

    def scalar(self, node: Any) -> Any:
        kind = node.tag.removeprefix(_TAG)
        if kind not in ("null", "bool", "int", "float"):
            if not node.tag.startswith(_TAG):
                _fail(self.source, node.start_mark, "a tag of the file's own")
            # Dates and the like are texts to every client here.
            return node.value
        try:
            return self._scalars.construct_object(node)
        except (ValueError, KeyError):
            return node.value
