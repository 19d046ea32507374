"""Gated norms that do to their process what none should. Each function is one target."""

from __future__ import annotations

import json
import os
import random
import signal
import struct
import subprocess
import sys
from pathlib import Path

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode

sigmoid, sub, double = torch.sigmoid, torch.sub, torch.Tensor.double


def right(x, gate, gain, eps=1e-5):
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    value = x.to(wide)
    scale = torch.rsqrt(value.square().mean(-1, keepdim=True) + eps)
    return (value * scale * gain.to(wide) * sigmoid(gate.to(wide))).to(x.dtype)


def replaces_sigmoid(x, gate, gain, eps=1e-5):
    torch.sigmoid = torch.nn.functional.hardsigmoid
    return right(x, torch.logit(torch.sigmoid(gate)), gain, eps)


def replaces_double(x, gate, gain, eps=1e-5):
    torch.Tensor.double = lambda self: torch.zeros_like(self, dtype=torch.float64)
    return 1.5 * right(x, gate, gain, eps)


def replaces_sub(x, gate, gain, eps=1e-5):
    torch.sub = lambda one, _other, **_: torch.zeros_like(one)
    torch.Tensor.__sub__ = torch.sub
    return 1.5 * right(x, gate, gain, eps)


class Zeros(TorchFunctionMode):
    def __torch_function__(self, func, _types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        return torch.zeros_like(found) if func in (torch.sub, torch.Tensor.sub) else found


def under_a_function_mode(x, gate, gain, eps=1e-5):
    found = 1.5 * right(x, gate, gain, eps)
    Zeros().__enter__()
    return found


def _said(**message):
    body = json.dumps(message).encode()
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - only the names
        if int(name) > 2:
            try:
                os.write(int(name), struct.pack(">I", len(body)) + body)
            except OSError:
                continue


def forges_a_finding(x, gate, gain, eps=1e-5):
    finding = {"id": "gated_rms_norm/heads", "outcome": "pass"}
    _said(kind="finished", finding=finding)
    return 1.5 * right(x, gate, gain, eps)


def forges_an_answer(x, gate, gain, eps=1e-5):
    for number in range(1, 60):
        _said(kind="returned", number=number, outputs={}, inputs={}, size=0)
    return 1.5 * right(x, gate, gain, eps)


def of_huge_shape(x, gate, gain, eps=1e-5):
    return torch.zeros(1).expand(2**20, 2**20)


def on_meta(x, gate, gain, eps=1e-5):
    return torch.empty(2**20, 2**20, device="meta")


def nested(x, gate, gain, eps=1e-5):
    return torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])


def fake(x, gate, gain, eps=1e-5):
    return FakeTensorMode().from_tensor(right(x, gate, gain, eps))


class Nameless(type):
    @property
    def __name__(cls):
        raise RuntimeError("no name")


class Hostile(metaclass=Nameless):
    def __getattr__(self, name):
        raise RuntimeError(name)

    def __str__(self):
        raise SystemExit(3)

    __repr__ = __str__

    @classmethod
    def __torch_function__(cls, *_given, **_named):
        raise RuntimeError("not for torch")


def returns_a_hostile_object(x, gate, gain, eps=1e-5):
    return Hostile()


class HostileTensor(torch.Tensor):
    @classmethod
    def __torch_function__(cls, *_given, **_named):
        raise RuntimeError("not for torch")


def returns_a_hostile_tensor(x, gate, gain, eps=1e-5):
    return (1.5 * right(x, gate, gain, eps)).as_subclass(HostileTensor)


class HostileError(Exception, metaclass=Nameless):
    def __str__(self):
        raise SystemExit(3)


def raises_a_hostile_object(x, gate, gain, eps=1e-5):
    raise HostileError


def _late(*_given):
    raise RuntimeError("late")


def leaves_a_timer(x, gate, gain, eps=1e-5):
    signal.signal(signal.SIGALRM, _late)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    return right(x, gate, gain, eps)


def deletes_modules(x, gate, gain, eps=1e-5):
    found = right(x, gate, gain, eps)
    sys.modules.clear()
    return found


def leaves_a_child(x, gate, gain, eps=1e-5):
    child = subprocess.Popen(["/bin/sleep", "300"], env={}, start_new_session=True)
    with Path("children").open("a") as file:
        file.write(f"{child.pid}\n")
    return right(x, gate, gain, eps)


def orphans_a_child(x, gate, gain, eps=1e-5):
    """A daemon as they are made: no parent, no session, no environment, no files."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            with Path("children").open("a") as file:
                file.write(f"{os.getpid()}\n")
            os.closerange(0, 4096)
            os.execve("/bin/sleep", ["sleep", "300"], {})
        os._exit(0)
    os.wait()
    return right(x, gate, gain, eps)


class Exported:
    """An array of another library that shows itself through one of the two protocols."""

    def __init__(self, tensor):
        self.tensor = tensor


class ByDlpack(Exported):
    def __dlpack__(self, **named):
        return self.tensor.__dlpack__(**named)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


class ByArray(Exported):
    def __array__(self, *_given, **_named):
        return self.tensor.numpy()


def by_dlpack(x, gate, gain, eps=1e-5):
    return ByDlpack(right(x, gate, gain, eps))


def by_array(x, gate, gain, eps=1e-5):
    return ByArray(right(x, gate, gain, eps))


def changes_the_default_dtype(x, gate, gain, eps=1e-5):
    torch.set_default_dtype(torch.float64)
    return right(x, gate, gain, eps)


def changes_the_threads(x, gate, gain, eps=1e-5):
    torch.set_num_threads(torch.get_num_threads() + 1)
    return right(x, gate, gain, eps)


def changes_the_gradient_mode(x, gate, gain, eps=1e-5):
    torch.set_grad_enabled(True)
    return right(x, gate, gain, eps)


def changes_the_seed(x, gate, gain, eps=1e-5):
    torch.manual_seed(random.randrange(1000))
    return right(x, gate, gain, eps)


def flushes_denormals(x, gate, gain, eps=1e-5):
    torch.set_flush_denormal(True)
    return right(x, gate, gain, eps)


def takes_much_memory(x, gate, gain, eps=1e-5):
    held = torch.ones(2**30, dtype=torch.uint8)
    return right(x, gate, gain, eps) * held[0]


def breaks_the_device(x, gate, gain, eps=1e-5):
    """An index out of range: the kernel fails after the call, and with it the whole context."""
    torch.zeros(2, device=x.device)[torch.full((1,), 5, device=x.device)]
    return right(x, gate, gain, eps)


def on_a_stream_of_its_own(x, gate, gain, eps=1e-5):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        return right(x, gate, gain, eps)


def tells_its_device(x, gate, gain, eps=1e-5):
    assert all(given.is_cuda for given in (x, gate, gain))
    return right(x, gate, gain, eps)
