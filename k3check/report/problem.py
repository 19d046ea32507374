"""A usage error as text: what is wrong, where, what was found, what is accepted, what to do."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from k3check.errors import LISTED
from k3check.hints.phrases import coded, phrase
from k3check.plain import clean, one_line
from k3check.report.terminal import console as make_console
from k3check.report.terminal import to_ascii, wrapped
from k3check.report.texts import label

if TYPE_CHECKING:
    from k3check.errors import UsageError
    from k3check.report.terminal import Look

_LABEL = 12


def usage_text(error: UsageError, look: Look, lang: str = "en") -> str:
    """The error for stderr."""
    from rich.text import Text

    buffer = io.StringIO()
    console = make_console(buffer, look)

    def show(line: Text) -> None:
        console.print(line, no_wrap=True, overflow="ignore", crop=False)

    def hanging(prefix: Text, text: str, style: str) -> None:
        indent = prefix.cell_len
        for line in wrapped(console, text, look.width - indent):
            show(prefix.append(line, style=style))
            prefix = Text(" " * indent)

    def labelled(name: str, text: str, style: str = "not dim") -> None:
        head = Text(f"  {label(name, lang)}", style="dim")
        hanging(head.append(" " * (_LABEL - head.cell_len)), text, style)

    hanging(Text(f"{label('error', lang)}: ", style="bold red"), _headline(error, lang), "not red")
    for name in ("where", "found_there", "accepted"):
        text = getattr(error, name.partition("_")[0])
        if text:
            labelled(name, _said(text, lang))
    if error.fix:
        labelled("fix", _fix(error, lang), "not dim bold")
    others = getattr(error, "others", ())
    detail = clean((error.own_detail if others else error.detail) or "")  # type: ignore[attr-defined]
    for line in detail.rstrip("\n").split("\n"):
        if detail:
            show(Text(f"    {line}"))  # a traceback or an excerpt: as it is
    labelled("more", f"k3check explain {error.code}")
    if others:
        show(Text())
        show(Text(label("others" if len(others) > 1 else "one_other", lang, count=len(others))))
    for other in others[:LISTED]:
        hanging(Text("  "), _line(other, lang), "")
        if other.fix:
            hanging(Text("    "), _fix(other, lang), "bold")
    if len(others) > LISTED:
        show(Text(label("unlisted", lang, count=len(others) - LISTED)))
    return to_ascii(buffer.getvalue()) if look.ascii else buffer.getvalue()


def _headline(error: UsageError, lang: str) -> str:
    """What is wrong, with its code."""
    return f"{one_line(coded(error.code, error.what, lang))} [{error.code}]"


def _fix(error: UsageError, lang: str) -> str:
    return one_line(coded(error.code, error.fix or "", lang))


def _said(text: str, lang: str) -> str:
    return one_line(phrase(text, lang, "usage"))


def _line(error: UsageError, lang: str) -> str:
    """One of several errors in one line."""
    place = f"{one_line(error.where)}: " if error.where else ""
    line = place + _headline(error, lang)
    if error.found:
        line += f"; {label('found_there', lang)} {_said(error.found, lang)}"
    if error.accepted:
        line += f"; {label('accepted', lang)} {_said(error.accepted, lang)}"
    return line
