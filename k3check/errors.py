"""The exceptions that reach the user, and the exit codes.

K3CheckError
 +-- UsageError       bad option, bad configuration, bad target: exit 2
 +-- NothingToCheck   the request leaves no check to run: exit 3
 +-- InternalError    our own mistake: exit 3, one line
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

#: More problems than this are read by nobody; the rest is counted.
LISTED = 20


class ExitCode(IntEnum):
    """The process's exit codes, as the contract with users lists them."""

    OK = 0
    FINDINGS = 1
    USAGE = 2
    INTERNAL = 3
    INTERRUPTED = 130


class K3CheckError(Exception):
    """Base of everything that k3check raises on purpose."""


@dataclass(eq=False)
class UsageError(K3CheckError):
    """The user's input cannot be used.

    Attributes:
        code: ``K3C-nnn``, explained by ``k3check explain``.
        what: one line that says what is wrong.
        where: file, line and key, or the option (``config.toml:12  kda.d_k``).
        found: what was found there; never a secret.
        accepted: what is accepted instead.
        fix: one imperative sentence.
        detail: further lines shown indented, e.g. a caret line or the user's own traceback.
    """

    code: str
    what: str
    where: str | None = None
    found: str | None = None
    accepted: str | None = None
    fix: str | None = None
    detail: str | None = None

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.what} [{self.code}]"


@dataclass(eq=False)
class NothingToCheck(K3CheckError):  # noqa: N818 - an outcome with its own exit code, no error
    """No check applies to what was asked for."""

    why: str

    def __str__(self) -> str:
        return self.why


#: Environment variable that, set to 1, shows the trace of an internal error.
TRACE_VARIABLE = "K3CHECK_TRACE"


@dataclass(eq=False)
class InternalError(K3CheckError):
    """Something in k3check itself went wrong.

    Attributes:
        what: one line.
        trace: the traceback, for whoever asks for it; never shown otherwise.
    """

    what: str
    trace: str | None = None

    def __str__(self) -> str:
        return f"internal error: {self.what} (set {TRACE_VARIABLE}=1 to see the trace)"
