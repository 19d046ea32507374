"""Exceptions of the user's code, told apart from our own and trimmed to the user's frames.

Torch-free: torch's exceptions are recognised by the names of their classes and by their texts.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.model import Message, Outcome

Kind = Literal["raised", "exit", "memory", "device", "lost"]

#: How much of a traceback is kept: enough for any real one, little enough for a report.
MAX_LINES = 60
MAX_CHARACTERS = 8000

_PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"
_MACHINERY = (
    "<frozen importlib",
    "<frozen runpy",
    f"{_PACKAGE}runners{os.sep}",
    f"{_PACKAGE}nouns{os.sep}",
)
_IMPORTLIB = Path(importlib.__file__).parent
_GUARDED = "__k3check_guarded__"

_DEVICE_TEXT = re.compile(
    r"\b(CUDA|HIP|cuDNN|cuBLAS|MPS|XPU) (driver )?error|Triton Error \[|device-side assert"
    r"|illegal memory access|\bCUBLAS_STATUS_|\bCUDNN_STATUS_|\bhipError",
)
_MEMORY_TEXT = re.compile(
    r"DefaultCPUAllocator: (can't|not enough)|CUDA out of memory|HIP out of memory"
    r"|CUDA error: out of memory",
)


class CandidateError(Exception):
    """The code under test raised.

    Attributes:
        kind: ``raised`` (any exception), ``exit`` (SystemExit, KeyboardInterrupt), ``memory``,
            ``device`` (an accelerator's error, which may have broken its context) or ``lost``
            (see :class:`CandidateLostError`).
        error: the exception in one line, ``ValueError: expected 4 heads``.
        traceback: the traceback's text, without our frames and the import machinery's.
        hint: what whoever made the call has to say of it, in place of the usual sentence.
    """

    def __init__(self, kind: Kind, error: str, traceback: str) -> None:
        super().__init__(error)
        self.kind: Kind = kind
        self.error = error
        self.traceback = traceback
        self.hint: Message | None = None

    @classmethod
    def of(cls, error: BaseException) -> CandidateError:
        """Describe an exception that came out of the user's code."""
        return cls(classify(error), one_line(error), trimmed(error))


class CandidateLostError(CandidateError):
    """The code under test hung, or took the process along that it ran in.

    Attributes:
        outcome: timed out or crashed.
        message: how.
        evidence: the stack, what was printed, the signal.
    """

    def __init__(self, outcome: Outcome, message: Message, evidence: Mapping[str, Any]) -> None:
        super().__init__("lost", message.code, "")
        self.outcome = outcome
        self.message = message
        self.evidence = dict(evidence)


def guarded(target: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the user's callable so that whatever it raises arrives as a CandidateError.

    The signature stays visible (``inspect.signature`` follows ``__wrapped__``). Guarding twice is
    guarding once.

    Raises:
        CandidateError: from the wrapper, for any exception of ``target``, SystemExit included.
    """
    if getattr(target, _GUARDED, False):
        return target

    # updated=(): an object's attributes (a module's parameters) are not the wrapper's.
    @functools.wraps(target, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return target(*args, **kwargs)
        except CandidateError:
            raise
        except BaseException as error:  # noqa: BLE001 - sys.exit() in an operator is a finding too
            raise CandidateError.of(error) from None

    setattr(call, _GUARDED, True)
    return call


def classify(error: BaseException) -> Kind:
    """What sort of failure an exception is."""
    names = {name_of(base) for base in type(error).__mro__}
    text = _text(error)
    if names & {"OutOfMemoryError", "MemoryError"} or _MEMORY_TEXT.search(text):
        return "memory"
    if "AcceleratorError" in names:
        return "device"
    if isinstance(error, RuntimeError) and _DEVICE_TEXT.search(text):
        return "device"
    return "raised" if isinstance(error, Exception) else "exit"


def one_line(error: BaseException) -> str:
    """``Type: first line of the message``, at most 200 characters."""
    lines = _text(error).strip().splitlines()
    name = name_of(type(error))
    text = f"{name}: {lines[0].strip()}" if lines else name
    return text if len(text) <= 200 else text[:199] + "…"


def trimmed(error: BaseException) -> str:
    """A traceback in the user's frames: ours and the import machinery's are dropped."""
    try:
        told = traceback.TracebackException.from_exception(error)
    except BaseException:  # noqa: BLE001 - it asks the user's object for its text and its name
        return clipped("".join(traceback.format_tb(error.__traceback__)).rstrip())
    pending: list[traceback.TracebackException | None] = [told]
    while pending:
        link = pending.pop()
        if link is not None:
            _trim(link)
            pending += [
                link.__cause__,
                link.__context__,
                *(getattr(link, "exceptions", None) or ()),
            ]
    return clipped("".join(told.format()).rstrip())


def is_ours(filename: str) -> bool:
    """Whether a frame's file is k3check's or the import machinery's."""
    return filename.startswith(_PACKAGE) or _is_machinery(filename)


def _is_machinery(filename: str) -> bool:
    """Whether it is a file that only gets other code to run."""
    return filename.startswith(_MACHINERY) or Path(filename).parent == _IMPORTLIB


def clipped(text: str) -> str:
    """The head and the tail of a text that is too long, and how much was left out."""
    lines = text.splitlines()
    if len(lines) > MAX_LINES:
        head, tail = lines[: MAX_LINES // 3], lines[-(MAX_LINES * 2 // 3) :]
        lines = [*head, f"  ... {len(lines) - MAX_LINES} lines ...", *tail]
    text = "\n".join(lines)
    if len(text) > MAX_CHARACTERS:
        text = text[: MAX_CHARACTERS // 3] + "\n  ...\n" + text[-(MAX_CHARACTERS * 2 // 3) :]
    return text


def _trim(told: traceback.TracebackException) -> None:
    """Keep the user's frames; of a built-in operator's exception, the operator's."""
    kept = [frame for frame in told.stack if not is_ours(frame.filename)]
    kept = kept or [frame for frame in told.stack if not _is_machinery(frame.filename)]
    if kept:
        told.stack = traceback.StackSummary.from_list(kept)
    else:
        # Without a stack, format() leaves its heading away as well.
        told.stack = None  # type: ignore[assignment]  # allowed for by format(), not by its types


def _text(error: BaseException) -> str:
    """``str(error)``, whatever the class does in ``__str__``."""
    try:
        return f"{error!s}"
    except BaseException:  # noqa: BLE001 - the user's __str__ may raise anything
        return "<its text cannot be shown>"


def name_of(kind: type) -> str:
    """A class's name, whatever its metaclass does."""
    return str(type.__dict__["__name__"].__get__(kind))
