"""What a candidate does not take, and whose doing that is: the form's, or the function's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.nouns.signature import parameters_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from k3check.nouns.operator import Candidate

#: Capabilities as they are called in sentences.
WORDS = {
    "packed": "packed sequences",
    "initial_state": "an initial state",
    "final_state": "a final state",
    "grouped": "more heads of v than of q",
    "value_dim": "V other than K",
    "scale": "another scale than K^-1/2",
    "past": "cached tokens",
    "cache": "the cache's new rows",
    "layer": "the whole layer",
    "single": "a mix of the prefix alone",
    "mix": "one mix",
    "spare_rates": "more entries of A_log than heads",
    "renormalize": "weights that are not renormalised",
    "scaling": "a factor on the weights",
    "betas": "other bounds",
    "uncapped": "an up branch without a bound",
}


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
            return f"the convention {candidate.convention} does not take {words([capability])}"
        lacks |= dict.fromkeys(lacking)
    parameters = ", ".join(lacks)
    several = "s" if len(lacks) > 1 else ""
    return (
        f"{name_of(candidate)} has no parameter{several} {parameters}: add "
        f"{'them' if several else 'it'} for {words(missing)}"
    )


def words(capabilities: Collection[str]) -> str:
    """Capabilities as they are called in sentences."""
    return ", ".join(WORDS.get(name, name.replace("_", " ")) for name in capabilities)


def name_of(candidate: Candidate) -> str:
    """The user's function, as they call it."""
    target = candidate.target
    name = getattr(target, "__name__", None) or type(target).__name__
    return f"{name}()"
