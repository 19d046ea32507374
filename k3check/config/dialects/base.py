"""What a dialect module defines, and the table-driven reader that most of them need.

A dialect module holds one ``DIALECT``. Most are a table from the file's keys to ours::

    DIALECT = table_dialect(
        name="client-json",
        title="a plain JSON client's file",
        fields={"base_url": "api.base_url", "extra_body": "client.extra_body"},
        recognise=lambda data: "base_url" in data,
        looks_for="base_url, api_key and model at the top",
    )

A key that the table does not have is an error with a did-you-mean, unless the dialect is
``open_`` (the file of a foreign client, where most keys are none of our business) or lists it in
``ignored``. Anything less regular defines its own ``read``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from k3check.config.problems import meant, nearest, problem, type_of
from k3check.config.reading import Found, Layer, Reading, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from k3check.config.client import Client
    from k3check.config.document import Document, Path_
    from k3check.config.source import Source
    from k3check.errors import UsageError
    from k3check.model import Message

__all__ = [
    "Dialect", "Found", "Layer", "Reading", "Tree", "Value", "likeness_to", "read_tree", "table",
    "table_dialect", "tree_of",
]  # fmt: skip

# The keys of a file as a tree: a leaf is our dotted key, None is a key that is not read.
Tree: TypeAlias = "dict[str, Tree | str | None]"


def _no_layers(_path: Path, _document: Document, _env: Mapping[str, str]) -> tuple[Layer, ...]:
    return ()


@dataclass(frozen=True)
class Dialect:
    """One way to write a configuration.

    Attributes:
        name: its name in reports, e.g. ``claude-code``.
        title: with an article, for sentences.
        looks_for: what makes a file recognisable, for the error that nothing was recognised.
        recognise: whether data are written in this dialect.
        read: our keys and their values.
        evidence: the keys that ``recognise`` rests on, for the error that two dialects match.
        likeness: how near unrecognised data come, 0 for not at all.
        parse: reads a text with a syntax of its own (``.env``), before any other is tried; None if
            it is not this one's.
        syntaxes: what documents it is written in.
        fits: a last condition, for the same keys that mean another thing in another syntax.
        comments: whether its JSON may hold comments and commas before an end.
        json5: whether, besides, keys need no quotes and texts may stand in single ones.
        closed: whether every key must be one of its own; then a file most of whose keys are not
            is another tool's.
        expands: the forms of references that its client resolves (see
            :mod:`k3check.config.references`).
        layers: the files that its client reads together with this one, itself included, the
            weakest first; empty for the file alone.
        resolve: a last change of all layers' values together: aliases that the client follows; and
            why a value is missing then, by our key.
        review: notes on all layers' values together.
        models: whether its files say which model its client asks for.
        speaks: the API that its client speaks, for the documents.
        clients: the ways in which its client makes requests, for the documents; none for k3check's
            own way.
        precedence: which of its sources wins, for the documents.
    """

    name: str
    title: str
    looks_for: str
    recognise: Callable[[Mapping[str, Any]], bool]
    read: Callable[[Document], Reading]
    evidence: Callable[[Mapping[str, Any]], Sequence[str]] = lambda data: tuple(data)[:4]
    likeness: Callable[[Mapping[str, Any]], float] = lambda _data: 0.0
    parse: Callable[[Source], Document | None] | None = None
    syntaxes: tuple[str, ...] = ("TOML", "JSON")
    fits: Callable[[Document], bool] = lambda _document: True
    comments: bool = False
    json5: bool = False
    closed: bool = False
    expands: tuple[str, ...] = ()
    layers: Callable[[Path, Document, Mapping[str, str]], tuple[Layer, ...]] = _no_layers
    resolve: Callable[[list[Found]], tuple[list[Found], Mapping[str, Message]]] = lambda found: (
        found,
        {},
    )
    review: Callable[[Sequence[Found]], tuple[Message, ...]] = lambda _found: ()
    models: bool = True
    speaks: str = "chat completions"
    clients: tuple[Client, ...] = ()
    precedence: str = "the file alone"


def tree_of(fields: Mapping[str, str | None]) -> Tree:
    """A table of dotted file keys as a tree."""
    tree: Tree = {}
    for source, target in fields.items():
        *parents, last = source.split(".")
        node = tree
        for part in parents:
            child = node.setdefault(part, {})
            if not isinstance(child, dict):
                raise TypeError(f"{source}: {part} is a value and a table")
            node = child
        node[last] = target
    return tree


def read_tree(document: Document, tree: Tree, root: Path_ = (), *, open_: bool = False) -> Reading:
    """Read a document by a tree of its keys.

    Args:
        document: the parsed file.
        tree: the keys that the dialect has.
        root: the table of the document to start from; it exists and is a table.
        open_: whether unknown keys are silently left alone.
    """
    values: list[Value] = []
    tables: dict[str, Path_] = {}
    problems: list[UsageError] = []

    def visit(data: Mapping[str, Any], node: Tree, path: Path_) -> None:
        for name, value in data.items():
            here = (*path, name)
            if name not in node:
                if not open_:
                    problems.append(_unknown(document, tree, node, here))
                continue
            target = node[name]
            if isinstance(target, str):
                # JSON's null: the key is written, but nothing is set.
                if value is not None:
                    values.append(Value(target, value, here))
            elif target is not None:
                if isinstance(value, dict):
                    tables[".".join(str(part) for part in here[len(root) :])] = here
                    visit(value, target, here)
                elif value is not None:
                    problems.append(_not_a_table(document, here, value))

    start: Any = document.data
    for part in root:
        start = start[part]
    visit(start, tree, root)
    return Reading(tuple(values), tables, tuple(problems))


def _unknown(document: Document, tree: Tree, node: Tree, path: Path_) -> UsageError:
    name = str(path[-1])
    close = nearest(name, node)
    if close is None:
        # The right key in the wrong table.
        close = next((key for key in _leaves(tree) if key.rsplit(".", 1)[-1] == name), None)
    return problem(
        "K3C-021",
        where=document.where(path),
        accepted=_listing(node),
        key=name,
        fix=meant(close) if close else None,
    )


def _listing(node: Tree) -> str:
    names = list(node)
    return ", ".join(names[:16]) + (f" and {len(names) - 16} more" if len(names) > 16 else "")


def _leaves(tree: Tree, prefix: str = "") -> list[str]:
    found: list[str] = []
    for name, child in tree.items():
        found += _leaves(child, f"{prefix}{name}.") if isinstance(child, dict) else [prefix + name]
    return found


def _not_a_table(document: Document, path: Path_, value: object) -> UsageError:
    return problem(
        "K3C-022",
        where=document.where(path),
        # Not the value: `api = "..."` may be somebody's key.
        found=type_of(value),
        accepted="a table",
        fix="Write it as a table with keys of its own.",
    )


def likeness_to(tree: Tree, data: Mapping[str, Any]) -> float:
    """How many top keys of some data are those of a tree, or nearly."""
    score = 0.0
    for name, value in data.items():
        if name in tree:
            score += 1.0
            continue
        close = nearest(name, tree)
        inside = tree[close] if close is not None else None
        if isinstance(inside, dict) and isinstance(value, dict):
            # A misspelt table holds keys of that table; another tool's has keys of its own.
            score += 0.5 * likeness_to(inside, value)
        elif close is not None and not isinstance(inside, dict) and _single(value):
            score += 0.5
    return score / (len(data) or 1)


def _single(value: object) -> bool:
    return not isinstance(value, dict | list)


def table_dialect(
    *,
    name: str,
    title: str,
    looks_for: str,
    fields: Mapping[str, str | None],
    recognise: Callable[[Mapping[str, Any]], bool],
    open_: bool = False,
    finish: Callable[[Document, Reading], Reading] | None = None,
    **more: Any,
) -> Dialect:
    """A dialect that is a table from its keys to ours.

    Args:
        name, title, looks_for, recognise: as in :class:`Dialect`.
        fields: the file's dotted keys to ours; None for a key that is allowed and not read.
        open_: whether other keys are left alone, as in a foreign client's file.
        finish: a last step that changes units or adds notes.
        **more: further fields of :class:`Dialect`.
    """
    tree = tree_of(fields)

    def read(document: Document) -> Reading:
        reading = read_tree(document, tree, open_=open_)
        return finish(document, reading) if finish else reading

    return Dialect(
        name=name,
        title=title,
        looks_for=looks_for,
        recognise=recognise,
        read=read,
        evidence=lambda data: [key for key in data if key in tree][:6],
        # Most keys of an open file are foreign, so nearness to it means nothing.
        likeness=lambda data: 0.0 if open_ else likeness_to(tree, data),
        closed=not open_,
        **more,
    )


def table(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A table of some data; empty if it is missing or something else."""
    value = data.get(name)
    return value if isinstance(value, dict) else {}
