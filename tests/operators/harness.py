"""What the tests of every operator family share: running a plan and proving what cases see."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from k3check.checking.planning import make_plan
from k3check.nouns.candidate_error import guarded
from k3check.nouns.recipe import Recipe
from k3check.nouns.request import CandidateSpec, OpsRequest
from k3check.operators import families
from tests.kill_matrix.visibility import visibility

#: what a claimed mistake must be visible by, in units of the limit
VISIBLE = 5.0
DTYPES = ("float64", "float32", "bfloat16", "float16")


def operator_of(name: str):
    return next(op for f in families() for op in f.operators if op.name == name)


def plan_for(name: str, target=None, **spec: Any):
    """The checks of one operator, for a callable or for the built-in (None)."""
    settings = spec.pop("settings", {})
    profile = spec.pop("profile", "full")
    seed = spec.pop("seed", 0)
    limits = {key: spec.pop(key) for key in ("timeout_s",) if key in spec}
    given = CandidateSpec(name, None if target is None else "given", origin="test", **spec)
    request = OpsRequest(
        candidates={name: given},
        only_configured=True,
        profile=profile,
        seed=seed,
        settings=settings,
        **limits,
    )
    # as the worker does it: what the callable raises is told from what is ours
    called = None if target is None else guarded(target)
    return make_plan(request, lambda _spec, _directory: called)


def findings_for(name: str, target=None, **spec: Any):
    """case -> finding of the operator's checks."""
    only = spec.pop("only", None)
    planned = plan_for(name, target, **spec)
    # what resuming from its state has to say is tested in tests/operators/cache
    checks = [c for c in planned if c.operator == name and c.suite != "cache"]
    return {c.case: c.run() for c in checks if only is None or c.case in only}


def outcomes(name: str, target=None, **spec: Any) -> set[str]:
    return {str(f.outcome) for f in findings_for(name, target, **spec).values()}


def assert_passes(name: str, target=None, **spec: Any) -> None:
    """Every check passes; skipped ones are allowed, but not all."""
    found = findings_for(name, target, **spec)
    bad = {c: (f.hint, dict(f.metrics), dict(f.limits)) for c, f in found.items()
           if str(f.outcome) not in ("pass", "acceptable", "skipped")}  # fmt: skip
    assert not bad, bad
    assert any(str(f.outcome) != "skipped" for f in found.values())


def claims(name: str):
    """(case name, slug) of everything that an operator's cases claim to see."""
    return [(case.name, slug) for case in operator_of(name).cases for slug in case.sees]


def seen_by(name: str, case_name: str, slug: str, dtype: torch.dtype, convention="k3check"):
    """How visible a mistake is in a case, in units of the limit."""
    operator = operator_of(name)
    semantics = next(iter(operator.semantics.values()))
    interface = operator.conventions[convention].bind(None, {}).interface
    recipe = Recipe(io=dtype)
    if dtype == torch.float64:
        recipe = replace(recipe, state=dtype, accumulate=dtype)
    case = next(c for c in operator.cases if c.name == case_name)
    found = {f.slug: f for f in operator.faults(semantics, interface, recipe)}
    return visibility(operator, case, found[slug], semantics, interface, recipe)
