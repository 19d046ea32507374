"""What the reader's terminal can show, and a rich console set up for exactly that."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import Console

WIDTH = 80
_NARROWEST = 40
_SINGLE = {
    "✓": "+", "≈": "~", "✗": "x", "·": "-", "×": "x", "–": "-", "—": "-", "−": "-",
    "‘": "'", "’": "'", "“": '"', "”": '"',
    "▁": "_", "▂": ".", "▃": ":", "▄": "-", "▅": "=", "▆": "+", "▇": "*", "█": "#",
    "…": "...", "≤": "<=", "≥": ">=", "≠": "!=", "→": "->", "α": "alpha", "β": "beta",
    "±": "+-", "\u00a0": " ",
}  # fmt: skip
_TO_ASCII = str.maketrans(_SINGLE)


@dataclass(frozen=True)
class Look:
    """How to draw.

    Attributes:
        width: columns to use, at most 80.
        colour: whether styles are written.
        ascii: whether only ASCII may be written.
        chinese: whether Chinese can be written.
    """

    width: int = WIDTH
    colour: bool = False
    ascii: bool = False
    chinese: bool = True


def look(stream: IO[str], env: Mapping[str, str], *, lang: str = "en") -> Look:
    """Find out what a stream can show.

    ``NO_COLOR`` (not empty) wins over ``FORCE_COLOR``; without either, colour needs a terminal
    that is not dumb. Python writes UTF-8 even under ``LANG=C``, so the locale's own variables
    are asked too: who set them to C asked for ASCII. That rule gives way to ``--lang zh``.
    """
    terminal = bool(getattr(stream, "isatty", bool)())
    colour = not env.get("NO_COLOR") and (
        bool(env.get("FORCE_COLOR")) or (terminal and env.get("TERM") != "dumb")
    )
    width = shutil.get_terminal_size((WIDTH, 24)).columns if terminal else WIDTH
    blocks = _can_write(stream, "✓▁█…")
    chinese = _can_write(stream, "失败")
    locale = env.get("LC_ALL") or env.get("LANG") or ""
    asked_for_ascii = locale in ("C", "POSIX") and not env.get("PYTHONIOENCODING")
    return Look(
        width=min(WIDTH, max(_NARROWEST, width)),
        colour=colour,
        ascii=not blocks or (asked_for_ascii and lang != "zh"),
        chinese=chinese,
    )


def _can_write(stream: IO[str], text: str) -> bool:
    try:
        text.encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def to_ascii(text: str) -> str:
    """Replace our own signs by ASCII ones and everything else by its escape."""
    return text.translate(_TO_ASCII).encode("ascii", "backslashreplace").decode("ascii")


def console(stream: IO[str], look: Look, *, live: bool = False) -> Console:
    """A console that writes to ``stream`` and interprets nothing in what it is given.

    Args:
        stream: where to write.
        look: what the terminal can show.
        live: the stream is a terminal whose cursor may be moved, whatever the colours.
    """
    from rich.console import Console

    return Console(
        file=stream,
        width=look.width,
        color_system="standard" if look.colour else None,
        force_terminal=look.colour or live,
        no_color=not look.colour,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )


def wrapped(console: Console, text: str, width: int) -> Iterator[str]:
    """Lines of at most ``width`` cells; a word is folded only where it alone is too long."""
    from rich.text import Text

    for line in text.split("\n"):
        for part in Text(line).wrap(console, width, overflow="fold", no_wrap=False):
            yield part.plain.rstrip()


def write(stream: IO[str], text: str) -> None:
    """Write text whatever the stream's encoding: what it cannot show becomes an escape."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()
