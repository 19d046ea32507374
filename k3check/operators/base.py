"""What every operator family is made of.

A family is a folder below :mod:`k3check.operators`. Its ``family.py`` exports ``OPERATORS``, a
tuple of :class:`Operator`; everything that runs, compares and diagnoses works on this interface
and never asks which operator it has in hand.

How one case travels::

    Case --raw()--> raw inputs --present(interface, recipe)--> inputs   (what the callable gets)
                                                                |
             Convention.call(target, inputs) -> outputs    <----+----> reference(inputs), float64
                                                                +----> baseline(inputs), recipe
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

import torch

from k3check.operators.lengths import in_multiples
from k3check.report.model import Message
from k3check.run.candidate_error import CandidateError, classify, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from k3check.report.model import Finding
    from k3check.run.request import OpsRequest

#: Named tensors and scalars, as an operator takes or returns them.
Tensors = dict[str, Any]

#: Profiles from fewest to most checks; a check of a smaller profile is part of the larger ones.
PROFILES = ("quick", "full", "stress")


@dataclass(frozen=True)
class Recipe:
    """The precisions and the device that a candidate declares.

    Attributes:
        io: dtype of inputs and outputs.
        state: dtype of a carried state.
        accumulate: dtype of sums and of everything in between.
    """

    io: torch.dtype = torch.float32
    state: torch.dtype = torch.float32
    accumulate: torch.dtype = torch.float32
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    def describe(self) -> str:
        """``bfloat16, state float32`` and so on, for messages."""
        text = str(self.io).removeprefix("torch.")
        if self.state != self.io:
            text += f", state {str(self.state).removeprefix('torch.')}"
        return text


@dataclass(frozen=True)
class Arithmetic:
    """How an evaluation rounds: the difference between a reference and a baseline.

    Attributes:
        compute: dtype that everything is computed in.
        operand: precision to which the operands of products of whole blocks are rounded, as a
            matrix unit does; ``tf32`` for 10 bits of mantissa; None for ``compute``.
        state: dtype to which a carried state is rounded whenever it is stored.
        output: dtype of the result.
        coarse_log: logarithms near one are only good to 2^-22 in absolute terms, as a GPU's
            instruction is (``lg2.approx.f32`` of the PTX instruction set).
    """

    compute: torch.dtype = torch.float64
    operand: torch.dtype | Literal["tf32"] | None = None
    state: torch.dtype = torch.float64
    output: torch.dtype = torch.float64
    coarse_log: bool = False

    def operands(self, x: torch.Tensor) -> torch.Tensor:
        """Round a block operand."""
        if self.operand is None:
            return x
        if self.operand == "tf32":
            bits = x.float().contiguous().view(torch.int32)
            # A matrix unit that is handed float32 reads the upper 19 bits: it cuts, not rounds.
            return (bits & ~0x1FFF).view(torch.float32).to(self.compute)
        return x.to(self.operand).to(self.compute)

    def stored(self, x: torch.Tensor) -> torch.Tensor:
        """Round a state that is stored."""
        return x if self.state == self.compute else x.to(self.state).to(self.compute)


EXACT = Arithmetic()


def rounding(recipe: Recipe, *, block_operands: bool = False) -> Arithmetic:
    """The arithmetic of a recipe; ``block_operands`` for operators that multiply blocks."""
    low = recipe.io if recipe.io in (torch.bfloat16, torch.float16) else None
    return Arithmetic(
        compute=recipe.accumulate,
        operand=low if block_operands else None,
        state=recipe.state,
        output=recipe.io,
        coarse_log=recipe.device.type == "cuda" and recipe.accumulate != torch.float64,
    )


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


@dataclass(frozen=True)
class Case:
    """Named inputs that make some mistakes visible.

    Attributes:
        name: unique within the operator.
        why: one line: which mistakes it is there for.
        sees: slugs of faults that are visible in it by at least five times the limit.
        profile: the smallest profile it belongs to.
        needs: what an interface must support for it (``packed``, ``initial_state`` ...).
        spec: the family's own description, from which it builds the raw inputs.
        diagnosable: False where correct operators may differ from each other (ties), so that a
            mistake's prediction says nothing there.
        on_crash: what to say of a callable that raises in this case and in none before it.
        users_only: it shows how work is spread over a device, which the built-in leaves to torch.
    """

    name: str
    why: str
    sees: tuple[str, ...] = ()
    profile: str = "full"
    needs: frozenset[str] = frozenset()
    spec: Any = None
    diagnosable: bool = True
    on_crash: Message | None = field(default=None, hash=False)  # its values are a dict
    users_only: bool = False

    def belongs_to(self, profile: str) -> bool:
        """Whether the case runs in a profile."""
        return PROFILES.index(self.profile) <= PROFILES.index(profile)


class Interface(Protocol):
    """Which part of the mathematics a callable does itself, and what it supports."""

    @property
    def supports(self) -> frozenset[str]:
        """Capabilities by name; a case's ``needs`` must be among them."""
        ...


@dataclass(frozen=True)
class Binding:
    """A convention applied to one callable.

    Attributes:
        interface: what the callable does itself.
        call: ``call(target, inputs) -> outputs`` with canonical names and layouts on both sides.
        mutates: inputs that the convention lets the callable change (a state updated in place).
        notes: facts worth telling (an option that has no effect), as coded messages.
        advice: further notes, that depend on the semantics: ``advice(semantics) -> notes``.
        excludes: semantics by name that a callable of this form cannot be asked for, with why.
        state_dtypes: the only dtypes in which it carries a state, by torch's names; empty for any.
    """

    interface: Any
    call: Callable[[Callable[..., Any], Tensors], Tensors]
    mutates: frozenset[str] = frozenset()
    notes: tuple[Message, ...] = ()
    advice: Callable[[Any], tuple[Message, ...]] = lambda _semantics: ()
    excludes: Mapping[str, str] = field(default_factory=dict)
    state_dtypes: tuple[str, ...] = ()


class ConventionBroken(Exception):  # noqa: N818 - a verdict on the callable, no error of ours
    """Raised by a convention's ``call`` where the callable broke a rule that no output shows.

    A slot of another sequence was written, say. The check fails with ``message``.
    """

    def __init__(self, message: Message) -> None:
        super().__init__(message.code)
        self.message = message


@dataclass(frozen=True)
class Convention:
    """How a callable takes and returns an operator's tensors.

    Attributes:
        summary: where this form is used.
        required: parameter names without which a callable cannot be of this convention.
        bind: ``bind(names, options) -> Binding``; ``names`` are the callable's parameter names,
            None when it takes any (``**kwargs``) or has no inspectable signature.
        typical: further names it passes; they also make it likelier when a convention is to be
            recognised.
        positional: arguments are passed by position, so names only serve to recognise it.
        library: the package that has it: a callable from there is taken for this form first.
        recognisable: False where its parameter names are another convention's too: it must be
            named, or the callable must come from the library itself.
        telling: names of which a callable must have at least one, where the required ones are
            too common to recognise it by; a callable of ``library`` needs none.
        unlike: names that no callable of this form has: one of them, and it is another form.
        abilities: the parameters that a callable needs for a capability (a case's ``needs``)
            which the form itself has room for.
        dtype, state_dtype: the recipe that a callable of this form usually has, by torch's names;
            what a user declares goes first. The state's applies to low-precision inputs.
        refuses: why a callable of this form cannot be checked as this operator; None if it can.
        example: how the documents show it.
    """

    name: str
    summary: str
    required: tuple[str, ...]
    bind: Callable[[frozenset[str] | None, Mapping[str, Any]], Binding]
    typical: tuple[str, ...] = ()
    positional: bool = False
    library: str = ""
    recognisable: bool = True
    telling: tuple[str, ...] = ()
    unlike: tuple[str, ...] = ()
    abilities: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    dtype: str | None = None
    state_dtype: str | None = None
    refuses: str | None = None
    example: Example | None = None


@dataclass(frozen=True)
class Example:
    """What the pages on conventions in ``docs/`` show of a convention.

    Attributes:
        operator: the operator that the callable is.
        target: as in a configuration.
        signature: the callable's parameters, as its library writes them, without types.
        returns: what it returns, in words or shapes.
        options: what is passed through in the example.
        state: layout of the state, and whether it is updated in place.
    """

    operator: str
    target: str
    signature: str
    returns: str
    options: Mapping[str, Any] = field(default_factory=dict)
    state: str = ""


@dataclass(frozen=True)
class Fault:
    """One public mistake: other semantics, or a transformation of what the operator returns.

    Attributes:
        code, slug: identify its texts in :mod:`k3check.hints`.
        changes: fields of the semantics that it gets wrong, with the wrong values.
        transform: applied to the outputs, ``transform(outputs, inputs) -> outputs``.
        values: fill the placeholders of its texts (the chunk size ...).
    """

    code: str
    slug: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    transform: Callable[[Tensors, Tensors], Tensors] | None = None
    values: Mapping[str, Any] = field(default_factory=dict)

    def applied(self, semantics: Any) -> Any:
        """The semantics with this mistake in it."""
        return replace(semantics, **self.changes) if self.changes else semantics


def fit_needs(case: Case, interface: Any) -> Case | str:
    """The usual ``fit``: a case applies if the interface supports what it needs."""
    missing = case.needs - interface.supports
    if missing:
        return f"the convention does not take {', '.join(sorted(missing)).replace('_', ' ')}"
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

    @property
    def interface(self) -> Any:
        """What the callable does itself."""
        return self.binding.interface

    def call(self, inputs: Tensors) -> Tensors:
        """Call the target on inputs that are on its device; returns canonical outputs.

        Raises:
            CandidateError: the target raised (see :mod:`k3check.run.candidate_error`).
            ConventionBroken: what it returned does not have the convention's form.
        """
        try:
            return self.binding.call(self.target, inputs)
        except (CandidateError, ConventionBroken):
            raise
        except (TypeError, ValueError, LookupError, AttributeError, RuntimeError) as error:
            # The target's own exceptions are CandidateErrors; this came from taking its result
            # apart. Memory and devices are other stories.
            if isinstance(error, RuntimeError) and classify(error) in ("memory", "device"):
                raise
            values = {"convention": self.convention, "error": one_line(error)}
            raise ConventionBroken(Message("K3O-010", values)) from error


@dataclass(frozen=True)
class Check:
    """One thing to be checked by the worker.

    Attributes:
        run: does it.
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


def to_device(inputs: Tensors, device: torch.device) -> Tensors:
    """A fresh copy of every tensor on a device; other values as they are."""
    return {
        name: value.detach().to(device, copy=True)
        if isinstance(value, torch.Tensor)
        else [item.detach().to(device, copy=True) for item in value]
        if isinstance(value, list)
        else value
        for name, value in inputs.items()
    }


def with_changes(semantics: Any, **changes: Any) -> Any:
    """Another value of a semantics."""
    return replace(semantics, **changes)


def generator(seed: int, *names: str) -> torch.Generator:
    """A generator whose stream depends on the seed and on names, not on what ran before."""
    state = seed & 0xFFFFFFFF
    for name in names:
        for char in name:
            state = (state * 1000003 ^ ord(char)) & 0x7FFFFFFFFFFFFFFF
    return torch.Generator().manual_seed(state)
