"""Ids as sets: order, ties, and ids that cannot be."""

from __future__ import annotations

import pytest
import torch

from k3check.compare.verdict import judge
from k3check.model import Outcome
from k3check.nouns.operator import Output
from k3check.nouns.recipe import Recipe

OUTPUTS = (
    Output("ids", ("token", "slot"), dtype="any", compare="set"),
    Output("weights", ("token", "expert"), dtype="any"),
)
#: two tokens, five experts: the best two are 1 and 3, then 0 and 4
CHOICE = torch.tensor([[0.2, 0.9, 0.1, 0.8, 0.3], [0.9, 0.2, 0.1, 0.3, 0.8]], dtype=torch.float64)
IDS = torch.tensor([[1, 3], [0, 4]])


def weights_of(ids, values=((0.6, 0.4), (0.7, 0.3))):
    found = torch.zeros(2, 5)
    return found.scatter(1, ids.clamp(0, 4), torch.tensor(values))


def judged(ids, weights=None, choice=CHOICE, baseline_choice=None):
    base = choice if baseline_choice is None else baseline_choice
    reference = {"ids": IDS, "weights": weights_of(IDS).double(), "choice": choice}
    baseline = {"ids": IDS, "weights": weights_of(IDS), "choice": base}
    actual = {"ids": ids, "weights": weights_of(IDS) if weights is None else weights}
    return judge(OUTPUTS, actual, reference, baseline, {}, Recipe())


def test_the_same_ids_pass():
    assert judged(IDS).outcome is Outcome.PASS


def test_the_order_says_nothing():
    assert judged(IDS.flip(1)).outcome is Outcome.PASS


def test_int32_ids_pass():
    assert judged(IDS.int()).outcome is Outcome.PASS


def test_another_expert_is_wrong_and_named():
    found = judged(torch.tensor([[1, 3], [0, 3]]))
    assert found.outcome is Outcome.FAIL
    assert found.problem.code == "K3O-305"
    assert found.problem.values == {
        "rows": 1, "total": 2, "token": 1, "extra": "3", "missing": "4",
    }  # fmt: skip
    assert found.location == {"tensor": "ids", "token": 1}
    assert found.metrics["ids.wrong_rows"] == 1


@pytest.mark.parametrize(
    ("ids", "code"),
    [
        (IDS.float(), "K3O-300"),
        (IDS > 0, "K3O-300"),
        (torch.cat([IDS, torch.tensor([[5, 6], [5, 6]])], 1), "K3O-301"),
        (IDS[:, :1], "K3O-301"),
        (torch.tensor([[1, -1], [0, 4]]), "K3O-302"),
        (torch.tensor([[1, 3], [0, 5]]), "K3O-303"),
        (torch.tensor([[1, 3], [4, 4]]), "K3O-304"),
        (IDS[:1], "K3O-002"),
        (None, "K3O-001"),
        ([1, 3], "K3O-001"),
    ],
)
def test_ids_that_cannot_be(ids, code):
    found = judged(ids)
    assert found.outcome is Outcome.FAIL
    assert found.problem.code == code


def swapped():
    ids = torch.tensor([[1, 3], [0, 3]])
    return ids, weights_of(ids, ((0.6, 0.4), (0.7, 0.3)))


def test_a_tie_at_the_last_place_is_no_mistake():
    choice = CHOICE.clone()
    choice[1, 3] = choice[1, 4] - 1e-9
    found = judged(*swapped(), choice=choice)
    assert found.outcome is Outcome.PASS
    assert [n.code for n in found.notes] == ["K3O-306"]
    assert found.metrics["ids.ties"] == 1


def test_a_gap_within_the_baselines_own_error_is_a_tie():
    choice = CHOICE.clone()
    choice[1, 3] = choice[1, 4] - 1e-4
    moved = choice.clone()
    moved[1, 4] -= 5e-5
    assert judged(*swapped(), choice=choice).outcome is Outcome.FAIL
    assert judged(*swapped(), choice=choice, baseline_choice=moved).outcome is Outcome.PASS


def test_a_tie_elsewhere_excuses_nothing():
    choice = CHOICE.clone()
    choice[1, 1] = choice[1, 2]  # two of the worst
    assert judged(*swapped(), choice=choice).outcome is Outcome.FAIL


def test_a_tie_excuses_no_far_expert():
    choice = CHOICE.clone()
    choice[1, 3] = choice[1, 4]
    ids = torch.tensor([[1, 3], [0, 2]])
    assert judged(ids, weights_of(ids), choice=choice).outcome is Outcome.FAIL


def test_wrong_weights_of_right_ids_fail():
    found = judged(IDS, weights_of(IDS, ((0.5, 0.5), (0.7, 0.3))))
    assert found.outcome is Outcome.FAIL
    assert found.problem.values["tensor"] == "weights"


def test_wrong_ids_with_a_tie_in_another_row_still_fail():
    choice = CHOICE.clone()
    choice[1, 3] = choice[1, 4]
    ids = torch.tensor([[1, 0], [0, 3]])
    found = judged(ids, weights_of(ids), choice=choice)
    assert found.problem.code == "K3O-305"
    assert found.problem.values["token"] == 0
