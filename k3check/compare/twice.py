"""Two results of a candidate that must agree, and the finding of how far they do.

Each of the two may err by what an ordinary comparison grants it, so together by twice that, for the
whole tensor and for its parts. Only where the very same evaluation is repeated is it once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from k3check.compare import agreement, sets
from k3check.compare.verdict import no_tensor
from k3check.model import Message, Outcome
from k3check.nouns.call import baseline_of, call
from k3check.nouns.case import Case
from k3check.nouns.convention import ConventionBroken
from k3check.nouns.recipe import EXACT, rounding

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.model import Finding
    from k3check.nouns.operator import Candidate
    from k3check.nouns.recipe import Arithmetic
    from k3check.nouns.tensors import Tensors

    #: lays inputs out otherwise, on their device
    Layout = Callable[[Tensors], Tensors]


#: How much larger what is replaced is made: a leak of it grows with it, and what it has to do with
#: the rounding of everything else does not. float16 holds its products.
LOUD = 64.0


@dataclass(frozen=True)
class Same:
    """Two results that must agree.

    Attributes:
        left, right: by output.
        inputs: what an evaluation is made on to know what rounding costs there ...
        part: ... and the part of it that is compared.
        times: how often that may be had.
        told: the code of what to say of bits that differ within it; None if nobody expects them to
            be equal.
    """

    left: Tensors
    right: Tensors
    inputs: Tensors
    part: Callable[[Tensors], Tensors] = dict
    times: float = 2.0
    told: str | None = None


def inputs_of(candidate: Candidate, spec: Any, name: str, seed: int) -> Tensors | str:
    """The inputs of a property's own case, or why the interface cannot take them."""
    operator = candidate.operator
    fitted = operator.fit(Case(name, "", spec=spec), candidate.interface)
    if isinstance(fitted, str):
        return fitted
    raw = operator.raw(fitted, candidate.semantics, seed)
    return operator.present(raw, candidate.semantics, candidate.interface, candidate.recipe)


def exact_of(candidate: Candidate, inputs: Tensors) -> Tensors:
    """The reference's outputs."""
    return candidate.operator.evaluate(candidate.semantics, candidate.interface, inputs, EXACT)


def outputs_of(
    candidate: Candidate,
    inputs: Tensors,
    layout: Layout | None = None,
    *,
    like: Tensors | None = None,
) -> Tensors:
    """The candidate's outputs on copies of the inputs, with the shapes that they must have.

    Args:
        candidate, inputs: what to call, and on what.
        layout: lays the inputs out otherwise.
        like: outputs whose shapes these must have; the reference's, which costs an evaluation,
            where none are known.

    Raises:
        ConventionBroken: an output is missing or has another shape.
    """
    outputs, _ = call(candidate, inputs, layout)
    known = exact_of(candidate, inputs) if like is None else like
    shapes = {o.name: known[o.name].shape for o in candidate.operator.outputs if o.name in known}
    return {
        name: of_shape(name, outputs.get(name), tuple(shape), "K3O-002")
        for name, shape in shapes.items()
    }


def of_shape(name: str, value: Any, shape: tuple[int, ...], problem: str) -> torch.Tensor:
    """A plain tensor of some shape.

    Raises:
        ConventionBroken: it is something else.
    """
    form = no_tensor(name, value)
    if form is not None:
        raise ConventionBroken(form)
    if tuple(value.shape) != shape:
        shown = {"found": list(value.shape), "expected": list(shape)}
        raise ConventionBroken(Message(problem, {"tensor": name, **shown}))
    found: torch.Tensor = value
    return found


def judge_same(candidate: Candidate, blank: Finding, same: Same, problem: str) -> Finding:
    """The finding of two results that must agree; ``problem`` is what they fail with."""
    operator, recipe = candidate.operator, candidate.recipe
    valued = [o for o in operator.outputs if o.compare != "set" and o.name in same.left]
    if all(torch.equal(same.left[o.name], same.right[o.name]) for o in valued):
        differences = {f"{o.name}.difference": 0.0 for o in valued}
        return replace(blank, metrics=differences, limits=differences)
    exact = same.part(exact_of(candidate, same.inputs))

    def compared(arithmetic: Arithmetic) -> tuple[agreement.ByMetric, agreement.ByMetric]:
        """How far they are apart, and how far they may be."""
        base = same.part(baseline_of(candidate, same.inputs, arithmetic))
        settled = sets.Agreement(skip=undecided(candidate, exact, base))
        left, right, near, right_one = (
            settled.judged(valued, x) for x in (same.left, same.right, base, exact)
        )
        allowed = agreement.granted(valued, near, right_one, recipe)
        strict = {o.name for o in valued if o.compare == "exact"}
        limits = {
            name: {m: 0.0 if name in strict else same.times * v for m, v in metrics.items()}
            for name, metrics in allowed.items()
        }
        return agreement.distances(valued, left, right), limits

    apart, limits = compared(rounding(recipe, block_operands=operator.block_operands))
    found = replace(blank, metrics=agreement.flat(apart), limits=agreement.flat(limits))
    failed = agreement.beyond(apart, limits)
    worst = max(apart, key=lambda name: max(apart[name].values()))
    told = Message(same.told or "", {"tensor": worst, "gap": f"{gap_of(apart, [worst]):.3g}"})
    notes = (told,) if same.told else ()
    if not failed:
        differs = any(value for metrics in apart.values() for value in metrics.values())
        if same.told and differs:
            return replace(found, outcome=Outcome.ACCEPTABLE, notes=notes)
        return found
    for name, arithmetic in operator.legal(recipe).items():
        if not agreement.beyond(*compared(arithmetic)):
            legal = Message("K3O-011", {"recipe": name})
            return replace(found, outcome=Outcome.ACCEPTABLE, notes=(*notes, legal))
    return agreement.disagreed(found, problem, failed, gap_of(apart, failed))


def gap_of(apart: Mapping[str, Mapping[str, float]], names: list[str]) -> float:
    """The largest distance over whole tensors."""
    return max(apart[name]["relative_l2"] for name in names)


def undecided(candidate: Candidate, exact: Tensors, base: Tensors) -> torch.Tensor | None:
    """The rows in which rounding decides which ids are chosen; None where nothing is chosen."""
    chosen = [o.name for o in candidate.operator.outputs if o.compare == "set" and o.name in exact]
    if not chosen or sets.SCORES not in exact:
        return None
    (name,) = chosen
    size = exact[sets.SCORES].shape[-1]
    tie = sets.within_tie(exact, base, exact[name].shape[-1], size).any(-1)
    one, other = (sets.members(x[name].long(), size) for x in (exact, base))
    return tie | (one != other).any(-1)
