"""One case of one candidate, from inputs to finding. The same for every operator."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from k3check.compare.agree import agree, distances, in_some_way
from k3check.compare.allowance import FACTOR, allowances, floor
from k3check.compare.orders import any_order
from k3check.compare.profile import error_profile, sparkline_series
from k3check.compare.verdict import Judgement, judge
from k3check.diagnose.history import CALLED_AGAIN_S
from k3check.model import Finding, Message, Outcome
from k3check.nouns.call import baseline_of, begin, call
from k3check.nouns.candidate_error import CandidateError
from k3check.nouns.convention import ConventionBroken
from k3check.nouns.recipe import EXACT, rounding
from k3check.nouns.tensors import is_plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from k3check.diagnose.history import History
    from k3check.nouns.case import Case
    from k3check.nouns.operator import Candidate
    from k3check.nouns.request import OpsRequest
    from k3check.nouns.tensors import Tensors


def inputs_of(candidate: Candidate, case: Case, seed: int) -> Tensors:
    """A case's inputs: those that the candidate's runner brings, else as they are made."""
    runner = candidate.runner
    stored = None if runner is None else runner.stored(case.name)
    if stored is not None:
        return stored
    raw = candidate.operator.raw(case, candidate.semantics, seed)
    return candidate.operator.present(
        raw, candidate.semantics, candidate.interface, candidate.recipe
    )


def compare_case(
    candidate: Candidate, case: Case, request: OpsRequest, history: History | None = None
) -> Finding:
    """Call the candidate, then judge it against reference and baseline.

    The reference is computed while a candidate in another process works. One in this process runs
    first: memory that the reference used cannot end up in its hands.

    Args:
        candidate: what to call.
        case: a case that fits its interface.
        request: seed and tolerance.
        history: takes what a diagnosis needs of this case.
    """
    operator = candidate.operator
    inputs = inputs_of(candidate, case, request.seed)
    pending = begin(candidate, inputs)
    reference = operator.evaluate(candidate.semantics, candidate.interface, inputs, EXACT)
    called = pending()
    actual, changed = called.outputs, called.changed
    if changed:
        problem = Message("K3O-008", {"input": ", ".join(changed)})
        judgement = Judgement(Outcome.FAIL, problem, location={"tensor": changed[0]})
        return finding(candidate, case, judgement, {}, {})
    low = rounding(candidate.recipe, block_operands=operator.block_operands)
    baseline = baseline_of(candidate, inputs, low)
    judged = partial(
        judge,
        operator.outputs,
        actual,
        reference,
        inputs=inputs,
        recipe=candidate.recipe,
        tolerance=request.tolerance,
        standard=request.standard,
    )
    judgement = judged(baseline)
    evidence: dict[str, Any] = dict(judgement.evidence)
    series: dict[str, list[float]] = {}
    outcome = judgement.outcome
    legal: list[Message] = []
    if outcome is Outcome.FAIL and judgement.measured:
        way = some_way(candidate, request, inputs, reference, baseline, judgement, judged)
        if way is None:
            evidence |= describe(candidate, judgement, actual, reference, baseline, series)
        else:
            judgement, name = way
            outcome = Outcome.PASS if name is None else Outcome.ACCEPTABLE
            legal = [] if name is None else [Message("K3O-011", {"recipe": name})]
    notes = [*judgement.notes, *legal]
    notes += candidate.binding.notes
    found = finding(candidate, case, judgement, evidence, series, outcome, notes)
    if history is None:
        return found
    if any(far_larger(actual.get(name), right) for name, right in reference.items()):
        history.mention(found)
        return found
    if outcome is Outcome.FAIL and called.seconds <= CALLED_AGAIN_S and history.calls_again:
        history.called_again += 1
        if differs_again(candidate, inputs, actual, reference, baseline):
            history.unstable = found.id
    if case.diagnosable:
        history.add(candidate, found, inputs, actual, reference, baseline)
    else:
        history.mention(found)
    return found


def far_larger(actual: Any, expected: Any) -> bool:
    """Whether an output has so many values that not even a comparison with it is worth its memory.

    A tensor of any shape costs nothing where it is one value, expanded.
    """
    return (
        isinstance(actual, torch.Tensor)
        and isinstance(expected, torch.Tensor)
        and actual.numel() > 16 * expected.numel() + 2**20
    )


def differs_again(
    candidate: Candidate, inputs: Tensors, actual: Tensors, reference: Tensors, baseline: Tensors
) -> bool:
    """Whether another call on the same inputs gives something else than rounding may make of it.

    Only failing cases are called again: a race can look like any mistake.
    """
    operator = candidate.operator
    try:
        again, _ = call(candidate, inputs)
    except ConventionBroken:
        return True  # the first call returned what the convention asks for
    except CandidateError as error:
        if error.kind == "raised":
            return True  # the first call did not raise
        raise
    plain = [
        output
        for output in operator.outputs
        if all(
            isinstance(found.get(output.name), torch.Tensor) and is_plain(found[output.name])
            for found in (actual, again)
        )
    ]
    kept = {n: x.dtype for n, x in actual.items() if isinstance(x, torch.Tensor)}
    granted = allowances(plain, baseline, reference, candidate.recipe, kept)
    return bool(agree(distances(plain, again, actual), granted).beyond)


def some_way(
    candidate: Candidate,
    request: OpsRequest,
    inputs: Tensors,
    reference: Tensors,
    baseline: Tensors,
    own: Judgement,
    judged: Callable[[Tensors], Judgement],
) -> tuple[Judgement, str | None] | None:
    """The first legal way of rounding in which the outputs pass; None if there is none.

    Args:
        candidate, request, inputs, reference: what was called, how, and what is right.
        baseline, own: the plainest code in its own order of summation, and the verdict by it.
        judged: the verdict by another baseline.
    """
    operator, recipe = candidate.operator, candidate.recipe
    low = rounding(recipe, block_operands=operator.block_operands)

    def in_any_order(samples: int) -> Judgement:
        if request.standard is not None:  # a rule of others, that holds for one baseline
            return own
        again = partial(baseline_of, candidate, inputs, low)
        return judged(any_order(again, baseline, reference, recipe.accumulate, samples))

    legal = {
        name: partial(lambda other: judged(baseline_of(candidate, inputs, other)), other)
        for name, other in operator.legal(recipe).items()
    }
    return in_some_way(own, lambda one: one.excess, in_any_order, legal)


def describe(
    candidate: Candidate,
    judgement: Judgement,
    actual: Tensors,
    reference: Tensors,
    baseline: Tensors,
    series: dict[str, list[float]],
) -> dict[str, Any]:
    """What is certain about a failure without knowing its cause."""
    evidence: dict[str, Any] = {}
    for output in candidate.operator.outputs:
        name = output.name
        measured = judgement.measured.get(name)
        if measured is None:
            continue
        usual = judgement.allowed[name].relative_l2
        least = floor(reference_dtype(actual[name], candidate), candidate.recipe.accumulate)
        limit = judgement.limits.get(f"{name}.relative_l2", FACTOR * usual + least)
        evidence[f"{name}_matches"] = measured.relative_l2 <= limit
        if measured.relative_l2 <= limit:
            continue
        profile = error_profile(actual[name], reference[name], baseline[name], output.axes)
        evidence[f"{name}_looks_like"] = profile.looks_like
        evidence[f"{name}_best_scale"] = measured.best_scale
        evidence[f"{name}_cosine"] = measured.cosine
        if profile.first_bad is not None and len(profile.per_token) > 1:
            evidence[f"{name}_first_bad_token"] = profile.first_bad
        if len(profile.per_token) > 1:
            series[f"{name}_error_by_token"] = sparkline_series(profile.per_token)
    return evidence


def reference_dtype(actual: torch.Tensor, candidate: Candidate) -> torch.dtype:
    """The dtype whose precision an output is held to."""
    return actual.dtype if actual.is_floating_point() else candidate.recipe.io


def finding(
    candidate: Candidate,
    case: Case,
    judgement: Judgement,
    evidence: dict[str, Any],
    series: dict[str, list[float]],
    outcome: Outcome | None = None,
    notes: list[Message] | None = None,
) -> Finding:
    """Put a finding together."""
    outcome = outcome or judgement.outcome
    failed = outcome is Outcome.FAIL
    return Finding(
        id=f"{candidate.operator.name}/{case.name}",
        suite=candidate.operator.suite,
        operator=candidate.operator.name,
        case=case.name,
        outcome=outcome,
        title=case.why,
        metrics=judgement.metrics,
        limits=judgement.limits,
        location=judgement.location if failed else {},
        series=series,
        hint=judgement.problem if failed else None,
        evidence=evidence,
        notes=tuple(notes or ()),
    )
