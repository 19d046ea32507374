"""Two results of a candidate that must agree, and the finding of how far they do.

Each of the two may err by what an ordinary comparison grants it, so together by twice that, for the
whole tensor and for its parts. Only where the very same evaluation is repeated is it once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from k3check.compare import sets
from k3check.compare.agree import Compared, agree, disagreed, distances, in_some_way
from k3check.compare.allowance import allowances
from k3check.compare.orders import any_order
from k3check.compare.verdict import no_tensor
from k3check.model import Message, Outcome
from k3check.nouns.call import baseline_of, call
from k3check.nouns.case import Case
from k3check.nouns.convention import ConventionBroken
from k3check.nouns.recipe import EXACT, rounding

if TYPE_CHECKING:
    from collections.abc import Callable

    from k3check.model import Finding
    from k3check.nouns.operator import Candidate
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
        more: what else one of both ways may cost, e.g. that it stores a state in between.
        told: the code of what to say of bits that differ within it; None if nobody expects them to
            be equal.
    """

    left: Tensors
    right: Tensors
    inputs: Tensors
    part: Callable[[Tensors], Tensors] = dict
    times: float = 2.0
    more: float = 0.0
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
    whole = exact_of(candidate, same.inputs)
    exact = same.part(whole)
    arithmetic = rounding(recipe, block_operands=operator.block_operands)
    plain = baseline_of(candidate, same.inputs, arithmetic)
    kept = {n: x.dtype for n, x in plain.items() if isinstance(x, torch.Tensor)}
    kept = {n: t for n, t in kept.items() if t.is_floating_point}

    def compared(baseline: Tensors) -> Compared:
        base = same.part(baseline)
        settled = sets.Agreement(skip=undecided(candidate, exact, base))
        left, right, near, right_one = (
            settled.judged(valued, x) for x in (same.left, same.right, base, exact)
        )
        granted = allowances(valued, near, right_one, recipe, kept, same.times, same.more)
        return agree(distances(valued, left, right), granted)

    def in_any_order(samples: int) -> Compared:
        def again() -> Tensors:
            return baseline_of(candidate, same.inputs, arithmetic)

        return compared(any_order(again, plain, whole, recipe.accumulate, samples))

    own = compared(plain)
    worst = max(own.apart, key=lambda name: max(own.apart[name].values()))
    told = Message(same.told or "", {"tensor": worst, "gap": f"{own.gap([worst]):.3g}"})
    notes = (told,) if same.told else ()
    legal = {
        name: partial(lambda other: compared(baseline_of(candidate, same.inputs, other)), other)
        for name, other in operator.legal(recipe).items()
    }
    found = in_some_way(own, lambda one: one.excess, in_any_order, legal)
    if found is None:
        return disagreed(own.on(blank), problem, own.beyond, own.gap(own.beyond))
    fits, name = found
    if name is not None:
        notes = (*notes, Message("K3O-011", {"recipe": name}))
    outcome = Outcome.ACCEPTABLE if name or (same.told and own.differs) else blank.outcome
    return replace(fits.on(blank), outcome=outcome, notes=notes if name or own.differs else ())


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
