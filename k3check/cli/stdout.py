"""Standard output that says so in one line when it takes nothing (a full disk, ``/dev/full``).

Whatever prints there, the command line's own help too, ends in the same message and exit code.
"""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from k3check.errors import UsageError


def not_written(error: OSError) -> UsageError:
    """Standard output cannot be written to."""
    from k3check.config.problems import problem

    return problem("K3C-092", where="standard output", found=error.strerror)


class Output(io.TextIOWrapper):
    """A text stream whose failures are usage errors; only a reader that has gone is none."""

    def write(self, text: str) -> int:
        """Write a text.

        Raises:
            UsageError: K3C-092, nothing can be written.
        """
        try:
            return super().write(text)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise not_written(error) from None

    def flush(self) -> None:
        """Write what is waiting.

        Raises:
            UsageError: K3C-092, nothing can be written.
        """
        try:
            super().flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise not_written(error) from None


def guard() -> None:
    """Put :class:`Output` in the place of the process's standard output."""
    stream = sys.stdout
    if type(stream) is not io.TextIOWrapper:  # ours already, or somebody else's to capture it
        return
    encoding, errors = stream.encoding, stream.errors
    lines, through = stream.line_buffering, stream.write_through
    sys.stdout = Output(
        stream.detach(),
        encoding=encoding,
        errors=errors,
        line_buffering=lines,
        write_through=through,
    )
