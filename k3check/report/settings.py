"""The effective configuration as text, for ``k3check config show``."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from k3check.config.show import rows
from k3check.config.source import display
from k3check.report.clean import one_line
from k3check.report.terminal import console as make_console
from k3check.report.terminal import to_ascii, wrapped
from k3check.report.texts import label, note_of

if TYPE_CHECKING:
    from k3check.config.load import Loaded
    from k3check.report.formats import Options

_KEY = 22
_VALUE = 30


def as_text(loaded: Loaded, options: Options) -> str:
    """One row a value: key, value, origin; what it shadows below; notes last."""
    from rich.text import Text

    buffer = io.StringIO()
    console = make_console(buffer, options.look)

    def show(line: Text) -> None:
        line.rstrip()
        console.print(line, no_wrap=True, overflow="ignore", crop=False)

    if loaded.path is None:
        show(Text("no configuration file; defaults, variables and options only"))
    else:
        show(Text(f"{display(loaded.path)} ({loaded.dialect})"))
    section = ""
    for row in rows(loaded):
        head, _, key = row.key.rpartition(".")
        if head != section:
            section = head
            show(Text())
            show(Text(f"[{head}]", style="bold"))
        style = "dim" if row.is_default else ""
        line = Text(f"  {key:<{_KEY - 2}} ", style=style)
        line.append(f"{one_line(row.value):<{_VALUE}}", style=style)
        origin = one_line(str(row.origin))
        if line.cell_len + len(origin) + 1 > options.look.width:
            show(line)
            line = Text(" " * (_KEY + 1))
        show(line.append(f" {origin}", style="dim"))
        for where, value in row.origin.shadows:
            show(Text(f"{'':<{_KEY + 1}}shadows {one_line(value)} from {where}", style="dim"))
    for note in loaded.notes:
        show(Text())
        prefix = Text(f"{label('note', options.lang)}: ", style="yellow")
        text = f"{one_line(note_of(note, options.lang))} [{note.code}]"
        for part in wrapped(console, text, options.look.width - prefix.cell_len):
            show(prefix.append(part, style="default"))
            prefix = Text(" " * prefix.cell_len)
    return to_ascii(buffer.getvalue()) if options.look.ascii else buffer.getvalue()
