"""Operators under pytest: one assertion, whose message is k3check's report.

The callable runs in the test's own process, so that a debugger and fixtures reach it; the command
line's isolation and time limits are not there. An example of ten lines::

    import pytest
    from kernels.kda import chunk_kda
    from k3check.testing import assert_operator, cases

    def test_chunk_kda():
        assert_operator(kda_chunk=chunk_kda, convention="fla")

    @pytest.mark.parametrize("case", cases(kda_chunk=chunk_kda, convention="fla"), ids=str)
    def test_chunk_kda_case(case):
        case.check()
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from k3check.model import Finding, Outcome, Report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from k3check.nouns.check import Check


@dataclass(frozen=True, repr=False)
class OneCase:
    """One check of one operator, for ``pytest.mark.parametrize``."""

    plan: Check

    def __str__(self) -> str:
        return self.plan.id

    __repr__ = __str__

    def check(self) -> None:
        """Run it; AssertionError with the report unless nothing failed."""
        _judge([self.plan])


def cases(*, profile: str = "quick", seed: int = 0, **given: Any) -> list[OneCase]:
    """Every check of the given operators; see :func:`assert_operator`.

    Without the diagnosis that needs several cases: that is :func:`assert_operator`'s.
    """
    return [OneCase(check) for check in _planned(given, profile, seed)]


def assert_operator(*, profile: str = "quick", seed: int = 0, **given: Any) -> None:
    """Assert that operators are right; the assertion's message is the report.

    Args:
        profile: ``quick``, ``full`` or ``stress``.
        seed: every input is derived from it.
        given: callables by operator (``kda_chunk=my_function``), and what holds for each of them:
            ``convention``, ``semantics``, ``dtype``, ``state_dtype``, ``device``, ``options``.

    Raises:
        AssertionError: a check failed, or none applied.
        TypeError: there is no operator or no setting of such a name.
    """
    _judge(_planned(given, profile, seed))


def _planned(given: dict[str, Any], profile: str, seed: int) -> list[Check]:
    from k3check.checking.planning import make_plan
    from k3check.nouns.candidate_error import guarded
    from k3check.nouns.case import PROFILES
    from k3check.nouns.request import CandidateSpec, OpsRequest
    from k3check.operators import families

    known = {operator.name for family in families() for operator in family.operators}
    settings = ("convention", "semantics", "dtype", "state_dtype", "device", "options")
    shared = {name: value for name, value in given.items() if name in settings}
    targets = {name: value for name, value in given.items() if name not in settings}
    unknown = sorted(targets.keys() - known)
    if unknown or not targets:
        found = ", ".join(unknown) or "none"
        raise TypeError(f"operators: {found}; choose from {', '.join(sorted(known))}")
    if profile not in PROFILES:
        raise TypeError(f"profile: {profile!r}; choose from {', '.join(PROFILES)}")
    specs = {
        name: CandidateSpec(name, getattr(target, "__name__", name), origin=name, **shared)
        for name, target in targets.items()
    }
    request = OpsRequest(candidates=specs, only_configured=True, profile=profile, seed=seed)

    def load(spec: CandidateSpec, _directory: str) -> Callable[..., Any]:
        return guarded(targets[spec.operator])

    return make_plan(request, load)


def _judge(checks: Iterable[Check]) -> None:
    """Run checks, and raise with the report if one fails or none applies."""
    from k3check.report.formats import Options, render

    __tracebackhide__ = True
    began = time.monotonic()
    started = datetime.now(UTC).isoformat(timespec="seconds")
    found: dict[str, Finding] = {}
    for check in checks:
        found[check.id] = replace(_run(check), id=check.id)
        if check.amend is not None:
            found |= {finding.id: finding for finding in check.amend()}
    report = Report(list(found.values()), started, time.monotonic() - began)
    if report.verdict is not Outcome.PASS:
        raise AssertionError("\n" + render("text", report, Options()))


def _run(check: Check) -> Finding:
    """A check's finding; what the callable raises is one too."""
    from k3check.model import Message
    from k3check.nouns.candidate_error import CandidateError

    try:
        return check.run()
    except CandidateError as error:
        blank = Finding(
            check.id, check.suite, check.operator, check.case, Outcome.CRASHED, check.title
        )
        return replace(blank, hint=Message("K3O-991", {"error": str(error)}))
