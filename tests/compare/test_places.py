"""The place of an element, against torch's own."""

from __future__ import annotations

import pytest
import torch

from k3check.compare.distance import measure, unravelled


@pytest.mark.parametrize("shape", [(7,), (2, 3), (3, 1, 4), (2, 5, 3, 4)])
def test_every_place_is_torchs(shape):
    numbered = torch.arange(torch.Size(shape).numel()).reshape(shape)
    for flat in range(numbered.numel()):
        assert int(numbered[unravelled(flat, shape)]) == flat


def test_the_largest_deviation_is_named_by_its_place():
    expected = torch.ones(2, 5, 3, 4, dtype=torch.float64)
    actual = expected.clone()
    actual[1, 4, 0, 2] += 0.5
    actual[0, 1, 2, 3] += 0.25
    found = measure(actual, expected, ("batch", "token", "head", "channel"))
    assert found.max_index == (1, 4, 0, 2)
    assert found.max_abs == 0.5
