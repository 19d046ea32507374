"""One module per output format, each with ``render(report, options) -> str``, found here."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from k3check.report.terminal import Look

if TYPE_CHECKING:
    from k3check.model import Report

#: Tools of several formats.
_TOOLS = ("lines",)

FORMATS: tuple[str, ...] = tuple(
    sorted(
        (module.name for module in pkgutil.iter_modules(__path__) if module.name not in _TOOLS),
        key=lambda name: (name != "text", name),
    )
)
"""Every format by its module's name; the one for terminals first."""


class Verbosity(IntEnum):
    """How much the formats for people show."""

    QUIET = -1
    NORMAL = 0
    VERBOSE = 1


@dataclass(frozen=True)
class Options:
    """What a renderer may be told; each uses what applies to it.

    Attributes:
        lang: ``en`` or ``zh``; keys and codes stay English.
        verbosity: for text.
        look: for text: what the terminal can show.
    """

    lang: str = "en"
    verbosity: Verbosity = Verbosity.NORMAL
    look: Look = field(default_factory=Look)


def render(name: str, report: Report, options: Options) -> str:
    """Render a report in the format ``name``, one of :data:`FORMATS`.

    Only the module of that format is imported.
    """
    if name not in FORMATS:
        raise ValueError(f"no such format: {name}")
    module = importlib.import_module(f"{__name__}.{name}")
    text: str = module.render(report, options)
    return text
