"""The runner's process: load the user's callables and call them, for nobody but the judge.

Nothing in here has a say in a verdict: what the user's code does to this process - to torch, to
its modules, to its files - it does to itself.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import select
import struct
import time
from typing import TYPE_CHECKING, Any, NoReturn

from k3check.errors import UsageError
from k3check.nouns.candidate_error import CandidateError, guarded, one_line
from k3check.nouns.request import CandidateSpec
from k3check.runners.environment import describe
from k3check.runners.standing import Output, closed_in_forks, limit_memory, stands_alone
from k3check.runners.target import load_target
from k3check.runners.wire import PIPE_LOST, Sender, usage_to_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_LENGTH = struct.Struct(">I")


def main(argv: Sequence[str]) -> NoReturn:
    """Answer the judge until it closes its pipe.

    Args:
        argv: numbers of the inherited files (the order, the pipe to the judge, the stack of a
            crash), the judge's process id, and the pipe from it, the inputs and the outputs.
    """
    order_fd, pipe_fd, stack_fd, parent, orders_fd, inputs_fd, outputs_fd = map(int, argv)
    mine = (pipe_fd, stack_fd, orders_fd, inputs_fd, outputs_fd)
    stands_alone(order_fd, *mine, parent=parent, stack=stack_fd)
    with open(order_fd, "rb") as file:  # noqa: PTH123 - a file number
        order = json.load(file)
    sender = Sender(pipe_fd)
    closed_in_forks(*mine)
    try:
        import torch

        limit_memory(order["memory_limit"])
        _Worker(torch, order["directory"], sender, orders_fd, inputs_fd, outputs_fd).serve()
    except BaseException as error:  # noqa: BLE001 - torch's, or ours: the judge tells which
        sender.send("failed", error=one_line(error))
    # Nothing may delay the end: no exit handler and no thread of the user's.
    os._exit(0)


class _Worker:
    """What was loaded, and how it is called."""

    def __init__(
        self, torch: Any, directory: str, sender: Sender, orders: int, inputs: int, outputs: int
    ) -> None:
        from k3check.nouns.runner import Watched
        from k3check.runners.python import tensors
        from k3check.runners.python.state import State, disarm

        self._torch = torch
        self._tensors = tensors
        self._watched = Watched
        self._directory = directory
        self._sender = sender
        self._orders, self._inputs, self._outputs = orders, inputs, outputs
        self._targets: dict[str, Callable[..., Any]] = {}
        self._bindings: dict[str, Callable[..., Any]] = {}
        self._live: dict[int, list[tuple[str, str, Any]]] = {}
        self._state = State(directory)
        self._disarm = disarm
        self._output = Output()

    def serve(self) -> None:
        """Answer one message after the other."""
        while True:
            order = self._next()
            if order is None:
                return
            number = order["number"]
            try:
                kind, answer = getattr(self, f"_{order['kind']}")(order)
            except BaseException as error:  # noqa: BLE001 - what it does is the judge's to say
                kind, answer = "raised", _described(error)
            # A timer of the user's may still have raised in the lines above: once.
            self._sender.send(kind, number=number, **answer)
            if kind == "loaded":
                _prepare(order["operator"])

    def _next(self) -> dict[str, Any] | None:
        """The judge's next message; None when there are no more."""
        head = self._read(_LENGTH.size)
        body = self._read(_LENGTH.unpack(head)[0]) if head else None
        return None if body is None else json.loads(body)

    def _read(self, size: int) -> bytes | None:
        data = b""
        while len(data) < size:
            try:
                select.select([self._orders], [], [])
                part = os.read(self._orders, size - len(data))
            except OSError:
                os._exit(PIPE_LOST)  # the user's code closed it
            except BaseException:  # noqa: BLE001, S112 - an interrupt meant for the user's code
                continue
            if not part:
                return None
            data += part
        return data

    def _load(self, order: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Load a callable; answers with what it shows of itself."""
        spec = CandidateSpec(order["operator"], target=order["target"], origin=order["origin"])
        self._state.note()
        try:
            target = load_target(spec, self._directory)
        except UsageError as error:
            return "refused", {"error": usage_to_plain(error)}
        finally:
            self._output.restore()
        self._state.restore()
        self._targets[order["key"]] = guarded(target)
        return "loaded", {"shown": shown(target)}

    def _probe(self, order: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Say whether a device can be used."""
        try:
            self._torch.empty(1, device=order["device"])
        except BaseException as error:  # noqa: BLE001 - whatever it is, the device cannot be used
            return "probed", {"error": one_line(error)}
        return "probed", {"error": None}

    def _describe(self, _order: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Say where this process runs."""
        return "described", {"environment": describe(self._torch)}

    def _forget(self, _order: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Let go of the outputs that are looked at again."""
        self._live.clear()
        return "forgotten", {}

    def _call(self, order: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Call a callable through its convention."""
        try:
            return self._called(order)
        finally:
            self._output.restore()

    def _called(self, order: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        torch, tensors = self._torch, self._tensors
        device = torch.device(order["device"])
        data = tensors.read_file(self._inputs, order["size"], order["size"])
        inputs = tensors.Reader(data).values(order["inputs"])
        del data
        given = {name: tensors.moved(value, device) for name, value in inputs.items()}
        watched = self._watched(_accepting(self._targets[order["key"]], tensors.accepted))
        invoke = self._invoke(order.get("form"))
        self._state.note()
        began = time.perf_counter()
        left: list[str] = []
        try:
            with torch.no_grad():
                outputs = invoke(watched, given)
                if device.type == "cuda":
                    torch.cuda.synchronize(device)
        except BaseException as error:  # noqa: BLE001 - the user's, whatever it is
            kind, told = "raised", _described(error)
        else:
            kind, told = "returned", {}
        took = time.perf_counter() - began
        if self._disarm():
            left.append("timer")
        left += self._state.restore()
        told |= {
            "changed": left,
            "handed": [watched.calls, watched.tensors, watched.views],
            "seconds": took,
        }
        self._output.flush()
        if kind == "returned":
            told |= self._written(outputs, given, order)
        return kind, told

    def _written(
        self, outputs: Any, given: Mapping[str, Any], order: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Write the outputs, and the inputs as they are now, for the judge."""
        with self._torch.no_grad(), self._torch._C.DisableTorchFunctionSubclass():
            writer = self._tensors.Writer()
            limit = order["limit"]
            told = {
                str(name): writer.returned(value, limit) for name, value in dict(outputs).items()
            }
            again = self._again(outputs, writer, order) if order["live"] else {}
            # What the callable was handed cannot be larger than it was.
            after = {name: _inputs_now(value, writer) for name, value in given.items()}
            handed = _noted(given, writer)
            size = writer.write(self._outputs)
        return {"outputs": told, "again": again, "inputs": after, "noted": handed, "size": size}

    def _again(
        self, outputs: Mapping[str, Any], writer: Any, order: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Outputs of earlier calls that lie in the memory of these, as they are now."""
        again = {}
        for name, value in outputs.items():
            if not isinstance(value, self._torch.Tensor) or value.numel() == 0:
                continue
            place = value.untyped_storage().data_ptr()
            here = self._live.setdefault(place, [])
            for call, other, old in here:
                again[f"{call}:{other}"] = writer.returned(old, order["limit"])
            here.append((str(order["number"]), name, value))
        return again

    def _invoke(self, form: Mapping[str, Any] | None) -> Callable[..., Any]:
        """How a callable is called: through an operator's convention, or directly."""
        if form is None:
            return lambda target, given: {"value": target(**given)}
        key = json.dumps(form, sort_keys=True)
        if key not in self._bindings:
            from k3check.nouns.operator import applied
            from k3check.operators import family_of

            family = family_of(form["operator"])
            assert family is not None, "the judge knows the same operators"
            operator = next(one for one in family.operators if one.name == form["operator"])
            convention = operator.conventions[form["convention"]]
            names = None if form["names"] is None else frozenset(form["names"])
            binding = convention.bind(names, dict(form["options"]))

            def invoke(target: Any, given: Any) -> Any:
                return applied(binding, convention.name, target, given)

            self._bindings[key] = invoke
        return self._bindings[key]


def _prepare(operator: str) -> None:
    """Import what the first call of an operator needs, while the judge does as much."""
    from k3check.operators import family_of

    with contextlib.suppress(BaseException):  # what is wrong will be so at the call
        family_of(operator)


def _inputs_now(value: Any, writer: Any) -> dict[str, Any]:
    """An input after the call."""
    if isinstance(value, list):
        return {"list": [_inputs_now(item, writer) for item in value]}
    return writer.tensor(value) if hasattr(value, "untyped_storage") else {"v": None}


def _noted(given: Mapping[str, Any], writer: Any) -> dict[str, Any]:
    """What sub-layers among the inputs noted of their calls."""
    return {
        name: [[number, writer.tensor(x)] for number, x in value.handed]
        for name, value in given.items()
        if hasattr(value, "handed")
    }


def _accepting(target: Callable[..., Any], accepted: Callable[[Any], Any]) -> Callable[..., Any]:
    """A target whose arrays of other libraries come as tensors."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return accepted(target(*args, **kwargs))

    return guarded(call)


def _described(error: BaseException) -> dict[str, Any]:
    """An exception in plain words; a broken convention by its message."""
    if type(error).__name__ == "ConventionBroken" and hasattr(error, "message"):
        return {"broken": {"code": error.message.code, "values": dict(error.message.values)}}
    if not isinstance(error, CandidateError):
        error = CandidateError.of(error)
    return {"as": error.kind, "error": error.error, "traceback": error.traceback}


def shown(target: Any) -> dict[str, Any]:
    """What a callable shows of itself: its parameters, its module, its name."""
    parameters: list[list[Any]] | None = None
    module = name = ""
    with contextlib.suppress(BaseException):
        signature = inspect.signature(target)
        parameters = [
            [str(p.name), int(p.kind), p.default is inspect.Parameter.empty]
            for p in signature.parameters.values()
        ]
    with contextlib.suppress(BaseException):
        module = str(getattr(target, "__module__", None) or "")
    with contextlib.suppress(BaseException):
        name = str(getattr(target, "__name__", None) or type(target).__name__)
    return {"parameters": parameters, "module": module, "name": name}
