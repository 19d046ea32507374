"""A folder of tensor files as a runner: what another machine made of the inputs that lie there."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from k3check.model import Message
from k3check.nouns.convention import ConventionBroken
from k3check.nouns.runner import Handed, Returned, Runner
from k3check.runners import files, manifest
from k3check.runners.files import Form
from k3check.runners.manifest import MANIFEST, folders

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from k3check.nouns.tensors import Tensors

CHANGED, ANOTHER, NOT_STORED = "K3O-757", "K3O-758", "K3O-759"


@dataclass(frozen=True)
class Entry:
    """One case of a manifest.

    Attributes:
        case: its name.
        folder: where its files are, below the manifest's folder.
        values: inputs that are no tensors: numbers, and None.
        outputs: the forms of what is to be returned.
        hashes: file -> SHA-256 as it was written.
    """

    case: str
    folder: str
    values: Mapping[str, Any]
    outputs: Mapping[str, Form]
    hashes: Mapping[str, str]


@dataclass(frozen=True)
class Folder(Runner):
    """The stored cases of one operator.

    Attributes:
        root: the manifest's folder.
        entries: by case.
        dtype: what the operator's inputs and outputs are in.
    """

    root: Path
    entries: Mapping[str, Entry]
    dtype: torch.dtype

    @property
    def cases(self) -> frozenset[str]:
        """What was exported."""
        return frozenset(self.entries)

    def stored(self, case: str) -> Tensors | None:
        """A case's inputs as they lie there; None where the folder does not have it.

        Raises:
            ConventionBroken: they are not what the manifest says.
        """
        entry = self.entries.get(case)
        if entry is None:
            return None
        path = files.inside(self.root / entry.folder / f"{files.INPUTS}.safetensors", self.root)
        if not path.is_file():
            raise files.damaged(path, "it is missing")
        wanted = entry.hashes.get(path.name)
        if wanted is not None and sha256(path) != wanted:
            raise ConventionBroken(Message(CHANGED, {"file": f"{entry.folder}/{path.name}"}))
        stored: dict[str, Any] = dict(files.read_safetensors(path))
        found: dict[str, Any] = {}
        for name, value in stored.items():
            stem, dot, number = name.rpartition(".")
            if dot and number.isdigit():  # one of several: they come in order
                found.setdefault(stem, []).append((int(number), value))
            elif name not in entry.values:
                found[name] = value
        for name, value in found.items():
            if isinstance(value, list):
                found[name] = [item for _, item in sorted(value, key=lambda pair: pair[0])]
        own = {n: self.dtype if v == "dtype" else v for n, v in entry.values.items()}
        return {**found, **own}

    def start(
        self, inputs: Tensors, device: torch.device, *, live: bool = False
    ) -> Callable[[], Returned]:
        """Look the outputs up; see :meth:`Runner.start`.

        The returned function raises:
            ConventionBroken: the inputs are no stored case's, or their outputs cannot be used.
        """
        del device, live  # the work was done elsewhere, long ago

        def finish() -> Returned:
            for entry in self.entries.values():
                if same(self.stored(entry.case), inputs):
                    return Returned(self._outputs(entry), inputs, Handed(calls=1))
            raise ConventionBroken(Message(NOT_STORED))

        return finish

    def _outputs(self, entry: Entry) -> Tensors:
        found = files.read_outputs(self.root / entry.folder, entry.outputs, self.root)
        for other in self.entries.values():
            if other.case != entry.case and holds(self.root / other.folder, found):
                raise ConventionBroken(Message(ANOTHER, {"case": other.case}))
        return dict(found)


def holds(folder: Path, outputs: Mapping[str, torch.Tensor]) -> bool:
    """Whether these are just what is expected of another case."""
    path = folder / f"{files.EXPECTED}.safetensors"
    if not path.is_file():
        return False
    expected = files.read_safetensors(path)
    return bool(outputs) and all(
        name in expected
        and x.numel() > 1
        and expected[name].shape == x.shape
        and torch.allclose(expected[name].double(), x.double(), rtol=1e-2, atol=1e-6)
        for name, x in outputs.items()
    )


def same(stored: Tensors | None, given: Tensors) -> bool:
    """Whether two sets of inputs are equal, NaN included."""
    if stored is None or {n for n, v in stored.items() if v is not None} != {
        n for n, v in given.items() if v is not None
    }:
        return False
    one, other = files.as_tensors(stored), files.as_tensors(given)
    return {*one} == {*other} and all(
        x.shape == other[n].shape
        and x.dtype == other[n].dtype
        and torch.equal(x.nan_to_num(), other[n].nan_to_num())
        for n, x in one.items()
    )


def sha256(path: Path) -> str:
    """The hash of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def entry_of(case: Mapping[str, Any]) -> Entry:
    """One case of a manifest.

    Raises:
        KeyError, TypeError, ValueError: it lacks something, or has something else.
    """
    outputs = {
        str(name): Form(files.TYPES[told["dtype"]], tuple(int(n) for n in told["shape"]))
        for name, told in case["outputs"].items()
    }
    return Entry(
        case=str(case["case"]),
        folder=str(case["folder"]),
        values=dict(case.get("values", {})),
        outputs=outputs,
        hashes=dict(case.get("sha256", {})),
    )


def folder_of(root: Path, operator: str) -> Folder:
    """What a folder has of an operator.

    Raises:
        UsageError: it has nothing of it, or cannot be read.
    """
    known = folders(root)
    cases = known.get(operator)
    if not cases:
        raise manifest.unusable(
            "K3C-243",
            str(root / MANIFEST),
            found=", ".join(sorted(known))[:200],
            accepted=operator,
        )
    try:
        entries = {entry.case: entry for entry in map(entry_of, cases)}
        dtype = files.TYPES[cases[0]["recipe"]["dtype"]]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise manifest.unusable(
            "K3C-242",
            f"{root / MANIFEST}  {operator}",
            found=f"{type(error).__name__}: {error}"[:200],
            accepted="dtypes and shapes as exported",
        ) from None
    return Folder(root, entries, dtype)
