"""Named tensors through a file: safetensors for what has values, a few words for what has none.

Every value is described by one small JSON object, in which a tensor is a key of the file:

    {"t": "3"}                          a tensor as it stands in the file
    {"t": "3", "dtype": ..., "shape"}   one of a dtype that the format lacks, there as bytes
    {"t": "3", "shape", "stride", "offset"}   a view: the file has the memory that it looks at
    {"large": dtype, "shape": [...]}    an output that is too large to be right: only its form
    {"foreign": kind, "tensor": bool}   no tensor, or one without values
    {"list": [...]} {"sublayers": {...}} {"dtype": name} {"v": plain value}
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import safetensors.torch
import torch

from k3check.nouns.runner import Foreign, Sublayers
from k3check.nouns.tensors import is_plain
from k3check.runners.wire import BrokenWireError

if TYPE_CHECKING:
    from k3check.nouns.tensors import Tensors

#: What an output may weigh at least; beside that, in multiples of the inputs.
LEAST_LIMIT_BYTES = 2**28
TIMES_THE_INPUTS = 16

#: No operator returns that many tensors, nor one of so many dimensions.
MOST_VALUES = 4096
MOST_DIMS = 64
MOST_CHARACTERS = 200

_STORED = {
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
    torch.int16, torch.int8, torch.uint8, torch.bool,
}  # fmt: skip
_HEADER_BYTES = 2**20


class Writer:
    """Collects tensors for one file."""

    def __init__(self) -> None:
        self._tensors: dict[str, torch.Tensor] = {}

    @property
    def size(self) -> int:
        """Bytes collected so far."""
        return sum(x.numel() * x.element_size() for x in self._tensors.values())

    def tensor(self, x: torch.Tensor) -> dict[str, Any]:
        """A tensor's values; its strides are not kept."""
        x = x.detach().to("cpu")
        told: dict[str, Any] = {}
        if x.is_conj() or x.is_neg():
            x = x.resolve_conj().resolve_neg()
        if x.dtype not in _STORED:
            told = {"dtype": _name(x.dtype), "shape": list(x.shape)}
            x = x.contiguous().reshape(-1).view(torch.uint8)
        # The format refuses tensors that share memory.
        x = x.clone(memory_format=torch.contiguous_format)
        key = str(len(self._tensors))
        self._tensors[key] = x
        return {"t": key, **told}

    def memory(self, x: torch.Tensor) -> dict[str, Any]:
        """A tensor with its strides, and with what else stands in its memory."""
        if x.is_contiguous():
            return self.tensor(x)
        count = x.untyped_storage().nbytes() // x.element_size()
        flat = x.detach().as_strided((count,), (1,), 0)
        place = {"stride": list(x.stride()), "offset": x.storage_offset()}
        return {**self.tensor(flat), "view": list(x.shape), **place}

    def given(self, value: Any) -> dict[str, Any]:
        """An input.

        Raises:
            TypeError: it is nothing that an operator is given.
        """
        if isinstance(value, torch.Tensor):
            return self.memory(value)
        if isinstance(value, Sublayers):
            return {"sublayers": self.tensor(value.updates)}
        if isinstance(value, list | tuple):
            return {"list": [self.given(item) for item in value]}
        if isinstance(value, torch.dtype):
            return {"dtype": _name(value)}
        if value is None or isinstance(value, bool | int | float | str):
            return {"v": value}
        raise TypeError(f"an input of the type {type(value).__name__} cannot be handed to a runner")

    def returned(self, value: Any, limit: int) -> dict[str, Any]:
        """An output, whatever it is.

        Args:
            value: from the user's code.
            limit: bytes that all outputs together may have.
        """
        if isinstance(value, torch.Tensor):
            x = plain(value)
            if isinstance(x, Foreign):
                return {"foreign": x.kind, "tensor": True}
            if self.size + x.numel() * x.element_size() > limit:
                return {"large": _name(x.dtype), "shape": list(x.shape)}
            return self.tensor(x)
        if value is None or type(value) in (bool, int, float):
            return {"v": value}
        if type(value) is str and len(value) <= MOST_CHARACTERS:
            return {"v": value}
        if type(value) in (list, tuple) and len(value) <= MOST_VALUES:
            return {"list": [self.returned(item, limit) for item in value]}
        return {"foreign": type(value).__name__[:MOST_CHARACTERS], "tensor": False}

    def write(self, fd: int) -> int:
        """Replace a file's contents; returns its size."""
        data = memoryview(safetensors.torch.save(self._tensors))
        os.ftruncate(fd, 0)
        at = 0
        while at < len(data):
            at += os.pwrite(fd, data[at:], at)
        return at


def plain(x: torch.Tensor) -> torch.Tensor | Foreign:
    """A tensor without its subclass, or what kind of tensor without values of its own it is."""
    if x.is_nested:
        return Foreign("nested", is_tensor=True)
    if not is_plain(x):
        kind = "meta" if x.is_meta else str(x.layout).removeprefix("torch.")
        return Foreign("quantized" if x.is_quantized else kind, is_tensor=True)
    if type(x) not in (torch.Tensor, torch.nn.Parameter):
        name = type(x).__name__[:MOST_CHARACTERS]
        with torch._C.DisableTorchFunctionSubclass():
            x = x.as_subclass(torch.Tensor)
        if type(x) is not torch.Tensor:
            return Foreign(name, is_tensor=True)
    return x


class Reader:
    """The tensors of one file that was read as a whole."""

    def __init__(self, data: bytes) -> None:
        """Read them.

        Args:
            data: what the file held; the header's sizes are held against it.

        Raises:
            BrokenWireError: that is no such file.
        """
        header = int.from_bytes(data[:8], "little")
        if len(data) < 8 or header > min(_HEADER_BYTES, len(data) - 8):
            raise BrokenWireError(f"a file of tensors with a header of {header} bytes")
        try:
            self._tensors: dict[str, torch.Tensor] = safetensors.torch.load(data)
        except Exception as error:
            raise BrokenWireError(f"a damaged file of tensors: {str(error)[:200]}") from error

    def value(self, told: Any, *, depth: int = 0) -> Any:
        """What is described.

        Raises:
            BrokenWireError: it is not described as it should be.
        """
        if not isinstance(told, dict) or depth > 8:
            raise BrokenWireError("a value that is not described")
        try:
            return self._value(told, depth)
        except BrokenWireError:
            raise
        except Exception as error:  # sizes that do not fit each other, wrong types
            raise BrokenWireError(f"a damaged value: {str(error)[:200]}") from error

    def _value(self, told: dict[str, Any], depth: int) -> Any:
        if "t" in told:
            return self._tensor(told)
        if "large" in told:
            shape = _shape(told["shape"])
            return torch.empty((), dtype=_dtype(told["large"])).expand(shape)
        if "foreign" in told:
            return Foreign(str(told["foreign"])[:MOST_CHARACTERS], is_tensor=bool(told["tensor"]))
        if "sublayers" in told:
            return Sublayers(self._tensor(told["sublayers"]))
        if "dtype" in told:
            return _dtype(told["dtype"])
        if "list" in told:
            if len(told["list"]) > MOST_VALUES:
                raise BrokenWireError("a list of too many values")
            return [self.value(item, depth=depth + 1) for item in told["list"]]
        value = told["v"]
        if value is not None and type(value) not in (bool, int, float, str):
            raise BrokenWireError("a value that is not plain")
        return value

    def _tensor(self, told: dict[str, Any]) -> torch.Tensor:
        x = self._tensors[told["t"]]
        if "dtype" in told:
            x = x.view(_dtype(told["dtype"])).reshape(_shape(told["shape"]))
        if "view" in told:
            x = x.as_strided(_shape(told["view"]), told["stride"], told["offset"])
        return x

    def values(self, told: Any) -> Tensors:
        """Several by name.

        Raises:
            BrokenWireError: they are not described as they should be.
        """
        if not isinstance(told, Mapping) or len(told) > MOST_VALUES:
            raise BrokenWireError("outputs that are not described")
        return {str(name): self.value(one) for name, one in told.items()}


def moved(value: Any, device: torch.device) -> Any:
    """An input on a device, a view as a view of memory of its own there."""
    if isinstance(value, torch.Tensor):
        if value.is_contiguous():
            return value.to(device, copy=True)
        count = value.untyped_storage().nbytes() // value.element_size()
        flat = value.as_strided((count,), (1,), 0).to(device, copy=True)
        return flat.as_strided(value.shape, value.stride(), value.storage_offset())
    if isinstance(value, Sublayers):
        return Sublayers(value.updates.to(device))
    if isinstance(value, list):
        return [moved(item, device) for item in value]
    return value


def read_file(fd: int, size: Any, limit: int) -> bytes:
    """A file's first bytes.

    Args:
        fd: the file.
        size: how many, as the other side says.
        limit: how many there may be.

    Raises:
        BrokenWireError: it does not have so many, or that is too many.
    """
    if type(size) is not int or not 0 <= size <= min(limit, os.fstat(fd).st_size):
        raise BrokenWireError(f"a file of {str(size)[:40]} bytes, at most {limit}")
    parts = []
    at = 0
    while at < size:
        part = os.pread(fd, size - at, at)
        if not part:
            raise BrokenWireError("a file that was cut")
        parts.append(part)
        at += len(part)
    return b"".join(parts)


def accepted(result: Any) -> Any:
    """A callable's result with the arrays of other libraries as tensors.

    Whatever speaks ``__dlpack__`` or ``__array__`` is one; tuples, lists and dicts are looked into.
    """
    if isinstance(result, torch.Tensor) or result is None:
        return result
    kind = type(result)
    if kind in (bool, int, float, complex, str, bytes):
        return result
    if kind in (list, tuple):
        return kind(accepted(item) for item in result)
    if kind is dict:
        return {name: accepted(item) for name, item in result.items()}
    if isinstance(result, tuple) and hasattr(kind, "_make"):
        return kind._make(accepted(item) for item in result)
    if hasattr(kind, "__dlpack__"):
        return torch.utils.dlpack.from_dlpack(result)
    if hasattr(kind, "__array__"):
        return torch.as_tensor(result.__array__())
    return result


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _dtype(name: Any) -> torch.dtype:
    found = getattr(torch, name, None) if isinstance(name, str) else None
    if not isinstance(found, torch.dtype):
        raise BrokenWireError(f"no dtype {str(name)[:40]!r}")
    return found


def _shape(told: Any) -> tuple[int, ...]:
    shape = tuple(told)
    if len(shape) > MOST_DIMS or any(type(n) is not int or n < 0 for n in shape):
        raise BrokenWireError("a shape that is none")
    if math.prod(n for n in shape if n) >= 2**62:
        raise BrokenWireError("a shape that no tensor has")
    return shape
