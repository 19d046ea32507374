"""A usage error as text: what is wrong, where, what was found, what is accepted, what to do."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from k3check.report.clean import clean, one_line
from k3check.report.terminal import console as make_console
from k3check.report.terminal import to_ascii, wrapped

if TYPE_CHECKING:
    from k3check.errors import UsageError
    from k3check.report.terminal import Look

_ERROR = "error: "
_LABEL = 12


def usage_text(error: UsageError, look: Look) -> str:
    """The error for stderr."""
    from rich.text import Text

    buffer = io.StringIO()
    console = make_console(buffer, look)

    def show(line: Text) -> None:
        console.print(line, no_wrap=True, overflow="ignore", crop=False)

    head = f"{one_line(error.what)} [{error.code}]"
    prefix = Text(_ERROR, style="bold red")
    for line in wrapped(console, head, look.width - len(_ERROR)):
        show(prefix.append(line, style="not red"))
        prefix = Text(" " * len(_ERROR))
    for name in ("where", "found", "accepted", "fix"):
        text = getattr(error, name)
        if text:
            label = Text(f"  {name:<{_LABEL - 2}}", style="dim")
            for line in wrapped(console, one_line(text), look.width - _LABEL):
                show(label.append(line, style="not dim bold" if name == "fix" else "not dim"))
                label = Text(" " * _LABEL)
    for line in clean(error.detail or "").rstrip("\n").split("\n"):
        if error.detail:
            show(Text(f"    {line}"))
    show(Text(f"  {'more':<{_LABEL - 2}}", style="dim").append(f"k3check explain {error.code}"))
    return to_ascii(buffer.getvalue()) if look.ascii else buffer.getvalue()
