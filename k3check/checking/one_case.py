"""One case of one candidate, from inputs to finding. The same for every operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from k3check.compare import agreement
from k3check.compare.profile import error_profile, sparkline_series
from k3check.compare.verdict import FACTOR, Judgement, floor, judge
from k3check.diagnose.history import CALLED_AGAIN_S
from k3check.model import Finding, Message, Outcome
from k3check.nouns.call import baseline_of, begin, call
from k3check.nouns.candidate_error import CandidateError
from k3check.nouns.convention import ConventionBroken
from k3check.nouns.recipe import EXACT, rounding
from k3check.nouns.tensors import is_plain

if TYPE_CHECKING:
    from k3check.diagnose.history import History
    from k3check.nouns.case import Case
    from k3check.nouns.operator import Candidate
    from k3check.nouns.request import OpsRequest
    from k3check.nouns.tensors import Tensors


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
    inputs = operator.present(
        operator.raw(case, candidate.semantics, request.seed),
        candidate.semantics,
        candidate.interface,
        candidate.recipe,
    )
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
    judgement = judge(
        operator.outputs,
        actual,
        reference,
        baseline,
        inputs,
        candidate.recipe,
        request.tolerance,
        request.standard,
    )
    notes = list(judgement.notes)
    evidence: dict[str, Any] = dict(judgement.evidence)
    series: dict[str, list[float]] = {}
    outcome = judgement.outcome
    if outcome is Outcome.FAIL and judgement.measured:
        legal = legal_recipe(candidate, inputs, actual, reference, request)
        if legal is not None:
            outcome = Outcome.ACCEPTABLE
            notes.append(Message("K3O-011", {"recipe": legal}))
        else:
            evidence |= describe(candidate, judgement, actual, reference, baseline, series)
    notes += candidate.binding.notes
    found = finding(candidate, case, judgement, evidence, series, outcome, notes)
    if history is None:
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
    limits = agreement.granted(plain, baseline, reference, candidate.recipe)
    return bool(agreement.beyond(agreement.distances(plain, again, actual), limits))


def legal_recipe(
    candidate: Candidate,
    inputs: Tensors,
    actual: Tensors,
    reference: Tensors,
    request: OpsRequest,
) -> str | None:
    """The name of another recipe in which the outputs would pass, None if there is none."""
    operator = candidate.operator
    for name, arithmetic in operator.legal(candidate.recipe).items():
        baseline = baseline_of(candidate, inputs, arithmetic)
        judgement = judge(
            operator.outputs,
            actual,
            reference,
            baseline,
            inputs,
            candidate.recipe,
            request.tolerance,
            request.standard,
        )
        if judgement.outcome is Outcome.PASS:
            return name
    return None


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
