"""Which configuration files hold the key, and who else can read it."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from k3check.link.wire.redact import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class KeyFile:
    """A file with the key in it.

    Attributes:
        name: as the user wrote it.
        mode: its permissions in octal.
        readable_by_others: group or others can read it.
        tracked: git has it under version control.
    """

    name: str
    mode: str
    readable_by_others: bool
    tracked: bool


def key_files(files: Iterable[str], key: str) -> Iterator[KeyFile]:
    """The files among ``files`` that contain the key; unreadable ones are passed over."""
    for name in files:
        path = Path(name)
        try:
            info = path.stat()
            if not stat.S_ISREG(info.st_mode) or info.st_size > _MOST_BYTES:
                continue
            held = key.encode() in path.read_bytes()
        except (OSError, ValueError):
            continue
        if held:
            # Windows has no such permission bits.
            others = os.name == "posix" and bool(info.st_mode & 0o077)
            mode = f"{stat.S_IMODE(info.st_mode):04o}"
            yield KeyFile(one_line(name, 120), mode, others, _tracked(path))


def _tracked(path: Path) -> bool:
    """True if the file is in a git repository's index.

    Read from the index itself: a path is stored there as plain bytes (all versions but 4, which
    shortens paths and is hardly ever used; there the answer is False).
    """
    try:
        full = path.resolve()
        root = next((p for p in full.parents if (p / ".git").is_dir()), None)
        if root is None:
            return False
        index = (root / ".git" / "index").read_bytes()
    except OSError:
        return False
    relative = full.relative_to(root).as_posix().encode()
    return _entry(index, relative)


def _entry(index: bytes, relative: bytes) -> bool:
    """The path stands in the index right behind its length and ends with NUL bytes."""
    start = 0
    while (at := index.find(relative + b"\0", start)) != -1:
        flags = int.from_bytes(index[at - 2 : at], "big")
        if flags & 0x0FFF == min(len(relative), 0x0FFF):
            return True
        start = at + 1
    return False
