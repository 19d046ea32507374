"""The dual-benchmark rule: ratios of a candidate's errors over a baseline's."""

import math

import pytest
import torch

from k3check.compare.standard import LEVELS, errors, ratios
from k3check.compare.verdict import judge
from k3check.model import Outcome
from k3check.nouns.operator import Output
from k3check.nouns.recipe import Recipe

OUTPUT = Output("output", ("token", "channel"))


def test_errors_by_hand():
    found = errors(torch.tensor([1.5, -2.0]), torch.tensor([1.0, -4.0]))
    # |0.5| / 1 and |2| / 4, with 1e-7 in each denominator
    assert found.largest == pytest.approx(0.5, rel=1e-6)
    assert found.mean == pytest.approx(0.5, rel=1e-6)
    assert found.rmse == pytest.approx(math.sqrt((0.25 + 4.0) / 2))


def test_a_candidate_that_is_its_baseline_has_ratios_of_one():
    torch.manual_seed(0)
    reference = torch.randn(64, 8, dtype=torch.float64)
    baseline = reference.bfloat16()
    assert ratios(baseline, baseline, reference) == dict.fromkeys(
        ratios(baseline, baseline, reference), 1.0
    )


@pytest.mark.parametrize(("level", "passing", "failing"), [
    ("cann-l0", 1.9, 2.2), ("cann-l1", 1.45, 1.6), ("cann-l2", 1.15, 1.3),
])  # fmt: skip
def test_levels_judge_mean_and_rmse(level, passing, failing):
    torch.manual_seed(1)
    reference = torch.randn(512, 8, dtype=torch.float64).abs() + 1.0
    noise = 1e-3 * torch.randn_like(reference)
    baseline = (reference + noise).float()
    for factor, outcome in ((passing, Outcome.PASS), (failing, Outcome.FAIL)):
        judged = judge(
            (OUTPUT,),
            {"output": (reference + factor * noise).float()},
            {"output": reference},
            {"output": baseline},
            {},
            Recipe(),
            standard=level,
        )
        assert judged.outcome is outcome
        assert judged.limits["output.rmse_ratio"] == LEVELS[level][2]
        assert judged.metrics["output.rmse_ratio"] == pytest.approx(factor, rel=1e-3)


def test_an_exact_baseline_does_not_make_everything_fail():
    reference = torch.tensor([[1.0, 2.0]], dtype=torch.float64)
    exact = reference.float()
    off = exact * (1 + torch.finfo(torch.float32).eps)
    assert all(math.isfinite(value) for value in ratios(off, exact, reference).values())


def test_nothing_wrong_passes_by_being_no_number():
    reference = torch.randn(8, 4, dtype=torch.float64)
    judged = judge(
        (OUTPUT,),
        {"output": torch.full((8, 4), math.nan)},
        {"output": reference},
        {"output": reference.float()},
        {},
        Recipe(),
        standard="cann-l0",
    )
    assert judged.outcome is Outcome.FAIL
