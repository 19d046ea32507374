"""Mistakes that no list has are named by site, change and scope; nothing right is accused."""

from __future__ import annotations

import pytest
import torch

from k3check.model import MUTANT, Confidence
from k3check.operators.kda.candidate import kda_recurrent
from k3check.report.texts import fix_of, slug_of, title_of
from tests.diagnose.test_trust import failed, run_all


def told(target, profile="quick"):
    """Slugs, confidences and titles of the first finding of a case that has a diagnosis."""
    found = failed(run_all(target, profile))
    diagnoses = next(f.diagnoses for f in found.values() if f.diagnoses)
    return [(slug_of(d), d.confidence, title_of(d, "en"), d) for d in diagnoses]


def following_beta(**given):
    """Every token's beta is the next one's; the last keeps its own."""
    beta = given["beta"]
    given["beta"] = torch.cat([beta[:, 1:], beta[:, -1:]], 1)
    return kda_recurrent(**given)


def test_beta_of_the_following_token():
    (slug, confidence, title, diagnosis), *_ = told(following_beta)
    assert slug.startswith("mutant.beta")
    assert ".next-token" in slug
    assert confidence is not Confidence.LOW
    assert "of the following token is used" in title
    assert fix_of(diagnosis, "en").startswith("Read beta")
    assert "后一个 token" in title_of(diagnosis, "zh").replace("后一个token", "后一个 token")


def half_gate(**given):
    given["lower_bound"] = given["lower_bound"] / 2
    return kda_recurrent(**given)


def test_half_of_the_log_decay_is_one_mistake_whatever_site_it_is_told_at():
    found = told(half_gate)
    assert len(found) == 1
    slug, confidence, _, diagnosis = found[0]
    assert slug.endswith(".halved")
    assert confidence is Confidence.HIGH
    assert diagnosis.code == MUTANT


def no_correction_when_packed(**given):
    """A mistake in a scope: beta is left out with packed sequences alone."""
    if given.get("cu_seqlens") is not None:
        given["beta"] = torch.full_like(given["beta"], -60.0)
    return kda_recurrent(**given)


def test_only_when_packed():
    found = told(no_correction_when_packed)
    assert found[0][0].endswith(".packed") or ".packed" in found[0][0]
    assert "only with packed sequences" in found[0][2]


@pytest.mark.parametrize("target", [kda_recurrent])
def test_nothing_right_is_accused(target):
    assert not failed(run_all(target, "quick"))
