"""One distance, one allowance, one way to ask whether two results agree."""

from __future__ import annotations

import math

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from k3check.compare import distance
from k3check.compare.agree import agree, apart, in_some_way
from k3check.compare.allowance import FACTOR, PART_FACTOR, WHOLE, Allowance
from k3check.compare.distance import measure, relative_l2
from k3check.nouns.tensors import generator


def test_the_limit_is_factor_times_baseline_plus_floor():
    one = Allowance({WHOLE: 1e-3, "worst_head": 2e-3}, floor=1e-4)
    assert one.limits() == {
        WHOLE: FACTOR * 1e-3 + 1e-4,
        "worst_head": PART_FACTOR * 2e-3 + 2e-4,
    }
    assert one.scaled(2, more=1e-2).limit(WHOLE) == 2 * one.limit(WHOLE) + 1e-2
    assert Allowance({WHOLE: 1e-3}, cap=1e-5).limit(WHOLE) == 1e-5


def test_what_is_no_number_or_has_another_shape_is_infinitely_far():
    x = torch.ones(2, 3)
    assert apart(x, x) == {WHOLE: 0.0}
    assert apart(x, torch.ones(3, 2))[WHOLE] == math.inf
    y = x.clone()
    y[0, 0] = math.nan
    assert apart(y, x)[WHOLE] == math.inf
    assert apart(y, y.clone())[WHOLE] == 0.0
    assert agree({"x": {WHOLE: math.nan}}, {"x": Allowance({WHOLE: 1.0})}).beyond == ["x"]


def test_nothing_is_granted_to_what_has_no_allowance():
    found = agree({"x": {WHOLE: 1e-9}, "y": {WHOLE: 0.0}}, {})
    assert found.beyond == ["x"]
    assert found.excess == math.inf


def test_ways_are_tried_in_turn_and_only_where_they_may_help():
    tried = []

    def order(samples):
        tried.append(samples)
        return 1.5 if samples == 1 else 0.9

    def identity(x):
        return x

    assert in_some_way(0.5, identity, order, {}) == (0.5, None)
    assert tried == []
    assert in_some_way(2.0, identity, order, {}) == (0.9, None)  # one was too little
    assert len(tried) == 2
    tried.clear()
    assert in_some_way(1e6, identity, order, {"tf32": lambda: 0.1}) == (0.1, "tf32")
    assert in_some_way(math.inf, identity, order, {"tf32": lambda: 3.0}) is None
    assert tried == []


class Largest(TorchDispatchMode):
    """Remembers how many elements the largest new tensor had."""

    def __init__(self):
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and not result._is_view():
            self.elements = max(self.elements, result.numel())
        return result


@pytest.mark.parametrize("shape", [(3, 40, 5, 7), (1, 1, 3000), (3000,)])
def test_large_tensors_are_measured_in_pieces(monkeypatch, shape):
    draw = generator(0, "pieces")
    right = torch.randn(shape, generator=draw, dtype=torch.float64)
    got = (right + 1e-3 * torch.randn(shape, generator=draw, dtype=torch.float64)).float()
    axes = ("batch", "token", "head", "channel")[: len(shape)]
    axes = axes if len(shape) > 1 else ("token",)
    whole, far = measure(got, right, axes), relative_l2(got, right)
    monkeypatch.setattr(distance, "SLICE", 500)
    with Largest() as seen:
        assert distance.all_finite(got)
        assert not distance.same(got, right, torch.float64)
        pieces = measure(got, right, axes)
        assert relative_l2(got, right) == pytest.approx(far, rel=1e-12)
    assert seen.elements <= (600 if len(shape) == 4 else 2 * 3000)  # two sums a place
    assert pieces.values() == pytest.approx(whole.values(), rel=1e-12)
    assert (pieces.max_abs, pieces.max_index) == (whole.max_abs, whole.max_index)
    assert pieces.best_scale == pytest.approx(whole.best_scale, rel=1e-12)
    for name, part in whole.parts.items():
        assert pieces.parts[name].index == part.index
