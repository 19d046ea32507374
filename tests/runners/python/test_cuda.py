"""The runner on an accelerator: a broken context costs no other check, a result is waited for."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from k3check.model import Outcome

HERE = Path(__file__).parents[1]
OPERATORS = HERE / "misbehaving.py"
PLAN = f"{HERE / 'fake_plan.py'}:norms"

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no accelerator")


def outcomes(run, *names, **options):
    result = run(*(f"{OPERATORS}:{name}" for name in names), plan=PLAN, timeout_s=120.0, **options)
    found = {}
    for finding in result.findings:
        code = finding.hint and finding.hint.code
        found.setdefault(finding.operator.rpartition(":")[2], []).append((finding.outcome, code))
    return found, result


def test_inputs_are_moved_and_the_device_is_told(run):
    found, result = outcomes(run, "tells_its_device")
    assert found["tells_its_device"] == [(Outcome.PASS, None)] * 3
    assert result.environment["devices"] == [torch.cuda.get_device_name(0)]


def test_a_broken_context_is_a_crash_and_the_runner_is_replaced(run):
    found, _ = outcomes(run, "breaks_the_device", "right")
    assert found["breaks_the_device"] == [(Outcome.CRASHED, "K3O-026")] * 3
    assert found["right"] == [(Outcome.PASS, None)] * 3


def test_a_result_of_another_stream_is_waited_for(run):
    found, _ = outcomes(run, "on_a_stream_of_its_own")
    assert found["on_a_stream_of_its_own"] == [(Outcome.PASS, None)] * 3


def test_a_limit_of_memory_leaves_the_driver_its_addresses(run):
    found, _ = outcomes(run, "tells_its_device", memory_limit=2**34)
    assert found["tells_its_device"] == [(Outcome.PASS, None)] * 3
