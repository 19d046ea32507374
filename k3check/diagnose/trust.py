"""What a failure is worth when two calls on the same inputs do not agree."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from k3check.model import Confidence, Diagnosis, Message

if TYPE_CHECKING:
    from k3check.model import Finding

#: the check of two calls failed: they differ by more than rounding
DIFFERS = "K3O-706"
#: what stands first at every other failure then
NOT_DETERMINISTIC = "K3O-713"
#: More leads than this help nobody.
_SHOWN = 5


def distrusted(finding: Finding, seen: str) -> Finding:
    """A failed finding whose causes are leads at most, after the one that comes first.

    Args:
        finding: as it was told.
        seen: the check in which two calls did not agree.
    """
    first = Diagnosis(NOT_DETERMINISTIC, Confidence.LOW, values={"seen": seen})
    rest = (
        replace(diagnosis, confidence=Confidence.LOW, margin=None)
        for diagnosis in finding.diagnoses
        if diagnosis.code != NOT_DETERMINISTIC
    )
    return replace(
        finding,
        diagnoses=(first, *rest)[:_SHOWN],
        hint=Message(first.code, first.values),
    )
