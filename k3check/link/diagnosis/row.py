"""One known failure as one row of the table, and the order in which rows are tried."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Any

from k3check.link.wire.retry import Heals as Heals
from k3check.model import Confidence

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.link.diagnosis.observation import Observation

    Found = Mapping[str, Any] | bool | None


#: Among what a condition found: False where the words leave other causes.
SURE = "_sure"


class Phase(IntEnum):
    """How far a request got; what was seen in a later phase excludes causes of earlier ones."""

    NAME = 1
    CONNECT = 2
    PROXY = 3
    TLS = 4
    WIRE = 5
    HTTP = 6
    SHAPE = 7
    STREAM = 8
    MEANING = 9


class Tier(IntEnum):
    """What a row goes by: within a phase, the more telling evidence is tried first."""

    BASE = 0  # the request itself explains the response
    FAMILY = 1
    BODY = 2
    STATUS = 3
    REST = 4  # nothing more special is known


class Level(StrEnum):
    """What a row does to its check."""

    FAIL = "fail"
    WARN = "warn"
    NOTE = "note"


@dataclass(frozen=True)
class Row:
    """One known failure.

    Attributes:
        code, slug: of its texts in :mod:`k3check.hints`.
        phase, tier: where it is tried; within both, in the order of the table.
        when: a mapping with the values its texts name, or True, if the row explains the
            observation; None or False if not.
        confidence: of the diagnosis.
        level: what it does to the check.
        heals: whether the request may be sent again.
        rows: numbers in section D of the link specification, for the generated page.
    """

    code: str
    slug: str
    phase: Phase
    tier: Tier
    when: Callable[[Observation], Found]
    confidence: Confidence = Confidence.HIGH
    level: Level = Level.FAIL
    heals: Heals = Heals.NEVER
    rows: tuple[int, ...] = ()


@dataclass(frozen=True)
class Hit:
    """A row that explains an observation, with the values for its texts.

    Attributes:
        row: the row.
        values: for its texts.
        sure: False where what was seen leaves other causes: then no more than medium confidence.
    """

    row: Row
    values: Mapping[str, Any]
    sure: bool = True

    @property
    def confidence(self) -> Confidence:
        """How sure the diagnosis is."""
        low = self.row.confidence is not Confidence.HIGH
        return self.row.confidence if self.sure or low else Confidence.MEDIUM
