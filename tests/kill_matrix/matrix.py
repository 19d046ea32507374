"""The kill matrix: every known mistake as a candidate, through the ordinary path of a command.

A mistake becomes a callable that evaluates its semantics in the recipe's arithmetic, is handed to
:func:`k3check.checking.plan` as a user's target would be, and goes through every case and the
diagnosis. Nothing here knows a family: operators, conventions, cases and mistakes are found.

One thing differs from a command: the pure functions of an operator (its inputs, its reference) are
remembered between trials, because every trial of an operator asks for the same ones. A sample
runs through the real command line, in its own process, without that (``test_command.py``).
"""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from unittest import mock

import k3check.checking
from k3check.checking import planning
from k3check.checking.candidates import choose_recipe
from k3check.model import Confidence, Finding, Outcome
from k3check.mutate.site import watched
from k3check.nouns.case import PROFILES
from k3check.nouns.recipe import Recipe, rounding
from k3check.nouns.request import CandidateSpec, OpsRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from k3check.nouns.check import Check
    from k3check.nouns.fault import Fault
    from k3check.nouns.operator import Operator
    from k3check.nouns.tensors import Tensors


#: seconds for a search within :func:`remembering`
ENOUGH_S = 120.0


@dataclass(frozen=True)
class Form:
    """An operator in one of its forms: a semantics and what the callable does itself.

    Attributes:
        convention: whose interface it is.
        direct: the callable gets canonical inputs; False for the convention's own call.
    """

    operator: str
    semantics: str
    convention: str = "k3check"
    direct: bool = False

    @property
    def label(self) -> str:
        """For tables."""
        return f"{self.operator} · {self.semantics} · {self.convention}"


@dataclass(frozen=True)
class Trial:
    """What came of one wrong candidate.

    Attributes:
        failed: names of the cases that failed.
        ranked: (code, confidence) of the diagnoses, the first one first.
    """

    form: Form
    dtype: str
    profile: str
    slug: str
    code: str
    values: tuple[tuple[str, Any], ...]
    failed: tuple[str, ...]
    ranked: tuple[tuple[str, Confidence], ...]

    @property
    def detected(self) -> bool:
        """Some case failed."""
        return bool(self.failed)

    @property
    def first(self) -> bool:
        """The mistake is the first diagnosis, and not merely a lead."""
        return bool(self.ranked) and self.ranked[0] == (self.code, self.confidence)

    @property
    def confidence(self) -> Confidence | None:
        """How sure the tool was of this mistake; None if it did not name it."""
        return dict(reversed(self.ranked)).get(self.code)

    @property
    def named(self) -> bool:
        """The mistake is the diagnosis, or one of the group that predicts the same."""
        return self.confidence in (Confidence.HIGH, Confidence.MEDIUM)

    @property
    def where(self) -> str:
        """For lists of misses."""
        values = "".join(f", {key} {value}" for key, value in self.values)
        return f"{self.form.label} · {self.dtype} · {self.profile}: {self.slug}{values}"


def operators() -> dict[str, Operator]:
    """Every operator of every family, by name."""
    return {op.name: op for family in planning.families() for op in family.operators}


def forms(operator: Operator) -> list[Form]:
    """The operator's own convention with every semantics, then each other interface once."""
    found = [Form(operator.name, name) for name in distinct_semantics(operator)]
    default = found[0].semantics
    interfaces = [interface_of(operator, found[0])]
    for name, convention in operator.conventions.items():
        if convention.refuses is not None:
            continue
        form = Form(operator.name, default, name, direct=True)
        interface = interface_of(operator, form)
        applies = [c for c in operator.cases if not isinstance(operator.fit(c, interface), str)]
        if interface not in interfaces and applies:
            interfaces.append(interface)
            found.append(form)
    return found


def distinct_semantics(operator: Operator) -> list[str]:
    """Names of the semantics, one for each value, that inputs of the own convention can have."""
    values: dict[Any, str] = {}
    for name, value in operator.semantics.items():
        values.setdefault(value, name)
    return list(values.values())


def interface_of(operator: Operator, form: Form) -> Any:
    """What a callable of the form does itself."""
    return operator.conventions[form.convention].bind(None, {}).interface


def recipe_of(dtype: str) -> Recipe:
    """The recipe of ``--dtype``."""
    spec = CandidateSpec("*", dtype=dtype)
    return choose_recipe(spec, spec)


def faults_of(operator: Operator, form: Form, dtype: str) -> Sequence[Fault]:
    """The mistakes that a candidate of the form can make."""
    semantics = operator.semantics[form.semantics]
    return operator.faults(semantics, interface_of(operator, form), recipe_of(dtype))


def candidate_with(
    operator: Operator, form: Form, dtype: str, fault: Fault | None = None
) -> Callable[..., Any]:
    """A callable that computes the operator, with a mistake in it, in the recipe's arithmetic.

    It takes the canonical inputs by the names of the ``k3check`` convention and returns the
    outputs in their order, one tensor or several; by name in a direct form.
    """
    semantics = operator.semantics[form.semantics]
    interface, recipe = interface_of(operator, form), recipe_of(dtype)
    low = rounding(recipe, block_operands=operator.block_operands)
    required = operator.conventions[form.convention].required

    def target(*given: Any, **named: Any) -> Any:
        inputs: Tensors = {**dict(zip(required, given, strict=False)), **named}
        if fault is None:
            outputs = (operator.baseline or operator.evaluate)(semantics, interface, inputs, low)
        else:
            outputs = operator.evaluate(fault.applied(semantics), interface, inputs, low)
            if fault.transform is not None:
                outputs = fault.transform(outputs, inputs)
        kept = {o.name: outputs[o.name].contiguous() for o in operator.outputs if o.name in outputs}
        if form.direct:
            return kept
        return next(iter(kept.values())) if len(kept) == 1 else tuple(kept.values())

    return target


def run(
    form: Form, target: Callable[..., Any] | None, profile: str = "full", **spec: Any
) -> dict[str, Finding]:
    """The findings of an operator's checks, by id, as a command would have them."""
    seed, settings = spec.pop("seed", 0), spec.pop("settings", {})
    own = spec.pop("own", True)
    given = CandidateSpec(
        form.operator,
        target=None if target is None else "a target",
        convention=form.convention,
        semantics=form.semantics,
        origin="kill matrix",
        **spec,
    )
    request = OpsRequest(
        candidates={form.operator: given},
        only_configured=True,
        default=CandidateSpec("*", dtype=spec.get("dtype")),
        profile=profile,
        seed=seed,
        settings=settings,
    )
    operator = operators()[form.operator]
    cases = {f"{operator.name}/{case.name}" for case in operator.cases}
    found: dict[str, Finding] = {}
    for check in k3check.checking.plan(request, lambda _spec, _directory: target):
        if own and check.id not in cases:
            continue
        try:
            found[check.id] = check.run()
        except Exception as error:  # noqa: BLE001 - as the worker does: a crash is a finding
            found[check.id] = crashed(check, error)
        if check.amend is not None:
            found |= {amended.id: amended for amended in check.amend()}
    return found


def crashed(check: Check, error: Exception) -> Finding:
    """The finding of a check whose candidate raised."""
    return Finding(
        id=check.id,
        suite=check.suite,
        operator=check.operator,
        case=check.case,
        outcome=Outcome.CRASHED,
        title=check.title,
        evidence={"error": repr(error)},
    )


def trial(form: Form, fault: Fault, dtype: str, profile: str) -> Trial:
    """Run one wrong candidate."""
    operator = operators()[form.operator]
    findings = run(form, candidate_with(operator, form, dtype, fault), profile, dtype=dtype)
    failed = [f for f in findings.values() if f.outcome.is_failure]
    ranked = next((f.diagnoses for f in failed if f.diagnoses), ())
    return Trial(
        form=form,
        dtype=dtype,
        profile=profile,
        slug=fault.slug,
        code=fault.code,
        values=tuple(fault.values.items()),
        failed=tuple(f.case or "" for f in failed),
        ranked=tuple((d.code, d.confidence) for d in ranked),
    )


def failures(findings: dict[str, Finding]) -> dict[str, Any]:
    """What is wrong with the findings of a correct candidate: must be empty."""
    return {
        f.id: (str(f.outcome), f.hint, [d.code for d in f.diagnoses])
        for f in findings.values()
        if f.outcome.is_failure or f.diagnoses
    }


def compared(findings: dict[str, Finding]) -> int:
    """How many checks came to a verdict."""
    return sum(f.outcome in (Outcome.PASS, Outcome.ACCEPTABLE) for f in findings.values())


@contextlib.contextmanager
def remembering(form: Form) -> Iterator[None]:
    """Within it, the operator's inputs and references are computed once, not once a trial.

    The search for the mistake gets time enough: what a machine that is busy with something else
    has no time for is no property of the mistakes. (How long it takes, benchmarks/ measures.)
    """
    made = tuple(
        replace(
            family,
            operators=tuple(
                remembered(op, form) if op.name == form.operator else op for op in family.operators
            ),
        )
        for family in planning.families()
    )
    with (
        mock.patch.object(planning, "families", return_value=made),
        mock.patch.dict(planning.BUDGET_S, dict.fromkeys(planning.BUDGET_S, ENOUGH_S)),
    ):
        yield


def remembered(operator: Operator, form: Form) -> Operator:
    """The operator with memory, and for a direct form with conventions that hand inputs on."""
    kept: dict[Any, Any] = {}
    ours: set[int] = set()  # inputs that the memory holds, so that their identity stays theirs

    def remember(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def recall(*arguments: Any) -> Any:
            if watched() or not all(id(a) in ours for a in arguments if isinstance(a, dict)):
                return function(*arguments)
            key = (name, *(id(a) if isinstance(a, dict) else a for a in arguments))
            if key not in kept:
                kept[key] = function(*arguments)
            if name not in ("raw", "present"):
                return dict(kept[key])
            ours.add(id(kept[key]))
            return kept[key]

        return recall

    conventions = {
        name: replace(c, bind=_handing_on(c.bind)) if form.direct else c
        for name, c in operator.conventions.items()
    }
    baseline = operator.baseline
    return replace(
        operator,
        conventions=conventions,
        raw=remember("raw", operator.raw),
        present=remember("present", operator.present),
        evaluate=remember("evaluate", operator.evaluate),
        baseline=None if baseline is None else remember("baseline", baseline),
    )


def _handing_on(bind: Callable[..., Any]) -> Callable[..., Any]:
    """A convention's interface with a call that passes canonical inputs and outputs through."""

    def handing_on(names: Any, options: Any) -> Any:
        binding = bind(names, options)

        def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
            return target(**inputs)

        return replace(binding, call=call)

    return handing_on


def everything(
    form: Form,
    dtype: str,
    profiles: Sequence[str] = PROFILES[:2],
    chosen: Callable[[Fault], bool] = lambda _fault: True,
) -> list[Trial]:
    """One trial for every chosen mistake of a form in a recipe and each profile."""
    known = [f for f in faults_of(operators()[form.operator], form, dtype) if chosen(f)]
    with remembering(form):
        return [trial(form, fault, dtype, profile) for fault in known for profile in profiles]


def one_size(faults: Sequence[Fault]) -> Callable[[Fault], bool]:
    """Chooses each mistake once: of those that exist for several chunk sizes, the first."""
    first: dict[Any, Any] = {}
    for fault in faults:
        first.setdefault((fault.code, fault.values.get("tensor")), _key(fault))
    kept = set(first.values())
    return lambda fault: _key(fault) in kept


def _key(fault: Fault) -> Any:
    return fault.code, tuple(fault.values.items())
