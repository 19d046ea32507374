"""Taking a callable's result apart: how many outputs there must be, before any is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from k3check.model import Message, Text
from k3check.nouns.convention import ConventionBroken, Form

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: asks for the state, in most libraries
ASKS = "output_final_state"


def parts(result: Any, *names: str, more: bool = False, optional: int = 0) -> tuple[Any, ...]:
    """The outputs of a callable that returns several.

    A tensor is one output: unpacking it would take its batch for the outputs.

    Args:
        result: what the callable returned.
        names: what it is to return, in this order.
        more: further values after these are let through, and left out of the result.
        optional: how many of the last names may be missing; they are None then.

    Raises:
        ConventionBroken: there are fewer or more outputs than that.
        TypeError: the result is no tensor, no tuple, no list and not None.
    """
    if result is None:
        found: tuple[Any, ...] = ()
    elif isinstance(result, torch.Tensor):
        found = (result,)
    elif isinstance(result, tuple | list):
        found = tuple(result)
    else:
        raise TypeError(f"a {type(result).__name__} is no tuple of tensors")
    least = len(names) - optional
    if len(found) < least or (len(found) > len(names) and not more):
        raise miscounted(len(found), names, optional=optional, more=more)
    return found[: len(names)] + (None,) * (len(names) - len(found))


def miscounted(
    found: int, names: tuple[str, ...], *, optional: int = 0, more: bool = False
) -> ConventionBroken:
    """The verdict on another number of outputs than the convention has."""
    least = len(names) - optional
    expected = str(least)
    if more:
        expected = Text("at least {n}", n=least)
    elif optional:
        expected = f"{least} to {len(names)}"
    values = {"found": found, "expected": expected, "names": ", ".join(names)}
    return ConventionBroken(Message("K3O-019", values))


def state_unasked(
    names: frozenset[str], options: Mapping[str, Any], *, asks: str = ASKS
) -> tuple[Form, ...]:
    """The form in which no state is asked for, where that can be chosen."""
    return (Form("no-state", {asks: False}),) if asks in names and asks not in options else ()


def output_and_state(
    target: Callable[..., Any],
    arguments: Mapping[str, Any],
    *,
    more: bool = False,
    asks: str = ASKS,
) -> tuple[Any, Any]:
    """What a callable returns; without being asked for the state it must return none.

    Raises:
        ConventionBroken: it returns a state that nobody asked for.
    """
    if arguments.get(asks, True):
        output, state = parts(target(**arguments), "output", "final_state", more=more)
        return output, state
    alone = target(**arguments)
    output, state = (*alone, None)[:2] if isinstance(alone, (tuple, list)) else (alone, None)
    if state is not None:
        raise ConventionBroken(Message("K3O-850", {"switch": f"{asks} = False"}))
    return output, parts(target(**{**arguments, asks: True}), "output", "final_state", more=more)[1]
