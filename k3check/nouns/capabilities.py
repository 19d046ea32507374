"""What a case may need of a convention, as it is called in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.model import Text

if TYPE_CHECKING:
    from collections.abc import Collection

#: Capabilities as they are called in sentences.
WORDS = {
    "packed": "packed sequences",
    "initial_state": "an initial state",
    "final_state": "a final state",
    "grouped": "more heads of v than of q",
    "value_dim": "V other than K",
    "scale": "another scale than K^-1/2",
    "past": "cached tokens",
    "output_gain": "a gain on the output",
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


def listed(capabilities: Collection[str]) -> tuple[str, ...]:
    """Capabilities for a sentence that lists them."""
    return tuple(WORDS.get(name, name.replace("_", " ")) for name in capabilities)


def not_taken(missing: Collection[str]) -> Text:
    """Why a case does not apply: what a convention does not take."""
    return Text("the convention does not take {what}", what=listed(sorted(missing)))
