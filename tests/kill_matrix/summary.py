"""Counting trials, and what the numbers must be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from k3check.model import Confidence

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.kill_matrix.matrix import Trial

#: shares that must be reached
DETECTED = {"quick": 0.90, "full": 1.00}
NAMED = 0.95


@dataclass(frozen=True)
class Count:
    """Trials of one kind.

    Attributes:
        trials: wrong candidates that ran.
        detected: of these, how many failed.
        named: of the detected ones, how many were named: first, or in the group that predicts
            the same.
        alone: of these, how many were named for sure, as the only one.
    """

    trials: int
    detected: int
    named: int
    alone: int

    @classmethod
    def of(cls, trials: Iterable[Trial]) -> Count:
        """Count some trials."""
        seen = list(trials)
        found = [t for t in seen if t.detected]
        named = [t for t in found if t.named]
        alone = sum(t.confidence is Confidence.HIGH for t in named)
        return cls(len(seen), len(found), len(named), alone)

    @property
    def share_detected(self) -> float:
        """Detected among all."""
        return self.detected / self.trials if self.trials else 1.0

    @property
    def share_named(self) -> float:
        """Named among detected."""
        return self.named / self.detected if self.detected else 1.0


def undetected(trials: Iterable[Trial]) -> list[str]:
    """Wrong candidates that passed."""
    return [t.where for t in trials if not t.detected]


def unnamed(trials: Iterable[Trial]) -> list[str]:
    """Wrong candidates that failed without the mistake's name, with what was said instead."""
    found = []
    for trial in trials:
        if trial.detected and not trial.named:
            said = ", ".join(f"{code} ({sure})" for code, sure in trial.ranked) or "unknown"
            found.append(f"{trial.where} -> {said}; failed: {', '.join(trial.failed)}")
    return found


def shortfalls(trials: Sequence[Trial]) -> list[str]:
    """What is below the numbers that must be reached, as sentences; empty if nothing is."""
    found = []
    for profile, needed in DETECTED.items():
        some = [t for t in trials if t.profile == profile]
        count = Count.of(some)
        if count.share_detected < needed:
            found.append(
                f"{profile} detects {count.detected} of {count.trials}: {undetected(some)}"
            )
        if count.share_named < NAMED:
            found.append(f"{profile} names {count.named} of {count.detected}: {unnamed(some)}")
    return found
