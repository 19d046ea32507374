"""Correct candidates of every legal kind: none of them may fail or get a diagnosis."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from tests.kill_matrix.matrix import Form, candidate_with, distinct_semantics, operators, run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.model import Finding
    from k3check.nouns.operator import Operator

DTYPES = ("float64", "float32", "bfloat16", "float16")
CHUNK_SIZES = (16, 32, 64, 128)


@dataclass(frozen=True)
class Variant:
    """A correct candidate.

    Attributes:
        kind: what is special about it.
        target: None for the built-in.
        own: cases only, or every check of the operator.
    """

    form: Form
    kind: str
    dtype: str
    target: Callable[..., Any] | None = None
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    own: bool = False

    @property
    def where(self) -> str:
        """For lists."""
        return f"{self.form.label} · {self.dtype} · seed {self.seed} · {self.kind}"

    def findings(self, profile: str) -> dict[str, Finding]:
        """Run it."""
        return run(
            self.form,
            self.target,
            profile,
            dtype=self.dtype,
            seed=self.seed,
            options=dict(self.options),
            own=self.own,
        )


def strided(target: Callable[..., Any]) -> Callable[..., Any]:
    """The same, returning views into larger tensors instead of contiguous ones."""

    def view(x: Any) -> Any:
        if not isinstance(x, torch.Tensor) or not x.dim():
            return x
        return torch.stack([x, torch.full_like(x, 7)], dim=-1)[..., 0]

    def call(*given: Any, **named: Any) -> Any:
        result = target(*given, **named)
        return tuple(map(view, result)) if isinstance(result, tuple) else view(result)

    return call


def variants(operator: Operator) -> list[Variant]:
    """Every semantics, recipe and seed, chunk sizes where there are chunks, strided outputs."""
    found: list[Variant] = []
    names = distinct_semantics(operator)
    for name in names:
        form = Form(operator.name, name)
        for dtype in DTYPES:
            found.append(Variant(form, "built-in", dtype))
            plain = candidate_with(operator, form, dtype)
            found.append(Variant(form, "plainest code", dtype, plain, own=True))
    form = Form(operator.name, names[0])
    for seed in range(1, 5):
        found += [Variant(form, "built-in", dtype, seed=seed) for dtype in DTYPES[1:3]]
    builtin = operator.builtin({})
    for dtype in DTYPES[1:3]:
        found.append(Variant(form, "strided outputs", dtype, strided(builtin), own=True))
    if "chunk_size" in inspect.signature(builtin).parameters:
        for size in CHUNK_SIZES:
            for dtype in DTYPES[1:3]:
                options = {"chunk_size": size}
                found.append(Variant(form, f"chunks of {size}", dtype, options=options, own=True))
    return found


def all_variants() -> list[Variant]:
    """Of every operator."""
    return [v for operator in operators().values() for v in variants(operator)]
