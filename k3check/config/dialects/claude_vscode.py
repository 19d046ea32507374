"""VS Code's ``settings.json`` with Claude Code's variables in it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from k3check.config.dialects import claude_code
from k3check.config.dialects.base import Dialect, Reading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Document

KEY = "claudeCode.environmentVariables"


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data have the extension's list of variables."""
    return isinstance(data.get(KEY), list)


def read(document: Document) -> Reading:
    """The list's variables, as Claude Code's own ``env`` table."""
    items = [
        (entry["name"], entry.get("value"), (KEY, index, "value"))
        for index, entry in enumerate(document.data[KEY])
        if isinstance(entry, dict) and isinstance(entry.get("name"), str)
    ]
    reading = claude_code.from_variables(document, items)
    return replace(reading, client_at=(KEY,), absent={"model.name": claude_code.NO_MODEL})


DIALECT = Dialect(
    name="claude-code-vscode",
    title="VS Code's settings.json for Claude Code",
    looks_for=f'a list "{KEY}" of names and values',
    recognise=recognise,
    read=read,
    evidence=lambda _data: (KEY,),
    syntaxes=("JSON",),
    comments=True,
    resolve=claude_code.resolve,
    review=claude_code.review,
    clients=(claude_code.CLIENT,),
    speaks="messages",
    precedence="the list > shell",
)
