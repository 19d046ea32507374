"""Whether a check fails because of the mistake that the cases name.

A mistake is a formula, so it can be asked: the wrong formula is put in the candidate's place and
the check is run on it. If that fails in the same way and by the same amount, the candidate's
failure follows from the mistake, and advice of its own would only contradict the cause.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch

from k3check.diagnose.history import explains_itself
from k3check.diagnose.prediction import predict
from k3check.diagnose.trust import DIFFERS, distrusted
from k3check.model import Message, Outcome
from k3check.nouns.candidate_error import CandidateError
from k3check.nouns.convention import ConventionBroken
from k3check.nouns.recipe import rounding
from k3check.nouns.tensors import to_device

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from k3check.diagnose.history import Cause, History
    from k3check.model import Finding
    from k3check.nouns.fault import Fault
    from k3check.nouns.operator import Candidate
    from k3check.nouns.tensors import Tensors

    #: the same check with another candidate
    Rerun = Callable[[Candidate], Finding]

#: Seconds that asking the wrong formula may take, per check and profile.
BUDGET_S = {"quick": 0.6, "full": 2.0, "stress": 5.0}
#: Two failures are of one size if they differ by this share at most, or within the limit.
SAME = 0.2
#: a check fails beside a named mistake that could not be asked
MAY_FOLLOW = "K3O-714"


class OutOfTimeError(Exception):
    """The wrong formula takes longer than the answer is worth."""


@dataclass
class Stand:
    """A callable that computes a wrong formula from canonical inputs, until its time is over."""

    candidate: Candidate
    faults: Sequence[Fault]
    deadline: float
    clock: Callable[[], float] = time.process_time
    calls: int = field(default=0)

    def __call__(self, inputs: Tensors) -> Tensors:
        """The wrong outputs in the recipe's arithmetic.

        Raises:
            OutOfTimeError: no time is left.
        """
        if self.clock() > self.deadline:
            raise OutOfTimeError
        self.calls += 1
        operator, recipe = self.candidate.operator, self.candidate.recipe
        low = rounding(recipe, block_operands=operator.block_operands)
        cpu = to_device(inputs, torch.device("cpu"))
        outputs = predict(self.candidate, self.faults, cpu, low)
        return {o.name: outputs[o.name] for o in operator.outputs if o.name in outputs}

    def as_candidate(self) -> Candidate:
        """The candidate with this in its place."""
        return replace(
            self.candidate,
            target=self,
            binding=replace(
                self.candidate.binding,
                call=lambda target, inputs: target(inputs),
                mutates=frozenset(),
            ),
            recipe=replace(self.candidate.recipe, device=torch.device("cpu")),
        )


def in_context(
    candidate: Candidate, history: History, found: Finding, rerun: Rerun, budget_s: float
) -> Finding:
    """A finding of a check beside the cases, told by what these have shown.

    Args:
        candidate: what was checked.
        history: what its cases have shown.
        found: the finding as the check made it.
        rerun: the check, with another candidate.
        budget_s: seconds for asking the wrong formula.
    """
    if found.outcome is not Outcome.FAIL or explains_itself(found):
        return found
    if found.hint is not None and found.hint.code == DIFFERS:
        history.unstable = history.unstable or found.id
        return found
    if history.unstable is not None:
        return distrusted(found, history.unstable)
    if history.cause is not None and not found.diagnoses and found.hint is not None:
        found = linked(candidate, history.cause, found, rerun, budget_s)
    history.mention(found)
    return found


def linked(
    candidate: Candidate, cause: Cause, found: Finding, rerun: Rerun, budget_s: float
) -> Finding:
    """A failure that refers to the cause if it follows from it."""
    stand = Stand(candidate, cause.faults, time.process_time() + budget_s)
    first = cause.diagnoses[0]
    try:
        would = rerun(stand.as_candidate())
    except (
        OutOfTimeError,
        CandidateError,
        ConventionBroken,
        ArithmeticError,
        AttributeError,
        LookupError,
        RuntimeError,
        TypeError,
        ValueError,
    ):
        would = None
    if would is None or would.outcome not in (Outcome.PASS, Outcome.ACCEPTABLE, Outcome.FAIL):
        values = {"check": found.id, "cause": first.code, "operator": candidate.operator.name}
        return replace(found, hint=Message(MAY_FOLLOW, values), evidence=kept(found))
    if not stand.calls or not same_failure(found, would):
        return found
    return replace(
        found,
        diagnoses=cause.diagnoses,
        hint=Message(first.code, first.values),
        evidence=kept(found) | {"follows_from": first.code},
    )


def kept(found: Finding) -> dict[str, object]:
    """The evidence, with the code that the check itself has for its failure."""
    own = {} if found.hint is None else {"fails_as": found.hint.code}
    return {**found.evidence, **own}


def same_failure(found: Finding, would: Finding) -> bool:
    """Whether two findings fail with the same words and by the same amounts."""
    if would.outcome is not Outcome.FAIL or found.hint is None or would.hint is None:
        return False
    if found.hint.code != would.hint.code:
        return False
    return all(
        same_size(found.metrics.get(name, math.nan), would.metrics.get(name, math.nan), limit)
        for name, limit in found.limits.items()
    )


def same_size(one: float, other: float, limit: float) -> bool:
    """Equal but for rounding or a small share; both beyond all bounds is equal too."""
    if not (math.isfinite(one) and math.isfinite(other)):
        return not math.isfinite(one) and not math.isfinite(other)
    return abs(one - other) <= max(limit, SAME * max(abs(one), abs(other)))
