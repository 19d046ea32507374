"""Calling a candidate on fresh copies of its inputs, and looking at these afterwards."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from k3check.nouns.activation import Activation
from k3check.nouns.tensors import is_plain, to_device
from k3check.threads import users_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from k3check.nouns.operator import Candidate
    from k3check.nouns.recipe import Arithmetic
    from k3check.nouns.tensors import Tensors


@dataclass(frozen=True)
class Called:
    """A call that came back.

    Attributes:
        outputs: by canonical name, on the CPU, in memory of their own.
        changed: names of inputs that it changed and should not have.
        seconds: how long it took.
    """

    outputs: Tensors
    changed: list[str]
    seconds: float


def call(
    candidate: Candidate, inputs: Tensors, layout: Callable[[Tensors], Tensors] | None = None
) -> tuple[Tensors, list[str]]:
    """Call the candidate on fresh copies; returns (outputs, names of inputs it changed).

    ``layout`` puts the copies into other memory: views with strides of their own.
    """
    called = begin(candidate, inputs, layout)()
    return called.outputs, called.changed


def begin(
    candidate: Candidate, inputs: Tensors, layout: Callable[[Tensors], Tensors] | None = None
) -> Callable[[], Called]:
    """Begin a call on fresh copies of the inputs; the function returned waits for its end.

    One that lives in this process is called at once.
    """
    runner = candidate.runner
    if runner is None:
        called = _here(candidate, inputs, layout)
        return lambda: called
    given = inputs if layout is None else layout(to_device(inputs, torch.device("cpu")))
    pending = candidate.start(runner, given)

    def finish() -> Called:
        returned = pending()
        changed = _changed(candidate, given, returned.inputs)
        return Called(returned.outputs, changed, returned.seconds)

    return finish


def _here(
    candidate: Candidate, inputs: Tensors, layout: Callable[[Tensors], Tensors] | None
) -> Called:
    """A call in this process."""
    began = time.perf_counter()
    given = to_device(inputs, candidate.recipe.device)
    if layout is not None:
        given = layout(given)
    before = to_device(given, candidate.recipe.device)
    with nullcontext() if candidate.builtin else users_number():
        actual = candidate.call(given)
    if candidate.recipe.device.type == "cuda":
        torch.cuda.synchronize(candidate.recipe.device)
    # A returned tensor may be a view of an input or of another output: take it as it is now.
    outputs = {
        name: value.detach().to("cpu", copy=True)
        if isinstance(value, torch.Tensor) and is_plain(value)
        else value
        for name, value in actual.items()
    }
    return Called(outputs, _changed(candidate, before, given), time.perf_counter() - began)


def _changed(candidate: Candidate, before: Tensors, after: Tensors) -> list[str]:
    """Inputs that are not what they were, but for those that the convention gives away."""
    return [
        name
        for name, value in before.items()
        if name not in candidate.binding.mutates and not unchanged(value, after.get(name))
    ]


def unchanged(before: Any, after: Any) -> bool:
    """Bitwise equality of an input before and after the call."""
    if isinstance(before, list):
        return len(before) == len(after) and all(map(unchanged, before, after))
    if not isinstance(before, torch.Tensor):
        return True
    if not isinstance(after, torch.Tensor) or before.shape != after.shape:
        return False
    return before.dtype == after.dtype and bool(
        torch.equal(before.nan_to_num(), after.nan_to_num())
        if before.is_floating_point()
        else torch.equal(before, after)
    )


def baseline_of(candidate: Candidate, inputs: Tensors, arithmetic: Arithmetic) -> Tensors:
    """The declared semantics on these inputs by the plainest code in some arithmetic."""
    compute = candidate.operator.baseline or candidate.operator.evaluate
    if arithmetic.activation == "plain":
        return compute(candidate.semantics, candidate.interface, inputs, arithmetic)
    with Activation(arithmetic.activation, arithmetic.output):
        return compute(candidate.semantics, candidate.interface, inputs, arithmetic)
