"""Timing a call: on a cold cache, until the standard error is small or the time is up."""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Enough calls: the mean's standard error is this part of it.
ENOUGH = 0.01
FEWEST, MOST = 5, 200
#: Seconds for one engine, as long as it has had its fewest calls.
LIMIT_S = 5.0

#: Bytes that are written between two calls, more than any cache holds.
_CACHE = {"cpu": 1 << 26, "cuda": 1 << 28}


@dataclass(frozen=True)
class Timed:
    """What some calls took: the median, half of the distance between the quartiles, how many."""

    median: float
    spread: float
    calls: int


def timed(call: Callable[[], object], device: torch.device, limit_s: float = LIMIT_S) -> Timed:
    """Time a call that has run before."""
    clock = _events if device.type == "cuda" else _wall
    flushed = torch.empty(_CACHE.get(device.type, 1 << 28), dtype=torch.int8, device=device)
    taken: list[float] = []
    began = time.perf_counter()
    while not enough(taken, time.perf_counter() - began, limit_s):
        flushed.fill_(len(taken) % 2)
        taken.append(clock(call, device))
    return summary(taken)


def enough(taken: Sequence[float], spent_s: float, limit_s: float = LIMIT_S) -> bool:
    """Whether to stop: the mean is known well enough, or there is no more time."""
    if len(taken) < FEWEST:
        return False
    if len(taken) >= MOST or spent_s >= limit_s:
        return True
    error = statistics.stdev(taken) / math.sqrt(len(taken))
    return error <= ENOUGH * statistics.fmean(taken)


def summary(taken: Sequence[float]) -> Timed:
    """Median and spread."""
    low, middle, high = statistics.quantiles(taken, n=4)
    return Timed(middle, (high - low) / 2, len(taken))


def _wall(call: Callable[[], object], _device: torch.device) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _events(call: Callable[[], object], device: torch.device) -> float:
    """By the device's own events; work that is still queued afterwards is waited for, too."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize(device)
    begin.record()
    call()
    end.record()
    torch.cuda.synchronize(device)
    return float(begin.elapsed_time(end)) * 1e-3
