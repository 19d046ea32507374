"""How callables of the field take and return KDA's tensors: one file per library.

Each convention turns canonical inputs (see ``reference.evaluate``) into one library's call and its
result back. What the callable does itself (activation, norm, scale) follows from its parameters
and from the options that the user passes on.

Adding a library is adding a file with a tuple ``CONVENTIONS``; a convention that takes exactly one
token stands in ``STEPS_ONLY`` instead, one that takes no single token in ``SEQUENCES_ONLY``.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

from k3check.operators.kda.conventions.article import ARTICLE_STEP
from k3check.operators.kda.conventions.fla import FLA
from k3check.operators.kda.conventions.ours import ACTIVATED, K3CHECK

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from k3check.nouns.convention import Convention

#: Listed first, in this order; then every other one by name.
FIRST = ("k3check", "k3check-activated", "fla")


def collect(*kinds: str) -> Mapping[str, Convention]:
    """The conventions of every file that stand under one of some names."""
    found: list[Convention] = []
    for module in pkgutil.iter_modules(__path__):
        if module.name.startswith("_"):
            continue
        loaded = importlib.import_module(f"{__name__}.{module.name}")
        for kind in kinds:
            found += getattr(loaded, kind, ())
    return {c.name: c for c in _ordered(found)}


def _ordered(found: Iterable[Convention]) -> list[Convention]:
    """Our own and fla's first, the others by name."""
    place = {name: i for i, name in enumerate(FIRST)}
    return sorted(found, key=lambda c: (place.get(c.name, len(FIRST)), c.name))


SEQUENCE_CONVENTIONS = collect("CONVENTIONS", "SEQUENCES_ONLY")
STEP_CONVENTIONS = collect("CONVENTIONS", "STEPS_ONLY")

__all__ = (
    "ACTIVATED",
    "ARTICLE_STEP",
    "FLA",
    "K3CHECK",
    "SEQUENCE_CONVENTIONS",
    "STEP_CONVENTIONS",
    "collect",
)
