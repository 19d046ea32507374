"""Our own dialect under ``[tool.k3check]`` in a ``pyproject.toml``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.config.dialects.base import Dialect, Reading, read_tree, table
from k3check.config.dialects.ours import tree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Document

ROOT = ("tool", "k3check")


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data have the table ``[tool.k3check]``, even an empty one."""
    return isinstance(table(data, "tool").get("k3check"), dict)


def read(document: Document) -> Reading:
    """The keys under ``[tool.k3check]``."""
    return read_tree(document, tree(), ROOT)


DIALECT = Dialect(
    name="pyproject",
    title="a pyproject.toml",
    looks_for="a table [tool.k3check]",
    recognise=recognise,
    read=read,
    evidence=lambda _data: ("[tool.k3check]",),
)
