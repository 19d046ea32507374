"""Which processes descend from one, as far as the system tells (on Linux)."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What this process started itself and must go on: the processes of the runners it still has.
_OURS: set[int] = set()
#: Whether this process adopts orphans; otherwise its children are none of ours.
_adopts = False


def adopting() -> None:
    """From here on, children that this process did not start are strays."""
    global _adopts
    _adopts = True


def keep(pid: int) -> None:
    """A child that this process started itself."""
    _OURS.add(pid)


def let_go(pid: int) -> None:
    """That child is no more."""
    _OURS.discard(pid)


def descendants(pid: int) -> list[int]:
    """Every living process below another one."""
    children: dict[int, list[int]] = {}
    for child, parent in _living():
        children.setdefault(parent, []).append(child)
    found, pending = [], [pid]
    while pending:
        for child in children.get(pending.pop(), ()):
            found.append(child)
            pending.append(child)
    return found


def orphans() -> list[int]:
    """What this process adopted, with everything below; none if it does not adopt."""
    if not _adopts:
        return []
    kept = {pid for ours in _OURS for pid in (ours, *descendants(ours))}
    return [pid for pid in descendants(os.getpid()) if pid not in kept]


def bury() -> None:
    """Take note of the end of adopted processes, so that they are gone."""
    if not _adopts:
        return
    for pid, parent, state in _all():
        if parent == os.getpid() and state == "Z" and pid not in _OURS:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def marked(name: str, value: str) -> list[int]:
    """Processes that carry a value in a variable of their environment."""
    found = []
    head = f"{name}=".encode()
    for pid in _numbers():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
            entries = file.read().split(b"\0")
            if any(entry.startswith(head) and value.encode() in entry for entry in entries):
                found.append(pid)
    return found


def _numbers() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    except OSError:
        return []


def _all() -> Iterator[tuple[int, int, str]]:
    """(process, parent, state) of every process."""
    for pid in _numbers():
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
                # The name in parentheses may hold anything, parentheses too.
                rest = file.read().rpartition(b")")[2].split()
            yield pid, int(rest[1]), rest[0].decode()


def _living() -> Iterator[tuple[int, int]]:
    for pid, parent, state in _all():
        if state not in ("Z", "X"):
            yield pid, parent
