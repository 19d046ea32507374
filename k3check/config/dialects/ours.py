"""Our own dialect: the articles' ``config.toml``, ``k3check.toml``, and what ``convert`` writes."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from k3check.config.describe import keys, sections
from k3check.config.dialects.base import (
    Dialect,
    Reading,
    Tree,
    likeness_to,
    read_tree,
    table,
    tree_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Document

# Tables that no other dialect has; [moe], [model], [attention] and [cache] are others' too.
_OWN = (
    "api",
    "kda",
    "flashkda",
    "attn_residuals",
    "mla",
    "validation",
    "serving",
    "client",
    "link",
)


@cache
def tree() -> Tree:
    """Our keys as a tree."""
    return tree_of({key: key for key in keys()})


def _evidence(data: Mapping[str, Any]) -> list[str]:
    names = sections()
    own = [n for n in _OWN if any(key in names[n] for key in table(data, n))]
    # Any operator's name will do: a misspelt one is an error worth naming.
    return [f"[{n}]" for n in (*own, *(["operators"] if table(data, "operators") else []))]


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data have a table of ours, or nothing but tables and keys of ours."""
    if _evidence(data):
        return True
    names = sections()
    return bool(data) and all(
        name in names and isinstance(value, dict) and all(key in names[name] for key in value)
        for name, value in data.items()
    )


def read(document: Document) -> Reading:
    """Our own keys as they stand."""
    return read_tree(document, tree())


DIALECT = Dialect(
    name="k3check",
    title="k3check's own config.toml",
    looks_for="tables [api], [model], [kda], [flashkda], [moe], [operators.NAME] ...",
    recognise=recognise,
    read=read,
    evidence=_evidence,
    likeness=lambda data: likeness_to(tree(), data),
)
