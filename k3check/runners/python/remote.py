"""A callable of the Python runner's, as the judge sees it."""

from __future__ import annotations

import inspect
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from k3check import hints
from k3check.model import Message
from k3check.nouns.candidate_error import CandidateError, clipped
from k3check.nouns.convention import ConventionBroken
from k3check.nouns.runner import Handed, Returned, Runner, Sublayers
from k3check.runners.python.state import NAMES
from k3check.runners.python.tensors import (
    LEAST_LIMIT_BYTES,
    MOST_CHARACTERS,
    TIMES_THE_INPUTS,
    Reader,
    Writer,
    read_file,
)
from k3check.runners.wire import BrokenWireError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.nouns.request import CandidateSpec
    from k3check.nouns.tensors import Tensors
    from k3check.runners.python.connection import Connection

#: What a runner may say an exception is; the kinds of :class:`CandidateError`.
_KINDS = ("raised", "exit", "memory", "device")
_MOST_PARAMETERS = 1000


class Remote(Runner):
    """What stands for a callable that another process has.

    It shows that callable's signature, module and name, so that its convention is recognised as if
    it were here. Called itself, it calls the callable without a convention.
    """

    def __init__(
        self,
        connection: Connection,
        spec: CandidateSpec,
        shown: Mapping[str, Any],
        form: Mapping[str, Any] | None = None,
    ) -> None:
        """Describe it.

        Args:
            connection: to the process.
            spec: what to load there.
            shown: what the callable shows of itself; the user's code has said it.
            form: operator, convention, names and options that it is called by.
        """
        self._connection = connection
        self._spec = spec
        self._shown = shown
        self._form = form
        # Without a readable one, inspect.signature() raises the TypeError that it should.
        self.__signature__ = _signature(shown.get("parameters"))
        self.__module__ = str(shown.get("module"))[:MOST_CHARACTERS]
        self.__name__ = str(shown.get("name"))[:MOST_CHARACTERS]

    def bound(
        self, operator: str, convention: str, names: frozenset[str] | None, options: Any
    ) -> Remote:
        """The same callable, called through a convention."""
        form = {
            "operator": operator,
            "convention": convention,
            "names": None if names is None else sorted(names),
            "options": dict(options),
        }
        return Remote(self._connection, self._spec, self._shown, form)

    def use(self, device: torch.device) -> None:
        """Try a device where the callable is.

        Raises:
            RuntimeError: it cannot be used.
        """
        problem = self._connection.probe(self._spec, str(device))
        if problem is not None:
            raise RuntimeError(problem)

    def __call__(self, **inputs: Any) -> Any:
        """Call it directly."""
        return self.start(inputs, torch.device("cpu"))().outputs["value"]

    def start(
        self, inputs: Tensors, device: torch.device, *, live: bool = False
    ) -> Callable[[], Returned]:
        """See :meth:`Runner.start`."""
        connection = self._connection
        connection.ready(self._spec)
        writer = Writer()
        told = {name: writer.given(value) for name, value in inputs.items()}
        limit = LEAST_LIMIT_BYTES + TIMES_THE_INPUTS * writer.size
        number = connection.tell(
            "call",
            key=self._spec.target,
            form=self._form,
            device=str(device),
            inputs=told,
            size=writer.write(connection.inputs),
            limit=limit,
            live=live,
        )

        def finish() -> Returned:
            message = connection.result(number)
            try:
                return self._returned(message, number, inputs, 2 * limit, live=live)
            except BrokenWireError as error:
                raise connection.lost(error) from None

        return finish

    def _returned(
        self, message: Mapping[str, Any], number: int, inputs: Tensors, limit: int, *, live: bool
    ) -> Returned:
        """What an answer says.

        Raises:
            BrokenWireError: nothing that can be understood.
            CandidateError, ConventionBroken: as :meth:`Runner.start` says.
        """
        changed = message.get("changed")
        if isinstance(changed, list):
            self._connection.changed += [n for n in NAMES if n in changed]
        if message["kind"] == "raised":
            raise _raised(message)
        if message["kind"] != "returned":
            raise BrokenWireError("an answer to another question")
        reader = Reader(read_file(self._connection.outputs, message.get("size"), limit))
        outputs = reader.values(message.get("outputs"))
        self._note_calls(reader, message.get("noted"), inputs)
        if live:
            self._look_again(reader, message.get("again"))
            for name, value in outputs.items():
                if isinstance(value, torch.Tensor):
                    self._connection.live[f"{number}:{name}"] = value
        return Returned(
            outputs,
            reader.values(message.get("inputs")),
            _handed(message.get("handed")),
            _seconds(message.get("seconds")),
        )

    def _look_again(self, reader: Reader, told: Any) -> None:
        """Take over what a call did to outputs of earlier ones."""
        for name, value in reader.values(told).items():
            old = self._connection.live.get(name)
            if old is not None and isinstance(value, torch.Tensor) and old.shape == value.shape:
                old.copy_(value)

    def _note_calls(self, reader: Reader, told: Any, inputs: Tensors) -> None:
        """Take over what sub-layers were handed."""
        if not isinstance(told, dict):
            raise BrokenWireError("calls that are not described")
        for name, calls in told.items():
            layers = inputs.get(name)
            if not isinstance(layers, Sublayers) or not isinstance(calls, list):
                raise BrokenWireError("calls of nothing")
            for call in calls:
                if not (isinstance(call, list) and len(call) == 2 and type(call[0]) is int):
                    raise BrokenWireError("a call that is not described")
                layers.handed.append((call[0] % max(1, len(layers)), reader.value(call[1])))


def load(connection: Connection, spec: CandidateSpec) -> Remote:
    """Have a callable loaded, and take what it shows of itself.

    Raises:
        UsageError: it cannot be loaded.
    """
    # A key that the connection knows again; the operator's name is for messages.
    return Remote(connection, replace(spec, options={}), connection.load(spec))


def _signature(told: Any) -> Any:
    """A signature from what was said of it; text where it cannot be read."""
    if not isinstance(told, list) or len(told) > _MOST_PARAMETERS:
        return "unreadable"
    kinds = {int(kind): kind for kind in inspect._ParameterKind}
    try:
        return inspect.Signature(
            [
                inspect.Parameter(
                    str(name)[:MOST_CHARACTERS],
                    kinds[kind],
                    default=inspect.Parameter.empty if must else None,
                )
                for name, kind, must in told
            ]
        )
    except (KeyError, TypeError, ValueError):
        return "unreadable"


def _raised(message: Mapping[str, Any]) -> CandidateError | ConventionBroken:
    """The exception that an answer is about."""
    broken = message.get("broken")
    if isinstance(broken, dict):
        code, values = broken.get("code"), broken.get("values")
        if code not in hints.codes() or not isinstance(values, dict):
            raise BrokenWireError("a message without a text")
        return ConventionBroken(Message(str(code), {str(k): _said(v) for k, v in values.items()}))
    kind = message.get("as")
    return CandidateError(
        kind if kind in _KINDS else "raised",
        str(message.get("error"))[:MOST_CHARACTERS],
        clipped(str(message.get("traceback"))),
    )


def _said(value: Any) -> Any:
    """A value of a message: a number, or short text."""
    return value if isinstance(value, bool | int | float) else clipped(str(value))[:1000]


def _handed(told: Any) -> Handed:
    if not isinstance(told, list) or len(told) != 3 or any(type(n) is not int for n in told):
        raise BrokenWireError("a count of calls that is none")
    return Handed(*told)


def _seconds(told: Any) -> float:
    if not isinstance(told, int | float) or not math.isfinite(told) or told < 0:
        raise BrokenWireError("a time that is none")
    return float(told)
