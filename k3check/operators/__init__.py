"""The operators: one folder a family, all built alike (see :mod:`k3check.nouns`).

Importing this package does not import torch; :func:`families` does.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from k3check.nouns.check import Family


@cache
def families() -> tuple[Family, ...]:
    """Every family, found by its folder: adding a folder adds its operators."""
    names = sorted(m.name for m in pkgutil.iter_modules(__path__) if m.ispkg)
    return tuple(importlib.import_module(f"{__name__}.{name}.family").FAMILY for name in names)
