"""The effective configuration as text, for ``k3check config show``."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from k3check.config.show import rows
from k3check.hints.phrases import phrase
from k3check.masking.settings import scrub
from k3check.plain import one_line
from k3check.report.terminal import console as make_console
from k3check.report.terminal import to_ascii, wrapped
from k3check.report.texts import label, note_of

if TYPE_CHECKING:
    from k3check.config.loaded import Loaded
    from k3check.config.show import Row
    from k3check.report.formats import Options

_KEY = 26
_VALUE = 30


def as_text(
    loaded: Loaded, path: str | None, options: Options, *, defaults: bool = True, url: str = ""
) -> str:
    """One row a value: key, value, origin; what it shadows below; notes last.

    Args:
        loaded: the configuration.
        path: its file as the user would write it.
        options: language and look.
        defaults: whether what nothing sets is shown, too.
        url: where requests go, for a last line; empty for none.
    """
    from rich.cells import cell_len
    from rich.text import Text

    buffer = io.StringIO()
    console = make_console(buffer, options.look)
    width = options.look.width

    def show(line: Text) -> None:
        line.rstrip()
        console.print(line, no_wrap=True, overflow="ignore", crop=False)

    def hanging(head: Text, indent: int, text: str, style: str) -> None:
        for part in wrapped(console, text, width - indent):
            show(head.append(part, style=style))
            head = Text(" " * indent)

    if path is None:
        show(Text(label("no_file", options.lang)))
    else:
        show(Text(f"{one_line(path)} ({loaded.dialect})"))
    section = ""
    every = rows(loaded)
    kept = every if defaults else tuple(row for row in every if not row.is_default)
    for row in kept:
        head, _, key = row.key.rpartition(".")
        if head != section:
            section = head
            show(Text())
            show(Text(f"[{head}]", style="bold"))
        style = "dim" if row.is_default else ""
        value, origin = (
            phrase(one_line(text), options.lang, "evidence") for text in (row.value, _origin(row))
        )
        name = Text(f"  {key:<{_KEY - 2}}", style=style)
        if cell_len(value) <= _VALUE and _KEY + _VALUE + 1 + cell_len(origin) <= width:
            show(name.append(value + " " * (_VALUE + 1 - cell_len(value)) + origin))
        else:
            hanging(name, _KEY, value, style)
            hanging(Text(" " * _KEY), _KEY, origin, "dim")
        for where, hidden in row.origin.shadows:
            shadow = label("hides", options.lang, hidden=one_line(hidden), where=one_line(where))
            hanging(Text(" " * _KEY), _KEY, shadow, "dim")
    if url:
        show(Text())
        where = label("requests_go_to", options.lang)
        hanging(Text(f"{where}  "), cell_len(where) + 2, one_line(scrub(url, loaded.secrets)), "")
    if len(kept) < len(every):
        show(Text())
        count = label("hidden_defaults", options.lang, count=len(every) - len(kept))
        show(Text(count, style="dim"))
    if loaded.messages:
        show(Text())
    for note in loaded.messages:
        prefix = f"{label('note', options.lang)}  "
        text = f"{one_line(note_of(note, options.lang))} [{note.code}]"
        hanging(Text(prefix, style="yellow"), Text(prefix).cell_len, text, "not yellow")
    return to_ascii(buffer.getvalue()) if options.look.ascii else buffer.getvalue()


def _origin(row: Row) -> str:
    """Where a value came from; its key there only where that is not our own."""
    origin = row.origin
    if origin.line is not None and origin.key == row.key:
        return f"{origin.where}:{origin.line}"
    return str(origin)
