"""What a callable may leave changed for everything after it: looked at, named, and put back."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

#: Every name that a runner may say was changed; the judge takes no other.
NAMES = (
    "default dtype", "default device", "number of threads", "gradient mode", "seed",
    "flushing of denormal numbers", "precision of float32 products", "deterministic algorithms",
    "working directory", "timer", "signal handler", "torch function mode", "loaded modules",
    "torch's functions",
)  # fmt: skip

#: What libraries replace, and careless operators too: the judge's torch is another one.
_WATCHED = (
    (torch, ("sigmoid", "exp", "log", "sub", "add", "mul", "matmul", "einsum", "softmax", "empty")),
    (torch.Tensor, ("double", "float", "to", "detach", "clone", "sub", "add", "mul", "matmul")),
)
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)


@dataclass
class State:
    """How everything global stood before the user's callable was called.

    Attributes:
        directory: the working directory that every call starts in.
    """

    directory: str
    _before: dict[str, Any] = field(default_factory=dict)
    _modules: dict[str, Any] = field(default_factory=dict)

    def note(self) -> None:
        """Take it as it is."""
        self._before = {name: look() for name, (look, _) in _LOOKS.items()}
        self._modules = dict(sys.modules)

    def restore(self) -> list[str]:
        """Put it back; returns the names of what was changed."""
        changed = []
        for name, (look, put) in _LOOKS.items():
            before = self._before[name]
            try:
                if look() != before:
                    changed.append(name)
                    put(before)
            except BaseException:  # noqa: BLE001 - broken to that degree is changed
                changed.append(name)
        try:
            here = os.getcwd()  # noqa: PTH109 - the folder may be gone
        except OSError:
            here = ""
        if here != self.directory:
            changed.append("working directory")
            os.chdir(self.directory)
        if any(name not in sys.modules for name in self._modules):
            gone = {n: m for n, m in self._modules.items() if n not in sys.modules}
            # A library that unloads a module of its own is no concern of ours.
            if any(name.partition(".")[0] in ("torch", "os", "sys", "k3check") for name in gone):
                changed.append("loaded modules")
            sys.modules.update(gone)
        return [name for name in NAMES if name in changed]


def disarm() -> bool:
    """Stop timers that are left running; they would raise in whatever comes next."""
    left = False
    for timer in _TIMERS:
        left |= signal.setitimer(timer, 0)[0] > 0
    return left


def _handlers() -> dict[int, Any]:
    return {
        n: signal.getsignal(n)
        for n in (signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF, signal.SIGINT, signal.SIGTERM)
    }


def _put_handlers(before: dict[int, Any]) -> None:
    for number, handler in before.items():
        with contextlib.suppress(TypeError, ValueError, OSError):
            signal.signal(number, handler)


def _functions() -> list[Any]:
    return [getattr(holder, name) for holder, names in _WATCHED for name in names]


def _put_functions(before: list[Any]) -> None:
    places = [(holder, name) for holder, names in _WATCHED for name in names]
    for (holder, name), function in zip(places, before, strict=True):
        if getattr(holder, name) is not function:
            setattr(holder, name, function)


def _device_context() -> Any:
    return getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)


def _modes() -> tuple[int, int]:
    # A default device is a mode of its own.
    functions = torch._C._len_torch_function_stack() - (_device_context() is not None)
    return functions, torch._C._len_torch_dispatch_stack()


def _put_modes(before: tuple[int, int]) -> None:
    while _modes()[0] > before[0]:
        torch._C._pop_torch_function_stack()
    while torch._C._len_torch_dispatch_stack() > before[1]:
        torch._C._pop_torch_dispatch_stack(None)


def _default_device() -> str:
    context = _device_context()
    return "cpu" if context is None else str(context.device)


def _put_default_device(before: str) -> None:
    torch.set_default_device(None if before == "cpu" else before)


def _put_seed(before: int) -> None:
    random.seed(before)
    torch.manual_seed(before)


def _flushes() -> bool:
    """Whether a denormal number is taken for zero; asked of the processor, torch does not say."""
    return not (sys.float_info.min * one_half())


def one_half() -> float:
    """0.5, from a call: a product of two constants is computed when the file is compiled."""
    return 0.5


#: name -> (how it stands, how to put it back); modes first, or they would see what follows
_LOOKS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "default device": (_default_device, _put_default_device),
    "torch function mode": (_modes, _put_modes),
    "torch's functions": (_functions, _put_functions),
    "default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "number of threads": (torch.get_num_threads, torch.set_num_threads),
    "gradient mode": (torch.is_grad_enabled, torch.set_grad_enabled),
    "seed": (torch.initial_seed, _put_seed),
    "flushing of denormal numbers": (_flushes, torch.set_flush_denormal),
    "precision of float32 products": (
        torch.get_float32_matmul_precision, torch.set_float32_matmul_precision,
    ),
    "deterministic algorithms": (
        torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms,
    ),
    "signal handler": (_handlers, _put_handlers),
}  # fmt: skip
