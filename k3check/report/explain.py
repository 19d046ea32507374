"""``k3check explain``: the long text of a code, for people and for editors."""

from __future__ import annotations

import difflib
import io
import json
from typing import TYPE_CHECKING, Any

from k3check import hints
from k3check.errors import UsageError
from k3check.model import Text
from k3check.report.terminal import console as make_console
from k3check.report.terminal import to_ascii, wrapped
from k3check.report.texts import label

if TYPE_CHECKING:
    from k3check.hints import Entry
    from k3check.report.terminal import Look

# The titles of the list stand below the slugs.
_INDENT = 9


def lookup(code_or_slug: str) -> Entry:
    """The entry of a code or slug.

    Raises:
        UsageError: K3C-089, with the nearest codes and slugs.
    """
    entry = hints.find(code_or_slug)
    if entry is not None:
        return entry
    wanted = code_or_slug.strip()
    codes = hints.codes()
    near = [
        *difflib.get_close_matches(wanted.upper(), codes, n=2, cutoff=0.7),
        *difflib.get_close_matches(wanted.lower(), [hints.get(c).slug for c in codes], n=2),
    ]
    template = "List all codes: k3check explain"
    if near:
        template = "Did you mean {near}? List all codes: k3check explain"
    raise UsageError(
        code="K3C-089",
        what="there is no such code",
        where="explain",
        found=wanted[:80],
        accepted="K3O-nnn (operators), K3L-nnn (link), K3C-nnn (configuration), or a slug",
        fix=Text(template, near=" or ".join(near)),
    )


def as_data(entry: Entry, lang: str) -> dict[str, Any]:
    """One code's texts as plain data; sections that it does not have are null."""
    return {
        "code": entry.code,
        "slug": entry.slug,
        "title": hints.title(entry.code, lang),
        "fix": hints.fix(entry.code, lang),
        **{name: _section(entry, name, lang) for name in hints.SECTIONS},
        "sketch": entry.sketch,
        "origin": list(entry.origin),
    }


def as_json(entries: list[Entry], lang: str, *, single: bool) -> str:
    """JSON for editors: an object for one code, an array for all."""
    data = [as_data(entry, lang) for entry in entries]
    return json.dumps(data[0] if single else data, indent=2) + "\n"


def as_text(entry: Entry, lang: str, look: Look) -> str:
    """One code explained, in sections."""
    from rich.text import Text

    buffer = io.StringIO()
    console = make_console(buffer, look)

    def paragraph(text: str, indent: int) -> None:
        for line in wrapped(console, text.strip("\n"), look.width - indent):
            console.print(Text(" " * indent + line), no_wrap=True, overflow="ignore", crop=False)

    console.print(Text(entry.code, style="bold").append(f"  {entry.slug}", style="not bold dim"))
    paragraph(hints.title(entry.code, lang), 0)
    parts = [
        ("what", _section(entry, "what", lang)),
        ("why", _section(entry, "why", lang)),
        ("tell", _section(entry, "tell", lang)),
        ("cause", _section(entry, "cause", lang)),
        ("how", hints.fix(entry.code, lang)),
        ("sketch", entry.sketch),
        ("origin", "\n".join(entry.origin) or None),
    ]
    for name, text in parts:
        if text is not None:
            console.print()
            console.print(Text(label(name, lang), style="bold"))
            paragraph(text, 2)
    return to_ascii(buffer.getvalue()) if look.ascii else buffer.getvalue()


def as_list(entries: list[Entry], lang: str, look: Look) -> str:
    """Every code with its slug, and its title below them."""
    from rich.text import Text

    buffer = io.StringIO()
    console = make_console(buffer, look)
    for entry in entries:
        head = Text(entry.code, style="bold").append(f"  {entry.slug}", style="not bold dim")
        console.print(head, no_wrap=True, overflow="ignore", crop=False)
        for line in wrapped(console, hints.title(entry.code, lang), look.width - _INDENT):
            console.print(Text(" " * _INDENT + line), no_wrap=True, overflow="ignore", crop=False)
    return to_ascii(buffer.getvalue()) if look.ascii else buffer.getvalue()


def _section(entry: Entry, name: str, lang: str) -> str | None:
    texts = entry.sections.get(name)
    return None if texts is None else texts.get(lang, texts["en"])
