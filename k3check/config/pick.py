"""Picking values out of the files of clients, most of whose keys are none of our business."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.config.dialects.base import Value
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from k3check.config.document import Document, Path_


def picked(data: Mapping[str, Any], at: Path_, fields: Iterable[tuple[str, str]]) -> list[Value]:
    """The values of those fields that are set: (the file's name, our dotted key) each.

    Args:
        data: a table of the file.
        at: the table's key path.
        fields: in the order of precedence; a later one of the same key wins.
    """
    return [
        Value(key, data[name], (*at, name)) for name, key in fields if data.get(name) is not None
    ]


def text(data: Mapping[str, Any], *path: str) -> str:
    """A text of some data by its path, blanks stripped; empty if it is missing or no text."""
    value: Any = data
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value.strip() if isinstance(value, str) else ""


def several(document: Document, path: Path_, chosen: str, names: Sequence[str]) -> Message | None:
    """The note that a file describes more endpoints than the one that is read."""
    others = [name for name in names if name != chosen]
    if not others:
        return None
    listed = ", ".join(others[:8]) + (" ..." if len(others) > 8 else "")
    values = {"where": document.where(path), "chosen": chosen, "others": listed}
    return Message("K3C-114", values)


def preferred(candidates: Mapping[str, Any]) -> str:
    """The one of several endpoints or models that speaks of Kimi, else the first; "" for none."""
    for name, value in candidates.items():
        # Only names are searched: a key may hold any letters.
        words = [name.casefold(), *_words(value)]
        if any("kimi" in word or "moonshot" in word or "k3" in word for word in words):
            return name
    return next(iter(candidates), "")


_SPEAKING = ("model", "model_name", "name", "id", "base_url", "baseURL", "apiBase", "api_base")


def _words(value: Any) -> list[str]:
    if isinstance(value, tuple):
        value = value[0]
    if not isinstance(value, dict):
        return []
    words = [str(value[k]).casefold() for k in _SPEAKING if isinstance(value.get(k), str)]
    for child in value.values():
        if isinstance(child, dict):
            words += [*(str(k).casefold() for k in child), *_words(child)]
    return words
