"""The operators: one folder a family, all built alike (see :mod:`k3check.nouns`).

A folder's ``__init__`` names its operators without importing torch, so that the command line and
the configuration know them; its ``family.py`` has the rest.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from k3check.nouns.check import Family

#: Suites in the order in which the documents list them; a new one comes after these.
_LISTED = ("kda", "flashkda", "attnres", "moe", "mla", "mxfp4", "cache", "dist")


def _folders() -> tuple[ModuleType, ...]:
    """Every family's package, found by its folder."""
    names = sorted(m.name for m in pkgutil.iter_modules(__path__) if m.ispkg)
    return tuple(importlib.import_module(f"{__name__}.{name}") for name in names)


def _operators() -> dict[str, str]:
    """Operator -> suite, suite by suite."""
    named: dict[str, str] = {}
    for folder in _folders():
        named |= getattr(folder, "OPERATORS", {})
    order = {suite: place for place, suite in enumerate(_LISTED)}
    return dict(sorted(named.items(), key=lambda item: order.get(item[1], len(order))))


OPERATORS: dict[str, str] = _operators()
"""Every operator by name, with the suite whose checks compare it."""

SUITES: tuple[str, ...] = tuple(
    dict.fromkeys(
        (*_LISTED, *OPERATORS.values(), *(s for f in _folders() for s in getattr(f, "SUITES", ())))
    )
)
"""What ``k3check ops`` takes as arguments; ``cache`` and ``dist`` check operators together."""


@functools.cache  # by its whole name: a folder here is called cache
def families() -> tuple[Family, ...]:
    """Every family: adding a folder adds its operators."""
    found = (importlib.import_module(f"{folder.__name__}.family") for folder in _folders())
    return tuple(module.FAMILY for module in found)


def family_of(operator: str) -> Family | None:
    """The family of one operator, the others' modules left alone; None for an unknown name."""
    for folder in _folders():
        if operator in getattr(folder, "OPERATORS", {}):
            family: Family = importlib.import_module(f"{folder.__name__}.family").FAMILY
            return family
    return None
