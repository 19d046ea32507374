"""Where nothing explains a failure, what separates wrong from right is said; nothing else is."""

from __future__ import annotations

import torch

from k3check.model import PLACES, Confidence
from k3check.report.texts import title_of
from tests.diagnose.test_conclude import run_all

VALUES = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def dequantised(packed, scale, table, dtype):
    code = torch.stack([packed & 15, packed >> 4], -1).flatten(1).long()
    factor = torch.exp2(scale.double() - 127)
    factor = torch.where(scale == 255, torch.nan, factor).repeat_interleave(32, 1)
    return (table.double()[code] * factor).to(dtype)


def test_two_codes_that_are_read_as_others():
    """Every code is right but two, whose values no changed reference has."""
    table = VALUES.clone()
    table[[2, 5]] = torch.tensor([1.25, 2.5])

    def mxfp4_dequant(packed, scale, dtype=torch.bfloat16):
        return dequantised(packed, scale, table, dtype)

    found = run_all("mxfp4_dequant", mxfp4_dequant)
    assert found
    for finding in found.values():
        first = finding.diagnoses[0]
        assert (first.code, first.confidence) == (PLACES, Confidence.LOW)
        assert title_of(first, "en") == "wrong, only where code is 2, 5"
        assert title_of(first, "zh") == "出错，仅在代码为 2, 5 时"


def test_the_right_table_is_not_accused():
    def mxfp4_dequant(packed, scale, dtype=torch.bfloat16):
        return dequantised(packed, scale, VALUES, dtype)

    assert not run_all("mxfp4_dequant", mxfp4_dequant)
