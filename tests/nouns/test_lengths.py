"""Functions that only take some numbers of tokens: declared, and found from their crashes."""

from __future__ import annotations

import pytest
import torch

from k3check.errors import UsageError
from k3check.model import Outcome
from k3check.nouns.candidate_error import CandidateError, guarded
from k3check.nouns.request import CandidateSpec, OpsRequest
from k3check.operators.conv.candidate import short_conv
from k3check.operators.kda.candidate import builtin
from k3check.report.listener import Silent
from k3check.report.repeats import ending
from k3check.runners.supervisor import check
from tests.operators.harness import assert_passes, findings_for, operator_of, plan_for

KDA = builtin("kda_chunk")({})


def in_blocks(multiple, most=10**9):
    """A KDA that raises unless every sequence is a multiple of some tokens."""

    def kda_in_blocks(q, k, v, gate, beta, A_log=None, dt_bias=None, lower_bound=-5.0, scale=None,
                      initial_state=None, cu_seqlens=None):  # fmt: skip
        ends = torch.tensor([0, q.shape[1]]) if cu_seqlens is None else cu_seqlens.cpu()
        for n in ends.diff().tolist():
            if n % multiple or n > most:
                raise ValueError(f"expected whole blocks, got {n} tokens")
        given = {"A_log": A_log, "dt_bias": dt_bias, "scale": scale,
                 "initial_state": initial_state, "cu_seqlens": cu_seqlens}  # fmt: skip
        given = {name: value for name, value in given.items() if value is not None}
        return KDA(q, k, v, gate, beta, lower_bound=lower_bound, **given)

    return kda_in_blocks


def run_all(target, **spec):
    """id -> (outcome, hint) as the report has them, and the amendments."""
    found, amended = {}, {}
    for one in plan_for("kda_chunk", guarded(target), **spec):
        if one.suite == "cache":
            continue
        try:
            result = one.run()
            found[one.id] = (result.outcome, result.hint)
        except CandidateError as error:
            found[one.id] = (Outcome.CRASHED, error.hint)
        for finding in one.amend() if one.amend else ():
            amended[finding.id] = finding
    return found, amended


@pytest.mark.parametrize(
    ("multiple", "profile"),
    [(16, "quick"), (32, "quick"), (64, "quick"), (128, "quick"), (32, "full"), (64, "full")],
)
def test_crashes_that_a_length_explains_are_one_sentence(multiple, profile):
    found, amended = run_all(in_blocks(multiple), profile=profile)
    crashed = {name for name, (outcome, _) in found.items() if outcome is Outcome.CRASHED}
    assert len(crashed) > 3
    told = {n: f for n, f in amended.items() if f.hint is not None and f.hint.code == "K3O-033"}
    assert set(told) == crashed
    assert {f.hint.values["multiple"] for f in told.values()} == {multiple}
    assert {f.outcome for f in told.values()} == {Outcome.CRASHED}
    # the report tells what ends alike once: they differ in nothing that it looks at
    errors = {f.evidence["error"].partition(":")[0] for f in told.values()}
    assert errors == {"ValueError"}


def test_one_that_always_raises_is_not_explained_by_lengths():
    def kda(q, k, v, gate, beta, A_log=None, dt_bias=None, lower_bound=-5.0, scale=None,
            initial_state=None, cu_seqlens=None):  # fmt: skip
        raise ValueError(f"no kernel for {q.shape[1]}")

    _, amended = run_all(kda, profile="quick")
    assert not amended


def test_one_that_raises_from_some_length_on_is_not_explained_by_multiples():
    _, amended = run_all(in_blocks(1, most=90), profile="quick")
    assert not [f for f in amended.values() if f.hint and f.hint.code == "K3O-033"]


def test_other_exceptions_keep_their_own_sentence():
    def sometimes(q, k, v, gate, beta, A_log=None, dt_bias=None, lower_bound=-5.0, scale=None,
                  initial_state=None, cu_seqlens=None):  # fmt: skip
        if scale is not None:
            raise ZeroDivisionError("scale")
        return in_blocks(64)(q, k, v, gate, beta, A_log, dt_bias, lower_bound, scale,
                             initial_state, cu_seqlens)  # fmt: skip

    found, amended = run_all(sometimes)
    # `scaled` has 67 tokens, but that is not why it raises
    assert found["kda_chunk/scaled"][0] is Outcome.CRASHED
    assert "kda_chunk/scaled" not in amended
    assert amended["kda_chunk/fast-gates"].hint.code == "K3O-033"


def test_declared_it_passes_and_says_what_was_run():
    assert_passes("kda_chunk", in_blocks(64), multiple_of=64, profile="quick")
    found = findings_for("kda_chunk", in_blocks(64), multiple_of=64,
                         only={"fast-gates", "one-token", "huge-state", "chunk-edges"})  # fmt: skip
    assert found["fast-gates"].title.startswith("in multiples of 64: gates")
    # 64 tokens as it is: nothing to say
    assert "multiples" not in found["huge-state"].title
    for name in ("one-token", "chunk-edges"):
        assert found[name].outcome is Outcome.SKIPPED
        assert "multiples of 64" in found[name].notes[0].values["reason"]


def test_a_declared_multiple_is_beside_the_convention_s_own():
    (first, *_) = plan_for("kda_chunk", KDA, convention="k3check", multiple_of=48)
    assert first.title.startswith("in multiples of 48: ")


def test_operators_without_a_state_have_lengths_too():
    def conv(x, weight, initial_state=None, cu_seqlens=None):
        ends = torch.tensor([0, x.shape[1]]) if cu_seqlens is None else cu_seqlens
        assert not (ends.diff() % 8).any()
        return short_conv(x, weight, initial_state, cu_seqlens)

    assert_passes("short_conv", conv, multiple_of=8)


@pytest.mark.parametrize("operator", ["kda_step", "mxfp4_dequant"])
def test_where_there_are_no_tokens_it_is_refused(operator):
    with pytest.raises(UsageError) as caught:
        plan_for(operator, multiple_of=64)
    assert caught.value.code == "K3C-136"


def test_the_key_of_the_configuration_arrives(tmp_path):
    from k3check.checking.from_config import OpsOptions, request
    from k3check.config.load import load

    path = tmp_path / "k3check.toml"
    path.write_text('[operators.kda_chunk]\ntarget = "a.py:f"\nmultiple_of = 64\n', "utf-8")
    asked = request(load(path, env={}, cwd=tmp_path), OpsOptions())
    assert asked.candidates["kda_chunk"].multiple_of == 64
    assert type(asked).from_json(asked.to_json()) == asked


@pytest.mark.parametrize("value", ["0", "-64", '"64"', "true"])
def test_no_multiple_of_nothing(value, tmp_path):
    from k3check.config.load import load

    path = tmp_path / "k3check.toml"
    path.write_text(f"[operators.kda_chunk]\nmultiple_of = {value}\n", "utf-8")
    with pytest.raises(UsageError):
        load(path, env={}, cwd=tmp_path)


# --- spare rates ---------------------------------------------------------------------------------


def viewed(gate, A_log, dt_bias, lower_bound=-5.0):
    rate = A_log.view(gate.shape[-2]).exp().unsqueeze(-1)
    return lower_bound * torch.sigmoid(rate * (gate.float() + dt_bias))


def test_a_crash_on_spare_rates_says_what_they_are():
    crashed = {}
    for one in plan_for("kda_gate", guarded(viewed)):
        try:
            assert str(one.run().outcome) == "pass"
        except CandidateError as error:
            crashed[one.case] = error
    assert list(crashed) == ["spare-rates"]
    hint = crashed["spare-rates"].hint
    assert hint.code == "K3O-034"
    assert (hint.values["entries"], hint.values["heads"]) == (5, 3)
    assert "shape" in hint.values["error"]


def test_one_that_raises_anyway_is_not_told_about_spare_rates():
    def broken(gate, A_log, dt_bias, lower_bound=-5.0):
        raise ValueError("no")

    cases = {case.name for case in operator_of("kda_gate").cases}
    for one in (c for c in plan_for("kda_gate", guarded(broken)) if c.case in cases):
        with pytest.raises(CandidateError) as caught:
            one.run()
        assert caught.value.hint is None


def test_cut_to_the_heads_it_passes():
    def cut(gate, A_log, dt_bias, lower_bound=-5.0):
        return viewed(gate, A_log[: gate.shape[-2]], dt_bias, lower_bound)

    assert_passes("kda_gate", cut)


# --- through a worker ----------------------------------------------------------------------------

FILE = """
import torch
from k3check.operators.kda.candidate import builtin

whole = builtin("kda_chunk")({})


def gate(gate, A_log, dt_bias, lower_bound=-5.0):
    rate = A_log.view(gate.shape[-2]).exp().unsqueeze(-1)
    return lower_bound * torch.sigmoid(rate * (gate.float() + dt_bias))


def kda(q, k, v, gate, beta, A_log, dt_bias, lower_bound):
    B, T, H, K = q.shape
    q.view(B, T // 64, 64, H, K)
    return whole(q, k, v, gate, beta, A_log=A_log, dt_bias=dt_bias, lower_bound=lower_bound)
"""


def test_both_arrive_in_the_report(tmp_path):
    (tmp_path / "kernels.py").write_text(FILE, "utf-8")
    specs = {
        "kda_gate": CandidateSpec("kda_gate", "kernels.py:gate"),
        "kda_chunk": CandidateSpec("kda_chunk", "kernels.py:kda"),
    }
    asked = OpsRequest(
        suites=("kda", "flashkda"), candidates=specs, only_configured=True, directory=str(tmp_path)
    )
    findings = {f.id: f for f in check(asked, Silent()).findings}
    assert findings["kda_gate/spare-rates"].hint.code == "K3O-034"
    crashed = [f for f in findings.values() if f.operator == "kda_chunk"
               and f.outcome is Outcome.CRASHED]  # fmt: skip
    assert len(crashed) > 10
    # one sentence, and one ending: the report tells them together
    assert {f.hint.code for f in crashed} == {"K3O-033"}
    assert len({ending(f) for f in crashed}) == 1
    assert "traceback" in crashed[0].evidence
