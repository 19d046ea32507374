"""What returns no tensors fails everywhere, also where a check computes with the outputs."""

from __future__ import annotations

import pytest
import torch

from k3check.model import Outcome
from tests.operators.harness import operator_of, plan_for

RETURNED = {
    "a list": ([1.0, 2.0], "K3O-001"),
    "text": ("nope", "K3O-001"),
    "a tensor without values": (torch.empty(2, 3, device="meta"), "K3O-018"),
    "a sparse tensor": (torch.eye(3).to_sparse(), "K3O-018"),
}


@pytest.mark.parametrize("what", RETURNED)
@pytest.mark.parametrize("name", ["situ_glu", "attn_res", "kda_gate", "gated_rms_norm"])
def test_it_fails_with_what_it_is(name, what):
    value, code = RETURNED[what]
    count = len(operator_of(name).outputs)

    def target(*_given, **_named):
        return value if count == 1 else (value,) * count

    for check in plan_for(name, target, convention="k3check"):
        if check.built_in:
            continue
        finding = check.run()
        assert finding.outcome in (Outcome.FAIL, Outcome.SKIPPED), check.id
        if finding.outcome is Outcome.FAIL:
            assert finding.hint.code == code, check.id
