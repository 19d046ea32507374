"""What never calls the user's operator does not bear its name."""

from __future__ import annotations

from k3check.checking import plan
from k3check.model import Outcome
from k3check.nouns.request import CandidateSpec, OpsRequest
from k3check.runners.built_in import told_apart


def never_called(**_):
    raise AssertionError("this operator is never called")


def planned(target):
    names = ("kda_chunk", "kda_gate")
    specs = {
        name: CandidateSpec(name, target=target, convention="k3check", origin="--operator")
        for name in names
    }
    request = OpsRequest(candidates=specs, only_configured=True)
    return request, plan(request, lambda spec, directory=None: never_called)


def test_checks_of_ours_are_named_so_beside_a_users_operator():
    request, checks = planned("a:b")
    before = {check.id: check for check in checks}
    never_yours = {check.id for check in checks if check.built_in}
    assert never_yours == {
        "kda_chunk/article-switches", "kda_chunk/article-half-decay",
    }  # fmt: skip
    after = {check.id: check for check in told_apart(checks, request)}
    assert len(after) == len(before)
    assert not after.keys() & never_yours
    for name in never_yours:
        operator, case = name.split("/")
        check = after[f"built-in/{case}"]
        assert check.operator is None
        assert check.title == f"built-in {operator}: {before[name].title}"
        finding = check.run()  # and it is true: nothing of the user's is called
        assert (finding.id, finding.operator, finding.title) == (check.id, None, check.title)
        assert finding.outcome in (Outcome.PASS, Outcome.ACCEPTABLE)


def test_without_a_users_operator_they_keep_their_names():
    request, checks = planned(None)
    assert told_apart(checks, request) == checks
