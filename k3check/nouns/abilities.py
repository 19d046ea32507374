"""What a candidate does not take, and whose doing that is: the form's, or the function's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.model import Text
from k3check.nouns.capabilities import listed
from k3check.nouns.signature import parameters_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from k3check.nouns.operator import Candidate


def why_not(candidate: Candidate, needs: Collection[str]) -> str | None:
    """Why a check that needs something does not apply to a candidate; None if it does.

    Where the form has room for it and the function lacks the parameter, it is the function that
    is named, with what to add.
    """
    missing = sorted({*needs} - candidate.interface.supports)
    if not missing:
        return None
    convention = candidate.operator.conventions[candidate.convention]
    names, _ = parameters_of(candidate.target)
    lacks: dict[str, None] = {}
    for capability in missing:
        wanted = convention.abilities.get(capability, ())
        lacking = [name for name in wanted if names is not None and name not in names]
        if not lacking:
            return Text(
                "the convention {name} does not take {what}",
                name=candidate.convention,
                what=listed([capability]),
            )
        lacks |= dict.fromkeys(lacking)
    parameters = ", ".join(lacks)
    template = (
        "{name} has no parameters {names}: add them for {what}"
        if len(lacks) > 1
        else "{name} has no parameter {names}: add it for {what}"
    )
    return Text(template, name=name_of(candidate), names=parameters, what=listed(missing))


def name_of(candidate: Candidate) -> str:
    """The user's function, as they call it."""
    target = candidate.target
    name = getattr(target, "__name__", None) or type(target).__name__
    return f"{name}()"
