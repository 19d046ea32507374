"""How a callable takes and returns an operator's tensors."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import ModuleType

    from k3check.model import Message
    from k3check.nouns.tensors import Tensors


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


@dataclass(frozen=True)
class Form:
    """Another form in which a callable can be called.

    Attributes:
        name: of its check.
        options: what is passed beside what the user passes.
        profile: the smallest in which it is called; that of the released model is in all.
    """

    name: str
    options: Mapping[str, Any]
    profile: str = "full"


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
        semantics: which of the operator's semantics a callable of this form usually is; None for
            the operator's first.
        refuses: why a callable of this form cannot be checked as this operator; None if it can.
        forms: ``forms(names, options)``: what else a callable with these parameters can be
            asked, beside the options that a user passes.
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
    semantics: str | None = None
    refuses: str | None = None
    forms: Callable[[frozenset[str], Mapping[str, Any]], Sequence[Form]] = lambda _n, _o: ()
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


def collect(
    package: ModuleType, *kinds: str, first: Sequence[str] = ("k3check",)
) -> Mapping[str, Convention]:
    """The conventions of every file of a folder: adding a convention is adding a file.

    Args:
        package: the folder; its files whose names begin with an underscore are tools.
        kinds: names under which a file has its conventions, as a tuple of them.
        first: conventions that are listed first, in this order; then the others by name.
    """
    found: list[Convention] = []
    for info in pkgutil.iter_modules(package.__path__):
        if not info.name.startswith("_"):
            module = importlib.import_module(f"{package.__name__}.{info.name}")
            found += [convention for kind in kinds for convention in getattr(module, kind, ())]
    place = {name: i for i, name in enumerate(first)}
    found.sort(key=lambda c: (place.get(c.name, len(place)), c.name))
    return {convention.name: convention for convention in found}
