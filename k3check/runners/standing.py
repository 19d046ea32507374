"""What judge and runner do first, and how they keep hold of their own files."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import signal
import sys
from typing import Any

from k3check.runners.wire import PIPE_LOST

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def stands_alone(*fds: int, parent: int, stack: int) -> None:
    """Begin a process of ours: its files are nobody else's, and it ends with its parent.

    Args:
        fds: numbers of inherited files.
        parent: the process that started this one.
        stack: the file that a crash writes its stack into.
    """
    for fd in fds:
        os.set_inheritable(fd, False)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    sys.argv = ["k3check"]  # a target that parses arguments must not see ours
    faulthandler.enable(stack, all_threads=False)
    faulthandler.register(signal.SIGUSR1, stack, all_threads=False)


def adopt_orphans() -> None:
    """Become the parent of what descends from this process and lost its own (on Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def closed_in_forks(*fds: int) -> None:
    """Close files in every fork of this process, which has no business with them."""

    def close() -> None:
        for fd in fds:
            with contextlib.suppress(OSError):
                os.close(fd)

    os.register_at_fork(after_in_child=close)


def limit_memory(size: int | None) -> None:
    """Allow this process so many bytes beyond what it has by now; None for any number."""
    if size is None:
        return
    import resource

    # Memory of its own, where the system counts that: an accelerator's driver reserves addresses
    # by the terabyte without using them.
    linux = sys.platform == "linux"
    kind = resource.RLIMIT_DATA if linux else resource.RLIMIT_AS
    limit = _data_bytes() + size
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(kind, (limit, limit))


def _data_bytes() -> int:
    """The memory of its own that this process has; what is not known counts as none."""
    with contextlib.suppress(OSError), open("/proc/self/status", encoding="ascii") as file:  # noqa: PTH123
        for line in file:
            if line.startswith("VmData:"):
                return int(line.split()[1]) * 1024
    return 0


class Output:
    """A process's output files: what they hold, and that they are there."""

    def __init__(self) -> None:
        self._fd = os.dup(1)
        self._libc: Any = ctypes.CDLL(None)
        self.restore()

    def restore(self) -> None:
        """Make both outputs write into the captured file again, whatever was done to them.

        Line by line: what stands in a buffer is lost when a process dies.
        """
        for number, name in ((1, "stdout"), (2, "stderr")):
            try:
                os.dup2(self._fd, number)
            except OSError:
                os._exit(PIPE_LOST)
            stream = getattr(sys, f"__{name}__")
            if stream is None or stream.closed:
                stream = open(number, "w", closefd=False)  # noqa: SIM115 - lives on
                setattr(sys, f"__{name}__", stream)
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
            setattr(sys, name, stream)

    def flush(self) -> None:
        """Write what stands in buffers of Python's and of C's."""
        for stream in (sys.stdout, sys.stderr):
            # Whatever the user's code put there; it may be closed, or no stream at all.
            with contextlib.suppress(BaseException):
                stream.flush()
        self._libc.fflush(None)
        try:
            os.fstat(self._fd)
        except OSError:
            os._exit(PIPE_LOST)
