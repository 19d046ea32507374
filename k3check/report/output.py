"""Write a rendered report to a file: whole or not at all, and for its owner only."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from k3check.errors import UsageError


def check(path: Path) -> None:
    """Refuse early what :func:`write` would refuse after minutes of checking.

    Raises:
        UsageError: K3C-088, the directory is missing or the path is a directory.
    """
    try:
        if not path.parent.is_dir():
            raise _refused(path, f"no directory {path.parent}", "Create the directory first.")
        if path.is_dir():
            raise _refused(path, "a directory", "Name a file.")
        with contextlib.suppress(FileNotFoundError):
            path.stat()  # refuses a name that no file can have
    except OSError as error:
        raise _refused(path, error.strerror or str(error), "Name a file you may write.") from None
    except ValueError as error:  # a NUL in the name
        raise _refused(path, str(error), "Name a file you may write.") from None


def write(path: Path, text: str) -> None:
    """Write ``text`` as UTF-8 with mode 0600, replacing the file in one step.

    A report quotes the user's code and the endpoint's answers, hence the mode. What is not a
    regular file (``/dev/stdout``, a named pipe) is written to as it is.

    Raises:
        UsageError: K3C-088, the file cannot be written.
    """
    check(path)
    data = text.encode("utf-8", "backslashreplace")
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        _replace(path.resolve(), data)
    except OSError as error:
        raise _refused(path, error.strerror or str(error), "Name a file you may write.") from None


def _replace(path: Path, data: bytes) -> None:
    # mkstemp creates with mode 0600, and in the same directory the rename is atomic
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".k3check.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def _refused(path: Path, found: str, fix: str) -> UsageError:
    return UsageError(
        code="K3C-088",
        what="the report cannot be written",
        where=f"--output {path}",
        found=found,
        accepted="a file in an existing directory",
        fix=fix,
    )
