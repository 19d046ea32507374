"""One function of the model, a check of it without a reference, and the thing under test."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from k3check.model import Finding, Message
from k3check.nouns.candidate_error import CandidateError, classify, one_line
from k3check.nouns.capabilities import not_taken
from k3check.nouns.convention import Binding, Convention, ConventionBroken
from k3check.nouns.first_calls import FIRST_CALLS
from k3check.nouns.lengths import in_multiples
from k3check.nouns.runner import Runner, Watched

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from k3check.nouns.case import Case
    from k3check.nouns.fault import Fault
    from k3check.nouns.recipe import Arithmetic, Recipe
    from k3check.nouns.runner import Returned
    from k3check.nouns.shapes import Sized
    from k3check.nouns.tensors import Tensors


@dataclass(frozen=True)
class Output:
    """One tensor that an operator returns.

    Attributes:
        name: key in the outputs, e.g. ``final_state``.
        axes: what each dimension is: ``batch``, ``token``, ``head``, ``channel``, ``key``,
            ``value``, ``source``, ``expert``. Errors are reported per token, head and channel.
        dtype: ``io``, ``state``, ``any`` (not judged).
        compare: ``values``; ``set`` for ids whose order says nothing; ``exact`` for values that
            must agree in every element.
    """

    name: str
    axes: tuple[str, ...]
    dtype: str = "io"
    compare: str = "values"


def fit_needs(case: Case, interface: Any) -> Case | str:
    """The usual ``fit``: a case applies if the interface supports what it needs."""
    missing = case.needs - interface.supports
    if missing:
        return not_taken(missing)
    return in_multiples(case, interface)


@dataclass(frozen=True)
class Operator:
    """One function of the model.

    Attributes:
        name, suite: as in the contract with users.
        semantics: named values of the family's Semantics; the first one is the default.
        outputs: what it returns.
        cases: every case of every profile.
        conventions: by name; ``k3check`` is the built-in's.
        raw: ``raw(case, semantics, seed) -> raw inputs`` in float64.
        present: ``present(raw, semantics, interface, recipe) -> inputs`` as the callable gets
            them: activated or raw, rounded to the recipe.
        evaluate: ``evaluate(semantics, interface, inputs, arithmetic) -> outputs``: the reference
            in exact arithmetic, the baseline in the recipe's.
        builtin: ``builtin(settings) -> callable`` in the ``k3check`` convention.
        faults: ``faults(semantics, interface, recipe) -> faults``: the mistakes against these
            that a callable of this interface can make.
        fit: ``fit(case, interface)``: the case as the interface can take it, or why it cannot.
        baseline: like ``evaluate``, for an operator whose plainest low-precision form is another
            one than its reference's; None for the same.
        block_operands: the operator multiplies whole blocks, so a low-precision recipe may round
            its operands.
        properties: checks that need no reference.
        forms: changes of the semantics that are the same function in another form, with sites of
            its own (a chunkwise one), for a callable of an interface.
        window: ``window(semantics, interface, inputs, sequence, first, last)``: inputs of a few
            tokens of one sequence with the state before them, for a recurrence.
        stretched: a case that the stress profile makes as long as the configured context.
    """

    name: str
    suite: str
    title: str
    semantics: Mapping[str, Any]
    outputs: tuple[Output, ...]
    cases: Sequence[Case]
    conventions: Mapping[str, Convention]
    raw: Callable[[Case, Any, int], Tensors]
    present: Callable[[Tensors, Any, Any, Recipe], Tensors]
    evaluate: Callable[[Any, Any, Tensors, Arithmetic], Tensors]
    builtin: Callable[[Mapping[str, Mapping[str, Any]]], Callable[..., Any]]
    faults: Callable[[Any, Any, Recipe], Sequence[Fault]] = lambda _s, _i, _r: ()
    fit: Callable[[Case, Any], Case | str] = fit_needs
    baseline: Callable[[Any, Any, Tensors, Arithmetic], Tensors] | None = None
    block_operands: bool = False
    properties: Sequence[Property] = ()
    stretched: Case | None = None
    #: sizes that a run asks for, for operators whose kernels are compiled for them
    sized: Sized | None = None
    #: which of them a user can choose: ``heads``, ``key_dim``, ``value_dim``
    sizes: frozenset[str] = frozenset()
    forms: Callable[[Any], Sequence[Mapping[str, Any]]] = lambda _interface: ({},)
    window: Callable[[Any, Any, Tensors, int, int, int], Tensors | None] | None = None
    #: legal other recipes: name -> change of the arithmetic, judged ``acceptable`` and named
    legal: Callable[[Recipe], Mapping[str, Arithmetic]] = lambda _recipe: {}


@dataclass(frozen=True)
class Property:
    """A check that needs no reference, e.g. that splitting a sequence changes nothing.

    ``check(candidate, seed)`` returns a finding without id, suite and title filled in.
    """

    name: str
    title: str
    check: Callable[[Candidate, int], Finding]
    needs: frozenset[str] = frozenset()
    profile: str = "full"


@dataclass(frozen=True)
class Candidate:
    """Target + convention + semantics + recipe: the thing under test."""

    operator: Operator
    target: Callable[..., Any]
    binding: Binding
    convention: str
    semantics_name: str
    semantics: Any
    recipe: Recipe
    origin: str
    builtin: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    #: which convention was recognised, and by what; None if it was named
    recognised: Message | None = None
    #: looks at the outputs of every call; raises ConventionBroken where they cannot be used
    accepts: Callable[[Tensors], None] = lambda _outputs: None

    @property
    def interface(self) -> Any:
        """What the callable does itself."""
        return self.binding.interface

    @property
    def runner(self) -> Runner | None:
        """Where the callable lives, if that is not here."""
        target = self.target.target if isinstance(self.target, Watched) else self.target
        return target if isinstance(target, Runner) else None

    @property
    def home(self) -> torch.device:
        """Where :meth:`call` wants its inputs, and puts the outputs."""
        return self.recipe.device if self.runner is None else torch.device("cpu")

    def call(self, inputs: Tensors, *, live: bool = False) -> Tensors:
        """Call the target on inputs that lie at ``home``; returns canonical outputs.

        Args:
            inputs: by name; whatever the convention lets the callable change is changed in them
                only if it runs here.
            live: what a later call does to these outputs is to be seen in them.

        Raises:
            CandidateError: the target raised (see :mod:`k3check.nouns.candidate_error`).
            ConventionBroken: what it returned does not have the convention's form.
        """
        if self.runner is not None:
            return self.start(self.runner, inputs, live=live)().outputs
        end = FIRST_CALLS.begin(self, inputs)
        try:
            outputs = applied(self.binding, self.convention, self.target, inputs)
        finally:
            end()
        self.accepts(outputs)
        return outputs

    def start(
        self, runner: Runner, inputs: Tensors, *, live: bool = False
    ) -> Callable[[], Returned]:
        """Begin a call in another process; the result of the function is the call's."""
        end = FIRST_CALLS.begin(self, inputs)
        pending = runner.start(inputs, self.recipe.device, live=live)

        def finish() -> Returned:
            try:
                returned = pending()
            finally:
                end()
            if isinstance(self.target, Watched):
                self.target.add(returned.handed)
            self.accepts(returned.outputs)
            return returned

        return finish


def applied(
    binding: Binding, convention: str, target: Callable[..., Any], inputs: Tensors
) -> Tensors:
    """Call a target that lives in this process through its convention.

    Raises:
        CandidateError, ConventionBroken: as :meth:`Candidate.call` does.
    """
    try:
        return binding.call(target, inputs)
    except (CandidateError, ConventionBroken):
        raise
    except (TypeError, ValueError, LookupError, AttributeError, RuntimeError) as error:
        # The target's own exceptions are CandidateErrors; this came from taking its result
        # apart. Memory and devices are other stories.
        if isinstance(error, RuntimeError) and classify(error) in ("memory", "device"):
            raise
        values = {"convention": convention, "error": one_line(error)}
        raise ConventionBroken(Message("K3O-010", values)) from error
