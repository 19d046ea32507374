"""Calling a candidate on fresh copies of its inputs, and looking at these afterwards."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import torch

from k3check.nouns.tensors import is_plain, to_device
from k3check.threads import users_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from k3check.nouns.operator import Candidate
    from k3check.nouns.recipe import Arithmetic
    from k3check.nouns.tensors import Tensors


def call(
    candidate: Candidate, inputs: Tensors, layout: Callable[[Tensors], Tensors] | None = None
) -> tuple[Tensors, list[str]]:
    """Call the candidate on fresh copies; returns (outputs, names of inputs it changed).

    ``layout`` puts the copies into other memory, on the device: views with strides of their own.
    """
    given = to_device(inputs, candidate.recipe.device)
    if layout is not None:
        given = layout(given)
    before = to_device(given, candidate.recipe.device)
    with nullcontext() if candidate.builtin else users_number():
        actual = candidate.call(given)
    if candidate.recipe.device.type == "cuda":
        torch.cuda.synchronize(candidate.recipe.device)
    changed = [
        name
        for name, value in before.items()
        if name not in candidate.binding.mutates and not unchanged(value, given[name])
    ]
    # A returned tensor may be a view of an input or of another output: take it as it is now.
    outputs = {
        name: value.detach().to("cpu", copy=True)
        if isinstance(value, torch.Tensor) and is_plain(value)
        else value
        for name, value in actual.items()
    }
    return outputs, changed


def unchanged(before: Any, after: Any) -> bool:
    """Bitwise equality of an input before and after the call."""
    if isinstance(before, list):
        return all(unchanged(b, a) for b, a in zip(before, after, strict=True))
    return not isinstance(before, torch.Tensor) or bool(
        torch.equal(before.nan_to_num(), after.nan_to_num())
        if before.is_floating_point()
        else torch.equal(before, after)
    )


def baseline_of(candidate: Candidate, inputs: Tensors, arithmetic: Arithmetic) -> Tensors:
    """The declared semantics on these inputs by the plainest code in some arithmetic."""
    compute = candidate.operator.baseline or candidate.operator.evaluate
    return compute(candidate.semantics, candidate.interface, inputs, arithmetic)
