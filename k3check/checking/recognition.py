"""Which convention a callable has: by its name, its library or its parameters, and if it fits."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from k3check.errors import UsageError
from k3check.model import Message
from k3check.nouns.signature import parameters_of, takes_any_keyword, takes_any_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from k3check.nouns.convention import Binding, Convention
    from k3check.nouns.operator import Operator
    from k3check.nouns.recipe import Recipe
    from k3check.nouns.request import CandidateSpec


def choice(what: str, code: str, found: str, accepted: Iterable[str], spec: CandidateSpec) -> str:
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
        fix=f"Did you mean {near[0]!r}?"
        if near
        else f"Choose one of the accepted {what.removesuffix('s')}s.",
    )


def choose_convention(
    operator: Operator, spec: CandidateSpec, target: Callable[..., Any]
) -> tuple[Convention, Binding]:
    """The named convention, or the one that the parameter names show.

    Raises:
        UsageError: there is no such convention, none fits, or the callable cannot be called so.
    """
    names, must = parameters_of(target)
    accepted = ["auto", *operator.conventions]
    name = choice("convention", "K3C-101", spec.convention, accepted, spec)
    auto = name == "auto"
    convention = recognise(operator, spec, names, target) if auto else operator.conventions[name]
    if convention.refuses is not None:
        raise UsageError(
            code="K3C-109",
            what=f"a callable of the form {convention.name!r} cannot be checked as {operator.name}",
            where=spec.origin,
            found=convention.refuses,
            accepted=", ".join(c.name for c in operator.conventions.values() if not c.refuses),
            fix="Wrap the part that is this operator, or check a function that is only that.",
        )
    check_signature(convention, spec, target, names, must)
    return convention, convention.bind(handed(convention, target, names), dict(spec.options))


def handed(
    convention: Convention, target: Callable[..., Any], names: frozenset[str] | None
) -> frozenset[str] | None:
    """The parameters that a callable has for a convention.

    In our own forms one with ``**kwargs`` beside named parameters has every input: it is not for
    a library to swallow. An activation is no input: who does not name it has it inside.
    """
    ours = convention.name.startswith("k3check") and takes_any_keyword(target)
    if names is None or not ours:
        return names
    return names | ({*convention.typical} - {"activation"})


def recognise(
    operator: Operator,
    spec: CandidateSpec,
    names: frozenset[str] | None,
    target: Callable[..., Any] | None = None,
) -> Convention:
    """The convention with the most of a callable's parameter names; its own library's first.

    Raises:
        UsageError: none fits.
    """
    fitting = [
        c for c in operator.conventions.values() if names is not None and shows(c, names, target)
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
    return max(fitting, key=lambda c: (comes_from(c, target), shared(c, names), len(c.required)))


def shows(convention: Convention, names: frozenset[str], target: Callable[..., Any] | None) -> bool:
    """Whether parameter names can be a convention's, and are not just anybody's."""
    if not names >= set(convention.required) or names & {*convention.unlike}:
        return False
    if comes_from(convention, target):
        return True
    telling = not convention.telling or bool(names & {*convention.telling})
    return convention.recognisable and telling


def shared(convention: Convention, names: frozenset[str] | None) -> int:
    """How many of a convention's names a callable has."""
    return len({*convention.required, *convention.typical} & (names or frozenset()))


def comes_from(convention: Convention, target: Callable[..., Any] | None) -> bool:
    """Whether a callable is a convention's own library's."""
    module = getattr(target, "__module__", None) or ""
    return bool(convention.library) and module.partition(".")[0] == convention.library


def why_recognised(
    operator: Operator, convention: Convention, target: Callable[..., Any]
) -> Message:
    """Which convention the parameter names showed, by which names, and what came second."""
    names, _ = parameters_of(target)
    found = [n for n in (*convention.required, *convention.typical) if n in (names or ())]
    why = f"it takes {', '.join(found)}"
    if comes_from(convention, target):
        why = f"it comes from {convention.library}, and {why}"
    rest = [
        c
        for c in operator.conventions.values()
        if c is not convention and shows(c, names or frozenset(), None)
    ]
    if rest:
        second = max(rest, key=lambda c: shared(c, names))
        why += f"; next best is {second.name} with {shared(second, names)} of its names"
    return Message("K3O-650", {"convention": convention.name, "why": why})


def check_ability(
    convention: Convention,
    binding: Binding,
    spec: CandidateSpec,
    semantics: str,
    recipe: Recipe,
) -> None:
    """Raise a UsageError if the callable's form has no room for what is declared of it."""
    if semantics in binding.excludes:
        raise UsageError(
            code="K3C-107",
            what=f"a callable of the form {convention.name!r} cannot be asked for {semantics!r}",
            where=spec.origin,
            found=binding.excludes[semantics],
            fix="Choose the semantics that the callable has, or other options for it.",
        )
    state = str(recipe.state).removeprefix("torch.")
    if binding.state_dtypes and state not in binding.state_dtypes:
        raise UsageError(
            code="K3C-108",
            what=f"the convention {convention.name!r} carries no {state} state",
            where=spec.origin,
            found=state,
            accepted=", ".join(binding.state_dtypes),
            fix=f"Declare state_dtype = {binding.state_dtypes[0]!r}, or leave it out.",
        )


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
        # what arguments are called does not matter here, but there must be enough of them
        few = len(names) < len(convention.required) and not takes_any_number(target)
        missing = [n for n in convention.required if n not in names] if few else []
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
