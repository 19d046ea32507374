"""What a mistake predicts in a case, and how far that is from what came out."""

from __future__ import annotations

import math
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from k3check.compare.sets import agree, form_problem
from k3check.diagnose.record import distance
from k3check.nouns.recipe import EXACT, rounding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from k3check.diagnose.record import Record
    from k3check.nouns.fault import Fault
    from k3check.nouns.operator import Candidate
    from k3check.nouns.recipe import Arithmetic
    from k3check.nouns.tensors import Tensors

#: A fault explains a case if what it predicts is within this many units of what came out.
NEAR = 2.0
#: A prediction that its own rounding moves by more than this says nothing.
SOUND = 0.05


def predict(
    candidate: Candidate, faults: Sequence[Fault], inputs: Tensors, arithmetic: Arithmetic = EXACT
) -> Tensors:
    """What a candidate with these mistakes returns; without rounding, unless told otherwise."""
    semantics = candidate.semantics
    for fault in faults:
        semantics = fault.applied(semantics)
    with ExitStack() as changes:
        for fault in faults:
            if fault.during is not None:
                changes.enter_context(fault.during())
        outputs = candidate.operator.evaluate(semantics, candidate.interface, inputs, arithmetic)
    for fault in faults:
        if fault.transform is not None:
            outputs = fault.transform(outputs, inputs)
    shown = [fault.only for fault in faults if fault.only]
    if not shown:
        return outputs
    others = [fault for fault in faults if not fault.only]
    right = predict(candidate, others, inputs, arithmetic)
    return right | {name: outputs[name] for only in shown for name in only if name in outputs}


@dataclass(frozen=True)
class Residual:
    """How far a prediction is from what came out in one case.

    Attributes:
        units: the largest over the outputs.
        doubtful: the prediction's own rounding was not looked at and may be all of it.
    """

    units: float
    doubtful: bool = False


def residual(
    candidate: Candidate, faults: Sequence[Fault], seen: Record, *, careful: bool = False
) -> Residual | None:
    """Largest distance over the outputs between prediction and what came out, in units.

    A mistake can make the operator itself ill-conditioned: without the norm of k the state
    explodes, and two correct evaluations of the *wrong* formula differ by far more than rounding
    costs the right one. So a prediction that is not near at once is evaluated in the recipe's
    arithmetic too, and its own rounding counts as the unit.

    Args:
        candidate: what was called.
        faults: the mistakes.
        seen: one case.
        careful: look at the rounding of a prediction that is far off as well. It costs a second
            evaluation, so only a mistake that explains other cases gets it.

    Returns:
        None if rounding decides the prediction, so that the case says nothing about the fault.
    """
    predicted = in_view(seen, predict(candidate, faults, seen.inputs))
    gaps = {name: _gap(predicted[name], seen, name) for name in seen.unit}
    worst = max(gap / seen.unit[name] for name, gap in gaps.items())
    far = all(SOUND < gap < math.inf for gap in gaps.values())
    if worst <= NEAR or (far and not careful):
        return Residual(worst, doubtful=far and worst > NEAR)
    low = rounding(candidate.recipe, block_operands=candidate.operator.block_operands)
    rounded = in_view(seen, predict(candidate, faults, seen.inputs, low))
    worst = 0.0
    for name, gap in gaps.items():
        own = distance(rounded[name], predicted[name])
        if own > SOUND:
            return None
        worst = max(worst, gap / max(seen.unit[name], own + 0.5 * seen.unit[name]))
    return Residual(worst)


def in_view(seen: Record, outputs: Tensors) -> Tensors:
    """The part of outputs that a record compares."""
    return outputs if seen.shown is None else seen.shown(outputs)


def _gap(predicted: torch.Tensor, seen: Record, name: str) -> float:
    """Distance against the larger of prediction and reference.

    A prediction that is almost zero has no relative error worth judging.
    """
    if predicted.shape != seen.actual[name].shape:
        return math.inf
    if not same_where_undefined(predicted, seen, name):
        return math.inf
    gap = distance(seen.actual[name], predicted)
    size = predicted.double().nan_to_num().norm().item()
    full = seen.reference[name].double().norm().item()
    return gap if size >= full or full == 0 or not math.isfinite(gap) else gap * size / full


def same_where_undefined(predicted: torch.Tensor, seen: Record, name: str) -> bool:
    """Whether a prediction has what came out where the right value is NaN or an infinity.

    Which of them it is, is the answer there, and a wrong one is a failure; elsewhere an overflow
    may show as either.
    """
    told = ~torch.isfinite(seen.reference[name])
    if not told.any():
        return True
    actual, wide = seen.actual[name][told].double(), predicted[told].double()
    return bool(((actual == wide) | (actual.isnan() & wide.isnan())).all())


def tried(
    candidate: Candidate, faults: Sequence[Fault], seen: Record, *, careful: bool
) -> Residual | None:
    """The residual; infinite where the prediction itself breaks, which is remembered.

    That is a mistake of ours (every listed mistake has a meaning on every case's shapes): the
    others must still be looked at, and the reader must be told.
    """
    try:
        return residual(candidate, faults, seen, careful=careful)
    except Exception as error:
        if any(fault.during is not None for fault in faults):
            return Residual(math.inf)  # a change that has no meaning on these shapes
        broken = _BROKEN.get(None)
        if broken is None:
            raise
        broken[" + ".join(fault.slug for fault in faults)] = f"{type(error).__name__}: {error}"
        return Residual(math.inf)


_BROKEN: ContextVar[dict[str, str]] = ContextVar("broken predictions")


@contextmanager
def broken_predictions() -> Iterator[dict[str, str]]:
    """What broke within: the error by the names of the mistakes that were predicted."""
    broken: dict[str, str] = {}
    token = _BROKEN.set(broken)
    try:
        yield broken
    finally:
        _BROKEN.reset(token)


def unspoken(
    candidate: Candidate, faults: Sequence[Fault], records: Sequence[Record]
) -> Iterator[str]:
    """The failed cases of which faults do not explain every output.

    Where rounding decides what they predict, it is enough that they make the case fail at all.
    """
    for seen in records:
        if not seen.failed:
            continue
        fits = tried(candidate, faults, seen, careful=True)
        near = fails(candidate, faults, seen) if fits is None else fits.units <= NEAR
        if not near or not same_sets(candidate, faults, seen):
            yield seen.case


def fails(candidate: Candidate, faults: Sequence[Fault], seen: Record) -> bool:
    """Whether what faults predict is no rounding of what is right."""
    predicted = predict(candidate, faults, seen.inputs)
    gaps = (distance(predicted[n], seen.reference[n]) / unit for n, unit in seen.unit.items())
    return any(not gap <= NEAR for gap in gaps)


def same_sets(candidate: Candidate, faults: Sequence[Fault], seen: Record) -> bool:
    """Whether faults predict the ids too that came out, but for ties."""
    if not seen.sets:
        return True
    operator = candidate.operator
    predicted = predict(candidate, faults, seen.inputs)
    low = rounding(candidate.recipe, block_operands=operator.block_operands)
    rounded = predict(candidate, faults, seen.inputs, low)
    chosen = [output for output in operator.outputs if output.name in seen.sets]
    for output in chosen:
        if form_problem(output, seen.sets[output.name], predicted):  # ids that there are not
            return all(same_ids(seen.sets[o.name], predicted[o.name]) for o in chosen)
    return agree(chosen, seen.sets, predicted, rounded).problem is None


def same_ids(actual: torch.Tensor, predicted: torch.Tensor) -> bool:
    """Whether the ids of every row are the same, in any order."""
    one, other = (ids.long().sort(-1).values for ids in (actual, predicted))
    return one.shape == other.shape and torch.equal(one, other)
