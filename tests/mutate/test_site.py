"""Sites cost nothing without a probe and change nothing; scopes are masks over named axes."""

from __future__ import annotations

import pytest
import torch

from k3check.mutate.mutation import Change, Memory, Mutation
from k3check.mutate.scope import EVERYWHERE, Scope, range_scope, token_scopes
from k3check.mutate.site import Recorder, Site, Visit, at, note, probed, watched

X = torch.arange(12, dtype=torch.float64).view(1, 4, 3) + 1
ZERO = Change("zero", lambda seen, _memory: torch.zeros_like(seen.value), "{site}", "{site}")
SITE = Site("x", ("batch", "token", "head"), (1, 4, 3))


def through(scope: Scope) -> torch.Tensor:
    mutation = Mutation(SITE, ZERO, scope)
    with probed_by(mutation):
        note(tokens=4)
        return at("x", X, "batch token head")


def probed_by(mutation: Mutation):
    return mutation.during()


def test_without_a_probe_the_very_value_comes_back():
    assert at("x", X, "batch token head") is X
    assert at("scale", 0.5) == 0.5
    assert not watched()


def test_a_recorder_changes_nothing_and_knows_names_axes_and_sizes():
    recorder = Recorder()
    with probed(recorder):
        assert at("x", X, "batch token head") is X
        at("x", X[:, :1], "batch token head")
        at("y", 2.0)
        note(packed=True)
        note(packed=False)
    assert recorder.sites["x"].sizes == {"batch": 1, "token": 4, "head": 3}
    assert recorder.sites["y"].axes == ()
    assert recorder.facts["packed"] is True


def test_a_mutation_holds_in_its_scope_alone():
    assert through(EVERYWHERE).abs().sum() == 0
    later = through(range_scope("head", 1, None))
    assert torch.equal(later[..., :1], X[..., :1])
    assert later[..., 1:].abs().sum() == 0
    first = through(next(s for s in token_scopes() if s.slug == "first"))
    assert first[:, 0].abs().sum() == 0
    assert torch.equal(first[:, 1:], X[:, 1:])


def test_another_site_and_another_fact_leave_it_alone():
    with Mutation(SITE, ZERO).during():
        assert torch.equal(at("z", X, "batch token head"), X)
    with Mutation(SITE, ZERO, Scope(facts={"packed": True})).during():
        note(packed=False)
        assert torch.equal(at("x", X, "batch token head"), X)
        note(packed=True)
        assert at("x", X, "batch token head").abs().sum() == 0


@pytest.mark.parametrize(
    ("slug", "wanted"),
    [
        ("chunk-first-16", [0, 16]),
        ("chunk-last-16", [15]),
        ("partial-chunk-16", [16, 17, 18, 19]),
        ("whole-chunks-16", list(range(16))),
        ("last", [19]),
        ("but-first", list(range(1, 20))),
    ],
)
def test_token_scopes(slug, wanted):
    scope = next(s for s in token_scopes() if s.slug == slug)
    place = torch.arange(20)
    chosen = scope.chosen(place, torch.full_like(place, 20))
    assert chosen.nonzero().flatten().tolist() == wanted


def test_places_count_from_a_sequence_s_own_start_before_it_is_split():
    scope = next(s for s in token_scopes() if s.slug == "first")
    seen = Visit(Site("x", ("token",), (6,)), torch.ones(6), 0)
    mask = scope.mask(seen, {"ends": [0, 2, 2, 6], "whole": True})
    assert mask.tolist() == [True, False, True, False, False, False]


def test_a_loop_s_previous_value_ends_with_the_sequence():
    from k3check.mutate.order import previous_in_loop

    change = previous_in_loop("zero")
    with Mutation(Site("s", ("head",), (3,), looped=True), change).during():
        got = []
        for sequence in range(2):
            note(sequence=sequence, tokens=2)
            got += [
                at("s", torch.full((3,), float(t + 1)), "head", start=t, looped=True)[0].item()
                for t in range(2)
            ]
    assert got == [0.0, 1.0, 0.0, 1.0]
    assert Memory().last is None
