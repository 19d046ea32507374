"""What the worker and its supervisor say to each other: framed JSON over a private pipe.

A frame is four bytes of length (big endian) and that many bytes of JSON. NaN and infinities travel
as JSON's usual extension (both ends are Python), unlike in reports, where they are strings.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from k3check.errors import UsageError
from k3check.model import (
    Confidence,
    Diagnosis,
    Finding,
    Message,
    Outcome,
    from_plain,
    to_plain,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_LENGTH = struct.Struct(">I")

#: No message comes near this; a longer one means that something else wrote into the pipe.
MAX_MESSAGE_BYTES = 64 * 2**20


#: The worker's exit status when the user's code closed its files.
PIPE_LOST = 121


class BrokenWireError(Exception):
    """The bytes in the pipe are not ours."""


class Sender:
    """Writes messages into a pipe, and only from the process that created it."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._pid = os.getpid()

    def send(self, kind: str, **values: Any) -> None:
        """Write one message whole; ends the process when the pipe is closed.

        Raises:
            TypeError: a value is not plain data.
        """
        if os.getpid() != self._pid:
            # A fork that the user's code made and that returned into our loop: it has no say.
            os._exit(0)
        rest = memoryview(framed(kind, values))
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError:
            os._exit(PIPE_LOST)


def framed(kind: str, values: Mapping[str, Any]) -> bytes:
    """One message as it travels.

    Raises:
        TypeError: a value is not plain data.
    """
    body = json.dumps({"kind": kind, **values}, default=_plain).encode("ascii")
    return _LENGTH.pack(len(body)) + body


class Receiver:
    """Cuts what arrives from a pipe into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        """Add bytes as they arrived."""
        self._buffer += data

    def messages(self) -> Iterator[dict[str, Any]]:
        """Every message that is complete.

        Raises:
            BrokenWireError: a frame is too long, is not JSON, or is not a message.
        """
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > MAX_MESSAGE_BYTES:
                raise BrokenWireError(f"a frame of {length} bytes")
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[_LENGTH.size : end])
            del self._buffer[:end]
            try:
                message = json.loads(body)
            except (ValueError, RecursionError) as error:
                raise BrokenWireError(str(error)) from error
            if not isinstance(message, dict) or not isinstance(message.get("kind"), str):
                raise BrokenWireError("a frame that is no message")
            yield message


def _plain(value: Any) -> Any:
    """Plain data for what JSON does not know itself."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"{type(value).__name__} in a message: only plain data can be sent")


def finding_to_plain(finding: Finding) -> dict[str, Any]:
    """A finding as plain data, one level deep: :meth:`Sender.send` does the rest."""
    plain = _shallow(finding)
    plain["diagnoses"] = [_shallow(diagnosis) for diagnosis in finding.diagnoses]
    plain["notes"] = [_shallow(note) for note in finding.notes]
    plain["hint"] = None if finding.hint is None else _shallow(finding.hint)
    packed: dict[str, Any] = to_plain(plain)
    return packed


def finding_from_plain(data: Mapping[str, Any]) -> Finding:
    """Rebuild what :func:`finding_to_plain` wrote.

    Raises:
        BrokenWireError: it is not a finding.
    """
    try:
        values = from_plain(dict(data))
        values["outcome"] = Outcome(values["outcome"])
        values["diagnoses"] = tuple(
            Diagnosis(**{**diagnosis, "confidence": Confidence(diagnosis["confidence"])})
            for diagnosis in values["diagnoses"]
        )
        values["notes"] = tuple(Message(**note) for note in values["notes"])
        values["hint"] = None if values["hint"] is None else Message(**values["hint"])
        return Finding(**values)
    except (KeyError, TypeError, ValueError) as error:
        raise BrokenWireError(f"a damaged finding: {error!r}") from error


def usage_to_plain(error: UsageError) -> dict[str, Any]:
    """Every field of a usage error."""
    packed: dict[str, Any] = to_plain(_shallow(error))
    return packed


def usage_from_plain(data: Mapping[str, Any]) -> UsageError:
    """Rebuild what :func:`usage_to_plain` wrote.

    Raises:
        BrokenWireError: it is not a usage error.
    """
    try:
        return UsageError(**from_plain(data))
    except (TypeError, KeyError, ValueError) as error:
        raise BrokenWireError(f"a damaged usage error: {error!r}") from error


def _shallow(instance: Any) -> dict[str, Any]:
    """A dataclass's fields by name; ``asdict`` would copy, and fail on read-only mappings."""
    return {field.name: getattr(instance, field.name) for field in fields(instance)}
