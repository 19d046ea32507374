"""Cases as files: what a command or a folder of tensor files reads and writes.

A case is a folder::

    inputs.safetensors     every tensor
    inputs/                the same for a program without a library: NAME.bin, little-endian and
                           without a header, and index.txt: ``NAME TYPE DIMS D0 D1 ...`` a line
    outputs.safetensors    what the operator returned, or
    outputs/NAME.bin       the same without a header, or
    outputs/NAME.npy       as NumPy writes it

A number among the inputs (``scale``, ``top_k``) is a tensor without dimensions, float64 or int64.
bfloat16 is written to ``.bin`` as it stands: two bytes, the upper half of a float32.

Everything that is read here comes from outside: nothing is allocated before its size was held
against the file's.
"""

from __future__ import annotations

import ctypes
import json
import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import safetensors
import safetensors.torch
import torch

from k3check.model import Message
from k3check.nouns.convention import ConventionBroken

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from k3check.nouns.tensors import Tensors

INPUTS, OUTPUTS, EXPECTED = "inputs", "outputs", "expected"
#: names of the types in index.txt and in a manifest
TYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "int64": torch.int64,
    "int32": torch.int32,
    "int16": torch.int16,
    "int8": torch.int8,
    "uint8": torch.uint8,
    "bool": torch.bool,
}
#: NumPy's names; it has no bfloat16, which is written as its bytes
_NUMPY = {
    "<f8": "float64",
    "<f4": "float32",
    "<f2": "float16",
    "<i8": "int64",
    "<i4": "int32",
    "<i2": "int16",
    "|i1": "int8",
    "|u1": "uint8",
    "|b1": "bool",
    "<u2": "bfloat16",
}
_NPY = b"\x93NUMPY"

MISSING, DAMAGED, OUTSIDE, UNKNOWN = "K3O-750", "K3O-751", "K3O-752", "K3O-753"


@dataclass(frozen=True)
class Form:
    """What an output must look like, which a file without a header cannot say."""

    dtype: torch.dtype
    shape: tuple[int, ...]


def type_name(dtype: torch.dtype) -> str:
    """``float32`` for ``torch.float32``."""
    return str(dtype).removeprefix("torch.")


def as_tensors(values: Tensors) -> dict[str, torch.Tensor]:
    """Inputs as tensors alone: numbers without dimensions, what is None left out."""
    found: dict[str, torch.Tensor] = {}
    for name, value in values.items():
        if isinstance(value, torch.Tensor):
            found[name] = value.detach().cpu().contiguous()
        elif isinstance(value, torch.dtype):
            continue  # the recipe says it, and so does the manifest
        elif isinstance(value, bool | int):
            found[name] = torch.tensor(int(value), dtype=torch.int64)
        elif isinstance(value, float):
            found[name] = torch.tensor(value, dtype=torch.float64)
        elif isinstance(value, list | tuple):
            for number, item in enumerate(value):
                found |= {
                    f"{name}.{n or number}": x for n, x in as_tensors({str(number): item}).items()
                }
    return found


def write(folder: Path, name: str, tensors: Mapping[str, torch.Tensor], *, raw: bool) -> None:
    """Write tensors as ``NAME.safetensors`` and, with ``raw``, as a folder ``NAME`` too."""
    folder.mkdir(parents=True, exist_ok=True)
    # Sorted, so that the same tensors are the same bytes.
    own = {key: tensors[key].clone() for key in sorted(tensors)}
    (folder / f"{name}.safetensors").write_bytes(safetensors.torch.save(own))
    if not raw:
        return
    place = folder / name
    place.mkdir(exist_ok=True)
    lines = []
    for key, x in own.items():
        data = bytes_of(x)
        (place / f"{key}.bin").write_bytes(data)
        (place / f"{key}.npy").write_bytes(npy_header(x) + data)
        lines.append(" ".join([key, type_name(x.dtype), str(x.dim()), *map(str, x.shape)]))
    (place / "index.txt").write_text("".join(f"{line}\n" for line in lines), "ascii")


def bytes_of(x: torch.Tensor) -> bytes:
    """A tensor's values, little-endian, the last dimension fastest."""
    flat = x.contiguous().reshape(-1)
    return ctypes.string_at(flat.data_ptr(), flat.nbytes) if flat.numel() else b""


def npy_header(x: torch.Tensor) -> bytes:
    """The header of NumPy's format, version 1.0."""
    code = next(code for code, name in _NUMPY.items() if name == type_name(x.dtype))
    text = f"{{'descr': '{code}', 'fortran_order': False, 'shape': {tuple(x.shape)}, }}"
    room = -(len(_NPY) + 4 + len(text) + 1) % 64
    body = text.encode("ascii") + b" " * room + b"\n"
    return _NPY + b"\x01\x00" + struct.pack("<H", len(body)) + body


def read_outputs(folder: Path, forms: Mapping[str, Form], root: Path) -> dict[str, torch.Tensor]:
    """What an operator wrote for a case.

    Args:
        folder: the case's.
        forms: every output that there may be.
        root: nothing outside of it is read, whatever links say.

    Raises:
        ConventionBroken: there is nothing, it is damaged, or it is something else.
    """
    single = folder / f"{OUTPUTS}.safetensors"
    if single.exists() or single.is_symlink():
        found = read_safetensors(inside(single, root))
    else:
        place = folder / OUTPUTS
        files = sorted(place.iterdir()) if inside(place, root).is_dir() else []
        found = {
            path.stem: read_plain(inside(path, root), forms.get(path.stem))
            for path in files
            if path.suffix in (".bin", ".npy")
        }
    unknown = sorted({*found} - {*forms})
    if unknown:
        values = {"names": ", ".join(unknown)[:200], "expected": ", ".join(forms)}
        raise ConventionBroken(Message(UNKNOWN, values))
    if not found:
        raise ConventionBroken(Message(MISSING, {"folder": str(folder), "names": ", ".join(forms)}))
    return found


def inside(path: Path, root: Path) -> Path:
    """The path itself.

    Raises:
        ConventionBroken: it leads out of the folder.
    """
    try:
        real = path.resolve()
    except (OSError, RuntimeError) as error:
        raise damaged(path, str(error)) from None
    if not real.is_relative_to(root.resolve()):
        raise ConventionBroken(Message(OUTSIDE, {"file": path.name}))
    return path


def damaged(path: Path, why: str) -> ConventionBroken:
    """A file that is not what its name says."""
    return ConventionBroken(Message(DAMAGED, {"file": path.name, "why": why[:200]}))


def read_safetensors(path: Path) -> dict[str, torch.Tensor]:
    """Every tensor of a file; the library holds each header's sizes against the file's.

    Raises:
        ConventionBroken: it is damaged.
    """
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    except (OSError, ValueError, safetensors.SafetensorError) as error:
        raise damaged(path, str(error).splitlines()[0] if str(error) else "unreadable") from None


def read_plain(path: Path, form: Form | None) -> torch.Tensor:
    """One tensor from a ``.bin`` or ``.npy`` file.

    Raises:
        ConventionBroken: it is damaged, or too short or too long for its form.
    """
    try:
        size = path.stat().st_size
        if path.suffix == ".npy":
            with path.open("rb") as file:
                dtype, shape, start = npy_form(file.read(1024), path)
        elif form is None:
            raise ConventionBroken(Message(UNKNOWN, {"names": path.stem[:200], "expected": ""}))
        else:
            dtype, shape, start = form.dtype, form.shape, 0
        count = math.prod(shape)
        if size - start != count * dtype.itemsize:
            told = f"{size - start} bytes, and {type_name(dtype)} {list(shape)} has "
            raise damaged(path, told + str(count * dtype.itemsize))
        if not count:
            return torch.empty(shape, dtype=dtype)
        flat = torch.from_file(str(path), size=size, dtype=torch.uint8)[start:].clone()
        return flat.view(dtype).reshape(shape)
    except (OSError, RuntimeError) as error:
        raise damaged(path, str(error).splitlines()[0]) from None


def npy_form(head: bytes, path: Path) -> tuple[torch.dtype, tuple[int, ...], int]:
    """(dtype, shape, where the values begin) of NumPy's format.

    Raises:
        ConventionBroken: it is another format, or has values of another kind.
    """
    if head[:6] != _NPY or len(head) < 12:
        raise damaged(path, "no NumPy file")
    wide = head[6] >= 2
    (length,) = struct.unpack_from("<I" if wide else "<H", head, 8)
    start = (12 if wide else 10) + length
    text = head[12 if wide else 10 : start].decode("latin-1").strip()
    # A Python literal with three known keys: as JSON it needs no evaluation.
    plain = text.replace("'", '"').replace("False", "false").replace("True", "true")
    plain = plain.replace("(", "[").replace(",)", "]").replace(")", "]").replace(", }", "}")
    try:
        told = json.loads(plain.replace(",}", "}"))
        dtype, shape = TYPES[_NUMPY[told["descr"]]], tuple(int(n) for n in told["shape"])
    except (ValueError, KeyError, TypeError):
        raise damaged(path, f"a header that says {text[:80]!r}") from None
    if told.get("fortran_order") or any(n < 0 for n in shape):
        raise damaged(path, "the first dimension is the fastest: write it in C order")
    return dtype, shape, start


def forms_of(tensors: Mapping[str, Any], names: Iterable[str]) -> dict[str, Form]:
    """The forms of some tensors."""
    return {n: Form(tensors[n].dtype, tuple(tensors[n].shape)) for n in names if n in tensors}
