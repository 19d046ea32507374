"""What each tool of a machine would use, for ``k3check link --discover``."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

from k3check.plain import one_line
from k3check.report.terminal import console as make_console
from k3check.report.terminal import to_ascii, wrapped
from k3check.report.texts import label, note_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from k3check.link.discover import Setup, Value
    from k3check.report.formats import Options

_LABEL = 11
_VALUE = 34


def as_text(setups: Sequence[Setup], options: Options) -> str:
    """One block a tool: each value with where it comes from, where its requests go, notes."""
    from rich.text import Text

    buffer = io.StringIO()
    console = make_console(buffer, options.look)
    lang = options.lang

    def show(line: Text) -> None:
        line.rstrip()
        console.print(line, no_wrap=True, overflow="ignore", crop=False)

    def row(name: str, text: str, style: str = "") -> None:
        head = Text(f"  {name:<{_LABEL - 2}}", style="dim")
        for part in wrapped(console, text, options.look.width - _LABEL):
            show(head.append(part, style=style or "not dim"))
            head = Text(" " * _LABEL)

    def value(name: str, found: Value | None) -> None:
        if found is None:
            row(name, label("unset", lang), "dim")
        else:
            row(name, f"{one_line(found.shown):<{_VALUE}} {one_line(found.origin)}")

    for setup in setups:
        show(Text(one_line(setup.tool), style="bold").append(f" ({setup.wire})", style="not bold"))
        value("base_url", setup.base_url)
        value("key", setup.key)
        value("model", setup.model)
        if setup.url:
            row(label("requests", lang), one_line(setup.url))
        for shadowed in setup.shadowed:
            value(label("shadows", lang), shadowed)
        for remark in setup.remarks:
            row(label("note", lang), one_line(f"{note_of(remark, lang)} [{remark.code}]"), "yellow")
        show(Text())
    count = len(setups)
    show(Text(label("one_setup" if count == 1 else "setups", lang, count=count)))
    return to_ascii(buffer.getvalue()) if options.look.ascii else buffer.getvalue()


def as_json(setups: Sequence[Setup], lang: str) -> str:
    """The same as JSON; keys and codes are English."""
    data = {"setups": [_plain(setup, lang) for setup in setups]}
    return json.dumps(data, indent=2) + "\n"


def _plain(setup: Setup, lang: str) -> dict[str, Any]:
    return {
        "tool": setup.tool,
        "protocol": setup.wire,
        "base_url": _value(setup.base_url),
        "api_key": _value(setup.key),
        "model": _value(setup.model),
        "requests_go_to": setup.url or None,
        "shadowed": [_value(value) for value in setup.shadowed],
        "notes": [{"code": note.code, "text": note_of(note, lang)} for note in setup.remarks],
    }


def _value(value: Value | None) -> dict[str, str] | None:
    return None if value is None else {"value": value.shown, "origin": value.origin}
