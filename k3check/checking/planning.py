"""From a request to the list of checks: which operators, which cases, in which order."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from k3check.checking.candidates import build_candidate
from k3check.checking.context import context_cases
from k3check.checking.crashes import Crashes, remembered
from k3check.checking.forms import form_checks
from k3check.checking.one_case import compare_case
from k3check.compare.verdict import no_tensor
from k3check.diagnose import consequence
from k3check.diagnose.history import BUDGET_S, History, name_the_mistake, retold
from k3check.model import Finding, Message, Outcome
from k3check.nouns.abilities import why_not
from k3check.nouns.check import Check
from k3check.nouns.convention import ConventionBroken
from k3check.operators import families
from k3check.threads import use_one

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from k3check.nouns.case import Case
    from k3check.nouns.check import Family
    from k3check.nouns.operator import Candidate, Operator, Property
    from k3check.nouns.request import CandidateSpec, OpsRequest
    from k3check.nouns.tensors import Tensors


def make_plan(
    request: OpsRequest, load_target: Callable[[CandidateSpec, str], Callable[..., Any]]
) -> list[Check]:
    """See :func:`k3check.checking.plan`."""
    use_one()
    operators = {operator.name: operator for family in families() for operator in family.operators}
    asked = {name for name, operator in operators.items() if wanted(operator, request)}
    needed = asked.union(*(family.uses for family in families() if joins(family, request)))
    candidates = {
        name: build_candidate(operator, request, load_target)
        for name, operator in operators.items()
        if name in needed
    }
    checks: list[Check] = []
    histories: dict[str, History] = {}
    # Checks of operators together come after each operator's own.
    for family in sorted(families(), key=lambda f: bool(f.uses)):
        for operator in family.operators:
            if operator.name in asked:
                crashes, history = Crashes(), History(budget_s=BUDGET_S[request.profile])
                histories[operator.name] = history
                checks += case_checks(candidates[operator.name], request, crashes, history)
                checks += form_checks(candidates[operator.name], request)
                checks += property_checks(candidates[operator.name], request, crashes, history)
        given = {
            n: returning_tensors(c) for n, c in candidates.items() if n in asked or n in family.uses
        }
        checks += [
            replace(check, run=partial(family_check, check, family, request, given, histories))
            for check in family.checks(request, given)
            if not request.suites or check.suite in request.suites
        ]
    return checks


def family_check(
    check: Check,
    family: Family,
    request: OpsRequest,
    given: Mapping[str, Candidate],
    histories: Mapping[str, History],
) -> Finding:
    """A family's own check; a failure may follow from what the operator's cases have named."""
    for name in {check.operator, *family.uses} & {*given}:
        reason = not_stored(given[name], None)
        if reason is not None:
            notes = (Message("K3O-016", {"reason": reason}),)
            return replace(failed(check), outcome=Outcome.SKIPPED, notes=notes)
    found = unless_broken(check, request)
    history = histories.get(check.operator)
    if history is None:
        return found

    def rerun(wrong: Candidate) -> Finding:
        others = family.checks(request, {**given, check.operator: wrong})
        return done(next(other for other in others if other.id == check.id), request)

    budget_s = consequence.BUDGET_S[request.profile]
    return consequence.in_context(given[check.operator], history, found, rerun, budget_s)


def returning_tensors(candidate: Candidate) -> Candidate:
    """The candidate for checks that compute with its outputs: what is no tensor fails at once."""

    def accepts(outputs: Tensors) -> None:
        for output in candidate.operator.outputs:
            problem = (
                no_tensor(output.name, outputs[output.name]) if output.name in outputs else None
            )
            if problem is not None:
                raise ConventionBroken(problem)

    return replace(candidate, accepts=accepts)


def done(check: Check, request: OpsRequest) -> Finding:
    """What a family's own check finds."""
    compared = check.comparison
    if compared is None:
        return check.run()
    own = replace(request, tolerance=compared.tolerance)
    return replace(
        compare_case(compared.candidate, compared.case, own), id=check.id, title=check.title
    )


def unless_broken(check: Check, request: OpsRequest) -> Finding:
    """A family's own check; a convention that the callable broke fails it."""
    try:
        return done(check, request)
    except ConventionBroken as broken:
        return replace(failed(check), hint=broken.message)


def failed(check: Check) -> Finding:
    """A failed finding of a family's own check, with nothing in it yet."""
    return Finding(
        id=check.id,
        suite=check.suite,
        operator=check.operator,
        case=check.case,
        outcome=Outcome.FAIL,
        title=check.title,
    )


def wanted(operator: Operator, request: OpsRequest) -> bool:
    """Whether a request asks for an operator."""
    configured = request.candidates.get(operator.name)
    if request.suites and operator.suite not in request.suites:
        # One that the command line itself names is checked beside the suites it asks for.
        return configured is not None and configured.origin.startswith("--operator")
    return not request.only_configured or configured is not None


def joins(family: Family, request: OpsRequest) -> bool:
    """Whether a request asks for a family's checks of operators together."""
    if request.suites and not {*request.suites} & {*family.suites}:
        return False
    return not request.only_configured or any(name in request.candidates for name in family.uses)


def case_checks(
    candidate: Candidate, request: OpsRequest, crashes: Crashes, history: History
) -> Iterator[Check]:
    """One check a case of the profile; the last one brings the diagnosis of all that failed."""
    operator = candidate.operator
    chosen = [
        case
        for case in operator.cases
        if case.belongs_to(request.profile) and not (candidate.builtin and case.users_only)
    ]
    chosen += context_cases(candidate, request)
    for case in chosen:
        fitted = (
            not_stored(candidate, case.name)
            or why_not(candidate, case.needs)
            or operator.fit(case, candidate.interface)
        )

        def run(case: Case = case, fitted: Case | str = fitted) -> Finding:
            if isinstance(fitted, str):
                return skipped(operator, case.name, case.why, fitted)
            return fails_if_broken(
                operator,
                case.name,
                fitted.why,
                lambda: remembered(
                    crashes,
                    blank(operator, case.name, fitted.why),
                    fitted,
                    lambda: compare_case(candidate, fitted, request, history),
                ),
            )

        def amend() -> list[Finding]:
            return [*name_the_mistake(candidate, history), *crashes.amended(candidate)]

        yield Check(
            id=f"{operator.name}/{case.name}",
            suite=operator.suite,
            operator=operator.name,
            case=case.name,
            title=case.why if isinstance(fitted, str) else fitted.why,
            run=telling_once(candidate, run) if case is chosen[0] else run,
            amend=amend if case is chosen[-1] else None,
        )


def property_checks(
    candidate: Candidate, request: OpsRequest, crashes: Crashes, history: History
) -> Iterator[Check]:
    """One check a property of the profile; after the last one it is known if calls agree."""
    operator = candidate.operator
    budget_s = consequence.BUDGET_S[request.profile]
    chosen = [item for item in operator.properties if belongs(item, request.profile)]
    for item in chosen:
        reason = not_stored(candidate, None) or why_not(candidate, item.needs)

        def run(item: Property = item, reason: str | None = reason) -> Finding:
            if reason is not None:
                return skipped(operator, item.name, item.title, reason)
            found = fails_if_broken(
                operator,
                item.name,
                item.title,
                lambda: remembered(
                    crashes,
                    blank(operator, item.name, item.title),
                    None,
                    lambda: item.check(candidate, request.seed),
                ),
            )
            return consequence.in_context(
                candidate, history, found, lambda wrong: item.check(wrong, request.seed), budget_s
            )

        def amend() -> list[Finding]:
            return [*retold(history), *crashes.amended(candidate)]

        yield Check(
            id=f"{operator.name}/{item.name}",
            suite=operator.suite,
            operator=operator.name,
            case=item.name,
            title=item.title,
            run=run,
            amend=amend if item is chosen[-1] else None,
        )


def not_stored(candidate: Candidate, case: str | None) -> str | None:
    """Why a candidate that is a folder cannot be asked; None if it can, and for every other one.

    Args:
        candidate: what is checked.
        case: a case's name, None for a check that makes its own inputs.
    """
    known = None if candidate.runner is None else candidate.runner.cases
    if known is None or case in known:
        return None
    return "the folder does not have this case" if case else "a folder has no other inputs' outputs"


def telling_once(candidate: Candidate, run: Callable[[], Finding]) -> Callable[[], Finding]:
    """The same check, whose finding says which convention was recognised."""

    def told() -> Finding:
        found = run()
        note = candidate.recognised
        return found if note is None else replace(found, notes=(*found.notes, note))

    return told


def fails_if_broken(
    operator: Operator, name: str, title: str, run: Callable[[], Finding]
) -> Finding:
    """What a check finds; a convention that the callable broke is a failure of its own."""
    try:
        return run()
    except ConventionBroken as broken:
        return replace(blank(operator, name, title), hint=broken.message)


def belongs(item: Property, profile: str) -> bool:
    """Whether a property runs in a profile."""
    from k3check.nouns.case import PROFILES

    return PROFILES.index(item.profile) <= PROFILES.index(profile)


def skipped(operator: Operator, case: str, title: str, reason: str) -> Finding:
    """The finding of a check that does not apply."""
    notes = (Message("K3O-016", {"reason": reason}),)
    return replace(blank(operator, case, title), outcome=Outcome.SKIPPED, notes=notes)


def blank(operator: Operator, case: str, title: str) -> Finding:
    """A failed finding of a check, with nothing in it yet."""
    return Finding(
        id=f"{operator.name}/{case}",
        suite=operator.suite,
        operator=operator.name,
        case=case,
        outcome=Outcome.FAIL,
        title=title,
    )


def settings_of(request: OpsRequest, section: str) -> Mapping[str, Any]:
    """A section of the configuration, empty if it is not there."""
    return request.settings.get(section, {})


__all__: Sequence[str] = ("families", "make_plan", "settings_of", "skipped")
