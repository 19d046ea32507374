"""When an operator is left: it has cost several processes in a row in one and the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.model import Finding, Message, Outcome
from k3check.report.repeats import ending

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Processes in a row that one operator may cost in the same way; its other checks are passed over.
LOST_ALIKE = 3


class Losses:
    """What operators have cost so far.

    A plain exception costs nothing: however many there are, every case is looked at.
    """

    def __init__(self) -> None:
        self._alike: dict[str, list[Finding]] = {}
        self._left: dict[str, Message] = {}

    @property
    def left(self) -> Mapping[str, Message]:
        """Operators that are not called any more, and why."""
        return self._left

    def count(self, finding: Finding, *, lost: bool) -> None:
        """Take note of a finding, and of whether the check cost a process."""
        operator = finding.operator
        if operator is None or finding.outcome is Outcome.SKIPPED:
            return
        alike = self._alike.setdefault(operator, [])
        if not lost or (alike and ending(alike[0]) != ending(finding)):
            alike.clear()
        if lost:
            alike.append(finding)
        if len(alike) == LOST_ALIKE:
            code = finding.hint.code if finding.hint is not None else finding.outcome.value
            values = {"count": LOST_ALIKE, "check": alike[0].id, "code": code}
            self._left[operator] = Message("K3O-031", values)
