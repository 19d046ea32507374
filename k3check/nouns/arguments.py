"""What a callable is handed, by the parameters that it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


def taken(
    names: frozenset[str] | None, arguments: Mapping[str, Any], *optional: str
) -> dict[str, Any]:
    """The arguments without those optional ones that a callable has no parameter for.

    Args:
        names: the callable's parameters; None for one that takes anything.
        arguments: by name.
        optional: names that it may lack.
    """
    if names is None:
        return dict(arguments)
    return {n: x for n, x in arguments.items() if n in names or n not in optional}


def able(names: frozenset[str] | None, abilities: Mapping[str, Collection[str]]) -> frozenset[str]:
    """The capabilities whose parameters a callable has all of."""
    return frozenset(c for c, needed in abilities.items() if names is None or names >= {*needed})
