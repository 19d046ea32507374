"""One thing to be checked, and what a folder of operators contributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from k3check.model import Finding
    from k3check.nouns.case import Case
    from k3check.nouns.operator import Candidate, Operator
    from k3check.nouns.request import OpsRequest


@dataclass(frozen=True)
class Comparison:
    """A candidate to be compared with its reference on a case of a family's own.

    Attributes:
        candidate: what is called; the case fits its interface.
        tolerance: caps the derived limits in the request's place.
    """

    candidate: Candidate
    case: Case
    tolerance: float | None


@dataclass(frozen=True)
class Check:
    """One thing to be checked by the judge.

    Attributes:
        run: does it.
        comparison: what planning makes ``run`` of, in a family's own check that is no more than
            that.
        amend: called after ``run``; returns findings of earlier checks (by id) with more in them
            than could be known when each was made.
        built_in: it calls code of ours alone, whatever the operator is. It stays beside the
            operator because a change of its settings changes the result.
    """

    id: str
    suite: str
    operator: str
    case: str | None
    title: str
    run: Callable[[], Finding]
    amend: Callable[[], Sequence[Finding]] | None = None
    built_in: bool = False
    comparison: Comparison | None = None


@dataclass(frozen=True)
class Family:
    """A folder's contribution: operators, and checks of its own that fit no common form.

    Attributes:
        checks: ``checks(request, candidates)``; the candidates are those that the request asks
            for, and those of ``uses``.
        uses: operators, also of other families, that its own checks need.
        suites: the suites of the checks that need ``uses``; none of both without them.
    """

    name: str
    operators: tuple[Operator, ...]
    checks: Callable[[OpsRequest, Mapping[str, Candidate]], Sequence[Check]] = lambda _r, _c: ()
    uses: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
