"""A comparison: right engines are timed, a wrong one is not, an impossible speed is told."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from k3check.checking.bench import run
from k3check.checking.bench.floor import operations
from k3check.errors import UsageError
from k3check.nouns.request import CandidateSpec, OpsRequest
from k3check.report.bench import Floor, toggled

SIZES = (100, 2, 16, 16)
KERNELS = '''
from k3check.operators.kda.candidate import kda_chunk

def right(q, k, v, gate, beta, **given):
    return kda_chunk(q, k, v, gate, beta, **given)

def wrong(q, k, v, gate, beta, **given):
    output, state = kda_chunk(q, k, v, gate, beta, **given)
    return 1.5 * output, state

kept = {}

def remembers(q, k, v, gate, beta, **given):
    """Fast because it did the work before."""
    if q.data_ptr() not in kept:
        kept[q.data_ptr()] = kda_chunk(q, k, v, gate, beta, **given)
    return kept[q.data_ptr()]

def raises(q, k, v, gate, beta, **given):
    raise ValueError("only multiples of 64")

def no_such_form(a, b):
    return a
'''


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    floor = Floor(1e-6, 1e-6, 1e-7, 1e10, 1e11)
    monkeypatch.setattr(run, "floor_of", lambda *_: floor)
    short = run.timed
    monkeypatch.setattr(run, "timed", lambda call, device: short(call, device, 0.0))


@pytest.fixture
def compare(tmp_path):
    (tmp_path / "kernels.py").write_text(KERNELS)

    def compared(name=None, **more):
        asked = OpsRequest(directory=str(tmp_path))
        if name is not None:
            spec = CandidateSpec(
                "kda_chunk", target=f"kernels.py:{name}", convention="k3check", origin="given"
            )
            asked = replace(asked, candidates={"kda_chunk": replace(spec, **more)})
        return run.compare(asked, SIZES, lambda _name: None)

    return compared


def rows(found):
    return {row.name: row for row in found.rows}


def test_the_built_in_by_its_toggles(compare):
    found = compare()
    for ut in (False, True):
        for bound in (False, True):
            row = rows(found)[toggled(ut=ut, bound=bound)]
            assert row.correct
            assert row.seconds > 0
            assert row.calls >= 5
    assert found.toggles_ratio > 0
    assert not found.failed
    assert found.shape == {"T": 100, "H": 2, "K": 16, "V": 16}


def test_libraries_that_cannot_run_say_why(compare):
    row = rows(compare())["flash_kda"]
    assert row.seconds is None
    assert row.correct is None
    assert row.why


def test_a_right_operator_is_timed(compare):
    row = rows(compare("right"))["your kda_chunk"]
    assert row.correct
    assert row.seconds > 0
    assert row.first_call_s > 0


def test_a_wrong_operator_is_not_timed(compare):
    found = compare("wrong")
    row = rows(found)["your kda_chunk"]
    assert row.correct is False
    assert row.seconds is None
    assert "output" in row.why
    assert found.failed


def test_an_impossible_speed(compare, monkeypatch):
    slow = Floor(5e-3, 5e-3, 1e-4, 1e10, 1e11)
    monkeypatch.setattr(run, "floor_of", lambda *_: slow)
    found = compare("remembers")
    row = rows(found)["your kda_chunk"]
    assert row.impossible
    assert found.failed


def test_an_operator_that_raises_is_told(compare):
    row = rows(compare("raises"))["your kda_chunk"]
    assert row.seconds is None
    assert row.why == "ValueError: only multiples of 64"


def test_an_operator_of_no_known_form(compare):
    with pytest.raises(UsageError):
        compare("no_such_form", convention="auto")


def test_the_fewest_operations():
    inputs = {"k": torch.zeros(1, 10, 2, 8), "v": torch.zeros(1, 10, 4, 16)}
    assert operations(inputs) == 6 * 10 * 4 * 8 * 16


def test_both_toggles_are_at_least_twice_as_fast(tmp_path):
    """At the article's sizes: 512 tokens, K = V = 64."""
    found = run.compare(OpsRequest(directory=str(tmp_path)), (512, 1, 64, 64), lambda _name: None)
    assert found.toggles_ratio >= 2
