"""Few shapes where each costs a compilation: counted on the CPU, with the device's plan."""

from __future__ import annotations

import inspect
from dataclasses import replace

import pytest
import torch

from k3check.checking import candidates
from k3check.checking.planning import make_plan
from k3check.errors import UsageError
from k3check.nouns.request import CandidateSpec, OpsRequest
from k3check.nouns.shapes import BUDGET, signature
from k3check.operators.attn_res.cases import CASES as MIXES
from k3check.operators.attn_res.cases import OTHER_SHAPES as OTHER_MIXES
from k3check.operators.kda.cases import OTHER_SHAPES, SEQUENCES
from tests.operators.harness import operator_of


def seen_by(operator, profile, monkeypatch, compiled=True, suites=(), **sizes):
    """The signatures of all calls of a right operator, each with a check that has it."""
    monkeypatch.setattr(candidates, "compiles", lambda device: compiled)
    builtin = operator_of(operator).builtin({})
    found = {}
    now = []

    def target(*args, **given):
        bound = inspect.signature(builtin).bind(*args, **given).arguments
        flat = {**bound, **bound.pop("given", {})}
        found.setdefault(signature(flat), []).append(now[-1])
        return builtin(*args, **given)

    spec = CandidateSpec(operator, target="given", convention="k3check", **sizes)
    request = OpsRequest(
        suites=suites, candidates={operator: spec}, only_configured=not suites, profile=profile
    )
    outcomes = {}
    with torch.no_grad():
        for check in make_plan(request, lambda _spec, _directory: target):
            now.append(check.id)
            outcomes[check.id] = check.run().outcome
    return found, outcomes


@pytest.mark.parametrize("profile", ["quick", "full"])
@pytest.mark.parametrize("operator", ["kda_step", "kda_recurrent", "kda_chunk", "attn_res"])
def test_a_profile_keeps_to_its_budget(operator, profile, monkeypatch):
    found, outcomes = seen_by(operator, profile, monkeypatch)
    assert len(found) <= BUDGET[profile], list(found.items())
    assert all(not outcome.is_failure for outcome in outcomes.values()), outcomes


def test_the_usual_shape_is_the_released_models(monkeypatch):
    found, _ = seen_by("kda_chunk", "quick", monkeypatch)
    for shapes in found:
        sizes = {name: size for name, _, *size in shapes}
        assert sizes["q"][-1] == sizes["v"][-1] == 128


def test_on_a_cpu_cases_keep_their_own_sizes(monkeypatch):
    found, _ = seen_by("kda_recurrent", "quick", monkeypatch, compiled=False)
    assert len(found) > BUDGET["quick"]
    assert any(("q", "torch.float32", 2, 64) in shapes for shapes in found)


def test_a_users_own_sizes(monkeypatch):
    for compiled in (False, True):
        found, _ = seen_by(
            "kda_recurrent", "quick", monkeypatch, compiled, heads=3, key_dim=32, value_dim=16
        )
        for shapes in found:
            sizes = {name: size for name, _, *size in shapes}
            assert sizes["q"] == [3, 32]
            assert sizes["v"] in ([3, 16], [6, 16])


@pytest.mark.parametrize(("cases", "others"), [(SEQUENCES, OTHER_SHAPES), (MIXES, OTHER_MIXES)])
def test_a_case_with_a_shape_of_its_own_says_why(cases, others):
    named = {case.name for case in cases}
    assert others.keys() <= named | {"heads"}  # a property's
    assert all(len(reason.split()) > 4 for reason in others.values())


def test_sizes_of_an_operator_that_has_none(monkeypatch):
    for operator, name in (("attn_res", "heads"), ("mxfp4_dequant", "key_dim")):
        with pytest.raises(UsageError, match="value_dim") as error:
            seen_by(operator, "quick", monkeypatch, **{name: 4})
        assert error.value.code == "K3C-139"


def test_a_size_for_every_operator_is_for_those_that_have_it(monkeypatch):
    request = OpsRequest(default=replace(OpsRequest().default, heads=3), profile="quick")
    assert make_plan(request, lambda *_: None)
