"""The part of the kill matrix that the tests can afford.

Every operator in float32 with the quick profile; what is not found there, with the full one; every
fifth mistake in bfloat16. The whole is ``docs/make_kill_matrix.py``.
"""

from __future__ import annotations

import pytest

from k3check.operators import families
from tests.kill_matrix.matrix import (
    Form,
    candidate_with,
    compared,
    everything,
    faults_of,
    forms,
    one_size,
    operators,
    remembering,
    run,
    trial,
)
from tests.kill_matrix.summary import DETECTED, NAMED, Count, undetected, unnamed

#: in every run of the tests; the others are proofs
SMALL = ("mxfp4_dequant", "situ_glu")
NAMES = [
    pytest.param(op.name, marks=() if op.name in SMALL else pytest.mark.proof)
    for family in families()
    for op in family.operators
]
#: shares kda_recurrent's mistakes, but for those of chunks; they are tried there
CHUNKED = "kda_chunk"


def own_form(name: str) -> Form:
    return forms(operators()[name])[0]


def affordable(name: str, dtype: str):
    """One chunk size of everything; of the chunkwise operator only what is its own."""
    faults = faults_of(operators()[name], own_form(name), dtype)
    once = one_size(faults)
    return [f for f in faults if once(f) and (name != CHUNKED or f.slug.startswith("chunk."))]


def chosen_of(faults):
    keys = {(f.code, tuple(f.values.items())) for f in faults}
    return lambda f: (f.code, tuple(f.values.items())) in keys


@pytest.mark.parametrize("name", NAMES)
def test_mistakes_in_float32(name):
    form = own_form(name)
    trials = everything(form, "float32", ("quick",), chosen_of(affordable(name, "float32")))
    count = Count.of(trials)
    assert count.trials > 10
    assert count.share_detected >= DETECTED["quick"], undetected(trials)
    assert count.share_named >= NAMED, unnamed(trials)
    missed = chosen_of([f for f in affordable(name, "float32") if not detected(f, trials)])
    full = everything(form, "float32", ("full",), missed)
    assert not undetected(full)
    assert Count.of(full).share_named >= NAMED, unnamed(full)


def detected(fault, trials):
    key = (fault.code, tuple(fault.values.items()))
    return next(t.detected for t in trials if (t.code, t.values) == key)


@pytest.mark.parametrize("name", NAMES)
def test_every_fifth_mistake_in_bfloat16(name):
    some = affordable(name, "bfloat16")[::5]
    trials = everything(own_form(name), "bfloat16", ("full",), chosen_of(some))
    assert not undetected(trials)
    assert Count.of(trials).share_named >= NAMED, unnamed(trials)


@pytest.mark.parametrize("slug", ["norm.rms", "chunk.inverse-truncated"])
def test_mistakes_that_make_the_operator_unstable(slug):
    """What they return on hard inputs is decided by rounding; easier inputs name them."""
    form = own_form(CHUNKED)
    (only,) = everything(form, "bfloat16", ("full",), lambda f: f.slug == slug and in_16(f))
    assert only.named, only


def in_16(fault):
    return fault.values.get("chunk", 16) == 16


def test_memory_changes_nothing():
    """A trial with remembered references finds and says what one without does."""
    form = own_form("kda_step")
    faults = faults_of(operators()["kda_step"], form, "float32")[::9]
    alone = [trial(form, fault, "float32", "quick") for fault in faults]
    with remembering(form):
        assert [trial(form, fault, "float32", "quick") for fault in faults] == alone


def test_the_memory_is_not_fooled_by_other_inputs():
    """Another seed is another case: nothing of the first is reused."""
    form = own_form("kda_step")
    target = candidate_with(operators()["kda_step"], form, "float32")
    with remembering(form):
        first, second = (
            run(form, target, "quick", seed=seed)["kda_step/step-fast"] for seed in (0, 1)
        )
    again = run(form, target, "quick", seed=1)["kda_step/step-fast"]
    assert first.metrics != second.metrics
    assert second.metrics == again.metrics


@pytest.mark.parametrize("name", NAMES)
def test_every_form_can_be_checked(name):
    """What a convention refuses is no form; everything else gives checks."""
    for form in forms(operators()[name]):
        found = run(form, candidate_with(operators()[name], form, "float32"), "quick", seed=3)
        assert form.direct or compared(found), form
