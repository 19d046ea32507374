"""When timing stops, and what is told of the times."""

from __future__ import annotations

import itertools

import pytest
import torch

from k3check.checking.bench import timing
from k3check.checking.bench.timing import FEWEST, LIMIT_S, MOST, enough, summary, timed


@pytest.mark.parametrize(
    ("taken", "spent", "stops"),
    [
        ([1.0] * (FEWEST - 1), 10 * LIMIT_S, False),  # a median of few calls says nothing
        ([1.0] * FEWEST, 0.0, True),
        ([1.0, 2.0] * FEWEST, 0.0, False),  # an error of eleven per cent
        ([1.0, 2.0] * FEWEST, LIMIT_S, True),
        ([1.0, 2.0] * (MOST // 2), 0.0, True),
        ([1.0, 1.02] * FEWEST, 0.0, True),
    ],
)
def test_when_it_stops(taken, spent, stops):
    assert enough(taken, spent) is stops


def test_one_slow_call_moves_neither_median_nor_spread():
    assert summary([1.0] * 9 + [100.0]) == timing.Timed(1.0, 0.0, 10)


def test_every_call_is_timed_on_a_cold_cache(monkeypatch):
    clock = itertools.count(step=0.5)
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(clock))
    calls = []
    found = timed(lambda: calls.append(1), torch.device("cpu"))
    assert found == timing.Timed(0.5, 0.0, FEWEST)
    assert len(calls) == FEWEST
