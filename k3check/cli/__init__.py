"""The command line: parse, call, render, exit. Nothing else.

Modules that take long to import (pydantic, httpx, rich, the checks themselves) are imported inside
the commands, so that ``k3check --help`` stays fast.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

from k3check.cli import checks, reading, settings
from k3check.cli.app import app
from k3check.errors import ExitCode

__all__ = ["app", "checks", "main", "reading", "settings"]


def main() -> NoReturn:
    """Run the command line and exit; ``k3check`` and ``python -m k3check`` are this function."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller: there is nobody to write to
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - until the process ends
    code: object = ExitCode.OK
    try:
        app(prog_name="k3check")
    except SystemExit as stop:
        code = stop.code
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    try:
        sys.stdout.flush()
    except OSError:
        # the reader is gone; without this the interpreter would complain about it at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code if isinstance(code, int) else ExitCode.INTERNAL)
