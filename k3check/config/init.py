"""The starter file that ``k3check init`` writes."""

from __future__ import annotations

import os
import tempfile
from importlib import resources
from pathlib import Path

from k3check.config.problems import problem
from k3check.config.source import display

# The user may put a key into it.
_MODE = 0o600


def starter() -> str:
    """The commented starter configuration."""
    return resources.files(__package__).joinpath("starter.toml").read_text("utf-8")


def write_starter(path: Path, *, force: bool = False) -> None:
    """Write the starter file, readable by its owner alone.

    Args:
        path: the file to create.
        force: replace an existing file.

    Raises:
        UsageError: the file exists and ``force`` is not given, or it cannot be written.
    """
    try:
        if force:
            _replace(path, starter())
        else:
            _create(path, starter())
    except FileExistsError:
        raise problem("K3C-027", where=display(path)) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a usable file name"
        raise problem("K3C-028", where=display(path), reason=reason) from None


def _create(path: Path, text: str) -> None:
    # O_EXCL: between a look and a write somebody else may have created the file.
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _MODE)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as stream:
        stream.write(text)


def _replace(path: Path, text: str) -> None:
    """Through a temporary file (whose mode is 0600), so that no half-written file is left."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:64]}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink()
        raise
