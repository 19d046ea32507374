"""Long sequences: in full past a thread block, in stress over the configured context."""

from __future__ import annotations

import pytest

from k3check.checking import context
from k3check.model import Outcome
from k3check.operators.kda.candidate import kda_recurrent
from tests.operators.harness import findings_for, plan_for


def stops_at(limit):
    """The recurrence, with nothing written behind some token."""

    def target(**given):
        output, state = kda_recurrent(**given)
        output = output.clone()
        output[:, limit:] = 0
        return output, state

    return target


def stress(length=None, **spec):
    settings = {} if length is None else {"model": {"context_window": length}}
    return {"profile": "stress", "settings": settings, **spec}


def titles(**spec):
    """The title of the longest case."""
    planned = plan_for("kda_recurrent", kda_recurrent, convention="k3check", **spec)
    return [check.title for check in planned if check.case == "context"]


def test_what_stops_behind_a_thread_block_is_caught_by_full():
    found = findings_for("kda_recurrent", stops_at(1024), convention="k3check")
    assert {c for c, f in found.items() if f.outcome is Outcome.FAIL} == {"long-1k"}
    assert found["long-1k"].evidence["output_first_bad_token"] == 1024


def test_the_builtin_is_not_asked_how_it_spreads_work():
    assert "long-1k" in {c.case for c in plan_for("kda_chunk", kda_recurrent)}
    assert "long-1k" not in {c.case for c in plan_for("kda_chunk")}


@pytest.mark.parametrize(("written", "outcome"), [(3000, Outcome.FAIL), (3100, Outcome.PASS)])
def test_what_stops_within_the_context_is_caught_by_stress(written, outcome):
    found = findings_for(
        "kda_recurrent", stops_at(written), convention="k3check", only={"context"}, **stress(3100)
    )
    assert found["context"].outcome is outcome


def test_only_stress_is_as_long_as_the_context():
    assert titles(profile="full") == []
    (title,) = titles(**stress(5000))
    assert title.startswith("5000 tokens: ")
    (title,) = titles(**stress())
    assert title.startswith(f"{context.USUAL} tokens: ")


def test_memory_bounds_it(monkeypatch):
    # q, k, v and gate of 64 channels and beta, in float64, besides state and parameters
    size = (4 * 64 + 1) * 8
    free = 2 * context.COPIES * size * 1000
    monkeypatch.setattr(context, "available_bytes", lambda: free)
    (title,) = titles(**stress(50_000))
    tokens, asked = (int(word) for word in title.split(" tokens")[0].split(" of "))
    assert asked == 50_000
    assert 700 < tokens <= 1000


def test_time_bounds_it(monkeypatch):
    monkeypatch.setattr(context, "available_bytes", lambda: None)
    (title,) = titles(**stress(1_048_576, timeout_s=2.0))
    assert title.startswith("2000 of 1048576 tokens: ")
