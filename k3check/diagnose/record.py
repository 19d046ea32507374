"""What is kept of every case that ran, so that a diagnosis can rest on all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from k3check.compare.allowance import floor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.nouns.operator import Candidate, Output
    from k3check.nouns.tensors import Tensors

#: An operator's many cases fit into this many bytes of records; beyond it, passing cases of
#: large tensors are not kept.
KEEP_BYTES = 512 * 2**20


@dataclass(frozen=True)
class Record:
    """One case that ran: inputs, what came out, what should have, and what rounding costs.

    Attributes:
        unit: output name -> the error that counts as one: the baseline's own plus half the
            floor. A residual is given in these units.
        failed: whether the comparison failed.
        sets: what came out whose order says nothing (ids), by name.
        facts: what the reference tells about the call (see :func:`k3check.mutate.site.note`).
        shown: the part of a prediction that is compared; all of it if None.
    """

    case: str
    inputs: Tensors
    actual: Tensors
    reference: Tensors
    unit: Mapping[str, float]
    failed: bool
    size: int = field(default=0)
    sets: Tensors = field(default_factory=dict)
    shown: Callable[[Tensors], Tensors] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


def record(
    candidate: Candidate,
    case: str,
    inputs: Tensors,
    actual: Tensors,
    reference: Tensors,
    baseline: Tensors,
    *,
    failed: bool,
) -> Record:
    """Make a record of a case whose outputs have the right form."""
    units = {
        output.name: unit(output, actual, reference, baseline, candidate)
        for output in judged(candidate, reference)
    }
    size = sum(x.numel() for x in reference.values() if isinstance(x, torch.Tensor))
    kept = {name: actual[name] for name in units}
    sets = {
        output.name: actual[output.name]
        for output in candidate.operator.outputs
        if output.compare == "set" and output.name in reference
    }
    return Record(case, inputs, kept, dict(reference), units, failed, size, sets)


def judged(candidate: Candidate, reference: Tensors) -> list[Output]:
    """The outputs that carry values and have a reference."""
    return [
        output
        for output in candidate.operator.outputs
        if output.compare != "set" and output.name in reference
    ]


def unit(
    output: Output,
    actual: Tensors,
    reference: Tensors,
    baseline: Tensors,
    candidate: Candidate,
) -> float:
    """The relative error of the baseline plus half the floor."""
    least = floor(actual[output.name].dtype, candidate.recipe.accumulate)
    return distance(baseline[output.name], reference[output.name]) + 0.5 * least


def distance(x: torch.Tensor, y: torch.Tensor) -> float:
    """Relative L2 of x against y; infinite if they are not finite in the same places."""
    x, y = x.double(), y.double()
    finite = torch.isfinite(y)
    if not torch.equal(torch.isfinite(x), finite):
        return float("inf")
    if not finite.all():
        x, y = torch.where(finite, x, 0), torch.where(finite, y, 0)
    size = y.norm().item()
    gap = (x - y).norm().item()
    if size == 0.0:
        return 0.0 if gap == 0.0 else float("inf")
    return gap / size
