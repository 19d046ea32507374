"""The command line: parse, call, render, exit. Nothing else.

Modules that take long to import (pydantic, httpx, rich, the checks themselves) are imported inside
the commands, so that ``k3check --help`` stays fast.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from k3check.cli import bench, checks, reading, settings, stdout, vectors
from k3check.cli.app import app
from k3check.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

__all__ = ["app", "bench", "checks", "main", "reading", "settings", "stdout", "vectors"]


def main() -> NoReturn:
    """Run the command line and exit; ``k3check`` and ``python -m k3check`` are this function."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller: there is nobody to write to
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - until the process ends
    stdout.guard()
    code: object = ExitCode.OK
    try:
        with _ended_like_ctrl_c():
            app(prog_name="k3check")
    except SystemExit as stop:
        code = stop.code
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    try:
        sys.stdout.flush()
    except (OSError, UsageError):
        # the reader is gone; without this the interpreter would complain about it at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code if isinstance(code, int) else ExitCode.INTERNAL)


@contextlib.contextmanager
def _ended_like_ctrl_c() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the run as Ctrl-C does, so that the worker's tree is killed."""
    changed = []
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)  # not every system has both
            # one that is ignored, as under nohup, stays so
            if number is not None and signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, _interrupt)
                changed.append(number)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


def _interrupt(number: int, _: FrameType | None) -> NoReturn:
    # a second one must not cut the clean-up short
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
