"""Reading a configuration file's bytes; every way in which that fails has its own message."""

from __future__ import annotations

import codecs
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from k3check.config.problems import problem
from k3check.masking.settings import escaped

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# Far above any real configuration; keeps parsers with quadratic corners quick.
MAX_BYTES = 256 * 1024

_UTF32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True)
class Source:
    """A file's text.

    Attributes:
        text: the content, with line feeds as line ends and no byte-order mark.
        file: the file's name as shown to the user.
        bom: whether a UTF-8 byte-order mark was there.
    """

    text: str = field(repr=False)
    file: str
    bom: bool = False


def display(path: Path | str) -> str:
    """A path that can always be printed."""
    return escaped(str(path))


def read(path: Path, shown_as: Path | str | None = None) -> Source:
    """Read a configuration file.

    Args:
        path: the file.
        shown_as: its name in messages, as the user wrote it; ``path`` by default.

    Raises:
        UsageError: it is missing, a folder, unreadable, too large, empty, or not UTF-8 text.
    """
    file = display(path if shown_as is None else shown_as)
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise problem("K3C-002", where=file, found="a folder")
        if not stat.S_ISREG(mode):
            raise problem("K3C-004", where=file, found="a device, pipe or socket")
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise problem("K3C-001", where=file) from None
    except PermissionError:
        raise problem("K3C-003", where=file) from None
    except OSError as error:
        raise problem("K3C-005", where=file, reason=error.strerror or "no reason given") from None
    except ValueError:
        # A NUL or a lone surrogate in the name: no such file can exist.
        raise problem("K3C-001", where=file) from None
    return decode(raw, file)


def decode(raw: bytes, file: str) -> Source:
    """Turn a file's bytes into text.

    Raises:
        UsageError: too large, empty, UTF-16, not UTF-8, or binary.
    """
    if len(raw) > MAX_BYTES:
        raise problem("K3C-006", where=file, limit=MAX_BYTES // 1024)
    # A mark of UTF-32 starts with that of UTF-16, so the longer one is asked for first.
    if raw.startswith(_UTF32):
        raise problem("K3C-008", where=file, found="UTF-32", encoding="UTF-32")
    if raw.startswith(_UTF16) or _looks_like_utf16(raw):
        raise problem("K3C-008", where=file, found="UTF-16", encoding="UTF-16")
    bom = raw.startswith(codecs.BOM_UTF8)
    body = raw.removeprefix(codecs.BOM_UTF8)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        byte = f"byte 0x{body[error.start]:02x}"
        raise problem("K3C-009", where=f"{file}:{line}", found=byte) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise problem("K3C-010", where=f"{file}:{line}", found="a NUL character")
    if not text.strip():
        raise problem("K3C-007", where=file)
    return Source(text.replace("\r\n", "\n"), file, bom)


def _looks_like_utf16(raw: bytes) -> bool:
    """UTF-16 without a mark: every other byte of mostly Latin text is zero."""
    if len(raw) < 4 or len(raw) % 2:
        return False
    even, odd = raw[0::2], raw[1::2]
    half = len(even) // 2
    return (even.count(0) > half) != (odd.count(0) > half)


def at_home(path: str, env: Mapping[str, str]) -> str:
    """A path, or a folder of tensors, with ``~`` at its start as the home folder."""
    kind = "dir:" if path.startswith("dir:") else ""
    rest = path.removeprefix(kind)
    home = env.get("HOME", "")
    # Another user's home, ``~name``, is left as it stands: opening it says so.
    return kind + home + rest[1:] if home and (rest == "~" or rest.startswith("~/")) else path
