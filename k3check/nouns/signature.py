"""What a callable's signature says: which names it takes, and whether it takes any."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


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


def takes_any_number(target: Callable[..., Any]) -> bool:
    """Whether the callable has ``*args``."""
    try:
        parameters = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters)
