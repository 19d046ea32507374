"""Whatever an operator does to its process, its verdict is right and the other checks go on."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from k3check import hints
from k3check.model import Outcome

HERE = Path(__file__).parents[1]
OPERATORS = HERE / "misbehaving.py"
PLAN = f"{HERE / 'fake_plan.py'}:norms"


@pytest.fixture
def found(run):
    """operator -> its findings, of a run in which a right one comes last."""

    def found(*names, **options):
        # A file that is loaded once has one function for each name.
        result = run(*(f"{OPERATORS}:{name}" for name in (*names, "right")), plan=PLAN, **options)
        by_name = {}
        for finding in result.findings:
            by_name.setdefault(finding.operator.rpartition(":")[2], []).append(finding)
        assert [f.outcome for f in by_name["right"]] == [Outcome.PASS] * 3
        return by_name

    return found


def codes(findings):
    return [f.hint and f.hint.code for f in findings]


def changed(findings):
    return {n.values["what"] for f in findings for n in f.notes if n.code == "K3O-951"}


def test_what_it_does_to_torch_changes_no_verdict(found):
    names = ("replaces_sigmoid", "replaces_double", "replaces_sub", "under_a_function_mode")
    by_name = found(*names)
    for name in names:
        outcomes = {f.outcome for f in by_name[name]}
        # A sigmoid that is wrong in the middle is right where it is shut.
        assert Outcome.FAIL in outcomes, name
        assert outcomes <= {Outcome.FAIL, Outcome.PASS}, name
    assert changed(by_name["replaces_sigmoid"]) == {"torch's functions"}
    assert changed(by_name["under_a_function_mode"]) == {"torch function mode"}


@pytest.mark.parametrize("name", ["forges_a_finding", "forges_an_answer"])
def test_forged_and_untimely_messages_are_crashes(found, name):
    began = time.monotonic()
    findings = found(name, timeout_s=60.0)[name]
    assert time.monotonic() - began < 60
    assert {f.outcome for f in findings} == {Outcome.CRASHED}
    assert set(codes(findings)) == {"K3O-028"}


def test_results_that_are_no_tensors_with_values(found):
    expected = {
        "of_huge_shape": "K3O-002",
        "on_meta": "K3O-018",
        "nested": "K3O-018",
        "fake": "K3O-018",
    }
    by_name = found(*expected)
    for name, code in expected.items():
        assert {f.outcome for f in by_name[name]} == {Outcome.FAIL}, name
        assert set(codes(by_name[name])) == {code}, name
    assert by_name["fake"][0].hint.values["kind"] == "FakeTensor"


def test_objects_that_raise_when_they_are_looked_at(found):
    names = ("returns_a_hostile_object", "returns_a_hostile_tensor", "raises_a_hostile_object")
    by_name = found(*names)
    for name in names:
        assert {f.outcome for f in by_name[name]} <= {Outcome.FAIL, Outcome.CRASHED}, name
    assert set(codes(by_name["raises_a_hostile_object"])) == {"K3O-020"}
    assert "HostileError" in by_name["raises_a_hostile_object"][0].evidence["error"]


def test_what_it_leaves_changed_is_named_once_and_put_back(found):
    expected = {
        "leaves_a_timer": {"timer", "signal handler"},
        "deletes_modules": {"loaded modules"},
        "changes_the_default_dtype": {"default dtype"},
        "changes_the_threads": {"number of threads"},
        "changes_the_gradient_mode": set(),  # its own way of calling, put back by torch
        "changes_the_seed": {"seed"},
        "flushes_denormals": {"flushing of denormal numbers"},
    }
    by_name = found(*expected)
    for name, names in expected.items():
        findings = by_name[name]
        assert {f.outcome for f in findings} <= {Outcome.PASS, Outcome.CRASHED}, name
        assert changed(findings) == names, name
        told = [n for f in findings for n in f.notes if n.code == "K3O-951"]
        assert len(told) == len(names), name
    assert changed(by_name["right"]) == set()
    for lang in hints.LANGUAGES:
        assert "seed" in hints.title("K3O-951", lang, {"what": "seed"})


def test_no_child_outlives_the_run(found, tmp_path):
    by_name = found("leaves_a_child", "orphans_a_child")
    for findings in by_name.values():
        assert {f.outcome for f in findings} == {Outcome.PASS}
    children = [int(line) for line in (tmp_path / "children").read_text().split()]
    assert len(children) == 6
    for pid in children:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_arrays_of_other_libraries_are_results(found):
    by_name = found("by_dlpack", "by_array")
    for findings in by_name.values():
        assert {f.outcome for f in findings} == {Outcome.PASS}


def test_a_limit_of_memory_is_the_operators_alone(found):
    (first, *_) = found("takes_much_memory", memory_limit=2**29)["takes_much_memory"]
    assert (first.outcome, first.hint.code) == (Outcome.CRASHED, "K3O-021")
    findings = found("takes_much_memory", memory_limit=2**31)["takes_much_memory"]
    assert {f.outcome for f in findings} == {Outcome.PASS}
