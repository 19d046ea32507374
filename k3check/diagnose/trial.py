"""A mistake on its way through the cases: how far what it predicts is from what came out."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from k3check.diagnose.prediction import NEAR, tried

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from k3check.diagnose.record import Record
    from k3check.nouns.fault import Fault
    from k3check.nouns.operator import Candidate

#: The next distinguishable fault must be this many times as far away for "this is it".
CLEAR = 2.0
#: Beyond this residual a fault is given up; it only serves as the next best.
FAR = 100.0


@dataclass(frozen=True)
class Match:
    """A fault, or two at once, with its residual over all cases.

    Attributes:
        faults: one, or two that were combined.
        residual: in units, the largest over the cases.
        reached: how many cases were looked at; it explains all of these but the last.
    """

    faults: tuple[Fault, ...]
    residual: float
    reached: int = 0

    @property
    def name(self) -> tuple[str, ...]:
        """Identity for grouping."""
        return tuple(fault.name for fault in self.faults)


@dataclass
class Trial:
    """A set of faults on its way through the cases.

    Attributes:
        reached: number of cases that were looked at.
        worst: the residual over these.
        told: whether a failure among them speaks for or against it.
        doubts: cases in which it was far off, but rounding may be all of it.
        done: no case is left to look at.
    """

    faults: tuple[Fault, ...]
    reached: int = 0
    worst: float = 0.0
    told: bool = False
    doubts: list[tuple[float, Record]] = field(default_factory=list)
    done: bool = False

    @property
    def bound(self) -> float:
        """What the residual over all cases is at least, doubts aside."""
        return max([self.worst, *(units for units, _ in self.doubts)])

    @property
    def match(self) -> Match:
        """The outcome; infinitely far if no failure speaks for it."""
        residual = math.inf if self.done and not self.told else self.bound
        return Match(self.faults, residual, self.reached)


def search(
    candidate: Candidate,
    sets: Iterable[tuple[Fault, ...]],
    records: Sequence[Record],
    enough: Callable[[], bool],
    *,
    to_the_end: bool = True,
) -> tuple[list[Match], bool]:
    """Residuals of sets of faults, each taken through the cases only as far as it matters.

    A residual is the largest over the cases, so what is far off in the first one is out of
    question as soon as another explains all of them. Only if none does, all are looked at to the
    end: doubts may turn out to be rounding, and the nearest ones are combined with others.

    Args:
        candidate, records: what was seen.
        sets: what to try; the cases are looked at in their order.
        enough: whether the time is over.
        to_the_end: look at all cases if nothing explains them.

    Returns:
        (matches in the order of the sets, whether all were tried).
    """
    trials: list[Trial] = []
    for faults in sets:
        if enough():
            return [t.match for t in trials], False
        trials.append(Trial(faults))
        follow(candidate, trials[-1], records, NEAR)
    best = min((t.match.residual for t in trials), default=math.inf)
    if best > NEAR and not to_the_end:
        return [t.match for t in trials], True
    limit = CLEAR * max(best, 0.5) if best <= NEAR else math.inf
    for trial in trials:
        if enough():
            return [t.match for t in trials], False
        follow(candidate, trial, records, limit)
    return [t.match for t in trials], True


def follow(candidate: Candidate, trial: Trial, records: Sequence[Record], limit: float) -> None:
    """Take a trial through further cases while its residual is within a limit."""
    while not trial.done and (trial.reached == 0 or trial.bound <= limit):
        seen = records[trial.reached]
        trial.reached += 1
        fits = trial.told and trial.worst <= NEAR
        # A mutant begins with the smallest case, whose rounding may decide; where a second
        # evaluation costs little, it is asked at once.
        mutant = any(fault.during is not None for fault in trial.faults)
        fits = fits or (mutant and candidate.operator.window is None)
        one = tried(candidate, trial.faults, seen, careful=fits)
        if one is not None and one.doubtful and one.units <= FAR:
            trial.doubts.append((one.units, seen))
        elif one is not None:
            trial.told = trial.told or seen.failed
            trial.worst = max(trial.worst, one.units)
        if trial.reached == len(records) or trial.worst > FAR:
            _resolve(candidate, trial)
            trial.done = True


def _resolve(candidate: Candidate, trial: Trial) -> None:
    """Look again at the cases that were in doubt, if everything else fits."""
    for units, seen in trial.doubts:
        if trial.told and trial.worst <= NEAR:
            again = tried(candidate, trial.faults, seen, careful=True)
            units = 0.0 if again is None else again.units
        trial.told = trial.told or seen.failed
        trial.worst = max(trial.worst, units)
    trial.doubts.clear()
