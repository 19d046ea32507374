"""Other forms in which a callable can be called: its switches, each turned on once.

A mistake in an in-kernel normalisation cannot show while the caller normalises. So what a
callable's signature has beside the form that the user chose is called too: the form in which the
released model calls it in every profile, each other one in ``full``. Which ones ran, the report
says by their checks. A form that the callable refuses is no mistake.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from k3check.checking.one_case import compare_case
from k3check.checking.recognition import handed
from k3check.model import Finding, Message, Outcome, Text
from k3check.nouns.abilities import why_not
from k3check.nouns.candidate_error import CandidateError
from k3check.nouns.case import PROFILES
from k3check.nouns.check import Check
from k3check.nouns.convention import ConventionBroken, Form
from k3check.nouns.signature import parameters_of
from k3check.runners.python.remote import Remote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from k3check.nouns.case import Case
    from k3check.nouns.operator import Candidate
    from k3check.nouns.request import OpsRequest


def form_checks(candidate: Candidate, request: OpsRequest) -> Iterator[Check]:
    """One check a form of the profile."""
    operator = candidate.operator
    convention = operator.conventions[candidate.convention]
    elsewhere = candidate.runner is not None and not isinstance(candidate.target, Remote)
    if candidate.builtin or elsewhere:  # a command or a folder has no signature
        return
    names, _ = parameters_of(candidate.target)
    names = handed(convention, candidate.target, names)
    if names is None:
        return
    for form in convention.forms(names, candidate.options):
        if PROFILES.index(form.profile) > PROFILES.index(request.profile):
            continue
        run = run_of(candidate, names, form, request)
        if run is None:
            continue
        name = f"form-{form.name}"
        yield Check(
            f"{operator.name}/{name}", operator.suite, operator.name, name, title_of(form), run
        )


def title_of(form: Form) -> str:
    """The form as a call would have it."""
    shown = ", ".join(f"{name} = {value}" for name, value in form.options.items())
    return Text("called with {form}", form=shown)


def run_of(
    candidate: Candidate, names: frozenset[str], form: Form, request: OpsRequest
) -> Callable[[], Finding] | None:
    """The check of one form on the first case that it can take; None if it takes none."""
    operator = candidate.operator
    other = with_options(candidate, names, form)
    for case in operator.cases:
        fitted = why_not(other, case.needs) or operator.fit(case, other.interface)
        if not isinstance(fitted, str) and fitted.diagnosable:
            own = replace(fitted, name=f"form-{form.name}", why=title_of(form))
            run = partial(compare_case, other, own, request)
            return partial(unless_refused, other, run, own)
    return None


def with_options(candidate: Candidate, names: frozenset[str], form: Form) -> Candidate:
    """The candidate, called in another form."""
    operator = candidate.operator
    convention = operator.conventions[candidate.convention]
    options = {**candidate.options, **form.options}
    target = candidate.target
    if isinstance(target, Remote):
        target = target.bound(operator.name, convention.name, names, options)
    binding = convention.bind(names, options)
    return replace(candidate, target=target, binding=binding, options=options)


def unless_refused(candidate: Candidate, run: Callable[[], Finding], case: Case) -> Finding:
    """A form's finding; that the callable raises is told, and what it breaks fails."""
    operator, name, title = candidate.operator, case.name, case.why
    blank = Finding(
        f"{operator.name}/{name}", operator.suite, operator.name, name, Outcome.PASS, title
    )
    try:
        return run()
    except CandidateError as error:
        if error.kind != "raised":
            raise
        note = Message("K3O-851", {"error": error.error})
        return replace(blank, outcome=Outcome.ACCEPTABLE, notes=(note,))
    except ConventionBroken as broken:
        return replace(blank, outcome=Outcome.FAIL, hint=broken.message)
