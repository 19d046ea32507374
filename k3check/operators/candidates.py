"""Building a candidate: semantics, recipe, device, convention, each with its own clear error."""

from __future__ import annotations

import difflib
import inspect
from typing import TYPE_CHECKING, Any

import torch

from k3check.errors import UsageError
from k3check.operators.base import Candidate, Recipe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from k3check.operators.base import Binding, Convention, Operator
    from k3check.run.request import CandidateSpec, OpsRequest

DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
SHORT = {"fp64": "float64", "fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


def build_candidate(
    operator: Operator,
    request: OpsRequest,
    load_target: Callable[[CandidateSpec, str], Callable[..., Any]],
) -> Candidate:
    """The candidate of an operator: the configured one, or the built-in.

    Raises:
        UsageError: something about it cannot be used.
    """
    spec = request.candidates.get(operator.name, request.default)
    semantics_name = choose_semantics(operator, spec)
    recipe = choose_recipe(spec, request.default)
    if spec.target is None:
        activated = semantics_name == "article" and "k3check-activated" in operator.conventions
        convention = operator.conventions["k3check-activated" if activated else "k3check"]
        target = operator.builtin(request.settings)
        binding = convention.bind(None, dict(spec.options))
    else:
        target = load_target(spec, request.directory)
        convention, binding = choose_convention(operator, spec, target)
    return Candidate(
        operator=operator,
        target=target,
        binding=binding,
        convention=convention.name,
        semantics_name=semantics_name,
        semantics=operator.semantics[semantics_name],
        recipe=recipe,
        origin=spec.origin,
        builtin=spec.target is None,
        options=spec.options,
    )


def _choice(what: str, code: str, found: str, accepted: Iterable[str], spec: CandidateSpec) -> str:
    """A name out of a list.

    Raises:
        UsageError: it is not in the list.
    """
    names = list(accepted)
    if found in names:
        return found
    near = difflib.get_close_matches(found, names, n=1)
    raise UsageError(
        code=code,
        what=f"{spec.operator} has no {what} called {found!r}"
        if spec.operator != "*"
        else f"there is no {what} called {found!r}",
        where=spec.origin,
        found=found,
        accepted=", ".join(names),
        fix=f"Did you mean {near[0]!r}?" if near else f"Choose one of the accepted {what}s.",
    )


def choose_semantics(operator: Operator, spec: CandidateSpec) -> str:
    """The name of the semantics: the configured one, or the operator's first."""
    if spec.semantics is None:
        return next(iter(operator.semantics))
    return _choice("semantics", "K3C-100", spec.semantics, operator.semantics, spec)


def choose_recipe(spec: CandidateSpec, default: CandidateSpec) -> Recipe:
    """The recipe: what the candidate declares, else what the run declares, else float32."""
    io = _dtype(spec, spec.dtype or default.dtype or "float32")
    wide = torch.float64 if io == torch.float64 else torch.float32
    state = spec.state_dtype or default.state_dtype
    accumulate = spec.accumulate_dtype or default.accumulate_dtype
    return Recipe(
        io=io,
        state=wide if state is None else _dtype(spec, state),
        accumulate=wide if accumulate is None else _dtype(spec, accumulate),
        device=_device(spec, spec.device if spec.device != "auto" else default.device),
    )


def _dtype(spec: CandidateSpec, name: str) -> torch.dtype:
    plain = name.removeprefix("torch.")
    return DTYPES[_choice("dtype", "K3C-104", SHORT.get(plain, plain), DTYPES, spec)]


def _device(spec: CandidateSpec, name: str) -> torch.device:
    """The device; ``auto`` is an accelerator for the user's operators if there is one.

    Raises:
        UsageError: torch does not know it or cannot use it here.
    """
    if name == "auto":
        own = spec.target is not None and torch.cuda.is_available()
        return torch.device("cuda" if own else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        available = ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
        raise UsageError(
            code="K3C-105",
            what=f"the device {name!r} cannot be used here",
            where=spec.origin,
            found=name,
            accepted=", ".join(["auto", *available]),
            fix="Choose a device that this machine has.",
            detail=str(error).splitlines()[0] if str(error) else None,
        ) from None
    return device


def parameters_of(target: Callable[..., Any]) -> tuple[frozenset[str] | None, tuple[str, ...]]:
    """(names that may be passed, None for any; names that must be passed).

    A callable whose signature cannot be read (a C function) counts as taking anything.
    """
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):
        return None, ()
    kinds = inspect.Parameter
    named = {
        name: parameter
        for name, parameter in signature.parameters.items()
        if parameter.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)
    }
    must = tuple(n for n, p in named.items() if p.default is kinds.empty)
    catches_all = any(p.kind is kinds.VAR_KEYWORD for p in signature.parameters.values())
    return (None if catches_all and not named else frozenset(named)), must


def takes_any_keyword(target: Callable[..., Any]) -> bool:
    """Whether the callable has ``**kwargs``."""
    try:
        parameters = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)


def choose_convention(
    operator: Operator, spec: CandidateSpec, target: Callable[..., Any]
) -> tuple[Convention, Binding]:
    """The named convention, or the one that the parameter names show.

    Raises:
        UsageError: there is no such convention, none fits, or the callable cannot be called so.
    """
    names, must = parameters_of(target)
    accepted = ["auto", *operator.conventions]
    name = _choice("convention", "K3C-101", spec.convention, accepted, spec)
    auto = name == "auto"
    convention = recognise(operator, spec, names) if auto else operator.conventions[name]
    check_signature(convention, spec, target, names, must)
    return convention, convention.bind(names, dict(spec.options))


def recognise(operator: Operator, spec: CandidateSpec, names: frozenset[str] | None) -> Convention:
    """The convention with the most of a callable's parameter names.

    Raises:
        UsageError: none fits.
    """
    fitting = [
        c for c in operator.conventions.values() if names is not None and names >= set(c.required)
    ]
    if not fitting:
        takes = "a signature that cannot be read" if names is None else ", ".join(sorted(names))
        known = [f"{c.name}({', '.join(c.required)})" for c in operator.conventions.values()]
        raise UsageError(
            code="K3C-103",
            what=f"no convention of {operator.name} fits this callable",
            where=spec.origin,
            found=takes,
            accepted="; ".join(known),
            fix="Name the convention with --convention, or wrap the callable in one of these.",
        )
    return max(fitting, key=lambda c: len({*c.required, *c.typical} & (names or frozenset())))


def check_signature(
    convention: Convention,
    spec: CandidateSpec,
    target: Callable[..., Any],
    names: frozenset[str] | None,
    must: tuple[str, ...],
) -> None:
    """Raise a UsageError unless the callable can be called the convention's way."""
    if names is None:
        return
    passed = {*convention.required, *convention.typical, *spec.options}
    if convention.positional:
        missing: list[str] = []
        surplus = [n for n in must[len(convention.required) + 1 :] if n not in passed]
    else:
        catches = takes_any_keyword(target)
        missing = [] if catches else [n for n in convention.required if n not in names]
        surplus = [n for n in must if n not in passed]
        unknown = [] if catches else [n for n in spec.options if n not in names]
        if unknown:
            raise UsageError(
                code="K3C-106",
                what=f"the callable has no parameter called {unknown[0]!r}",
                where=f"{spec.origin} options",
                found=", ".join(unknown),
                accepted=", ".join(sorted(names)),
                fix="Remove the option or correct its name.",
            )
    if missing or surplus:
        problems = []
        if missing:
            problems.append(f"it does not take {', '.join(missing)}")
        if surplus:
            problems.append(f"it requires {', '.join(surplus)}, which the convention never passes")
        raise UsageError(
            code="K3C-102",
            what=f"the convention {convention.name!r} does not fit the callable: "
            + "; ".join(problems),
            where=spec.origin,
            found=f"({', '.join(sorted(names))})",
            accepted=f"{convention.name}: {', '.join(convention.required)}"
            + (f"; optional {', '.join(convention.typical)}" if convention.typical else ""),
            fix="Choose another convention, pass the missing values in options, "
            "or wrap the callable.",
        )
