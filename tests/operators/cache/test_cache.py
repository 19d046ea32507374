"""Resuming from a snapshot: right operators pass, each wrong snapshot is caught and named."""

from __future__ import annotations

import pytest
import torch

from k3check import hints
from k3check.checking.planning import make_plan
from k3check.nouns.request import CandidateSpec, OpsRequest
from k3check.operators.cache import blame
from k3check.operators.cache.layers import KINDS
from k3check.operators.cache.pieces import boundary, moved_columns
from k3check.operators.cache.resume import PREFIXES, points
from k3check.operators.conv.candidate import short_conv
from k3check.operators.kda import candidate as kda
from tests.operators.cache.faulty import FAULTY, four_columns, kda_reading, kda_saving
from tests.operators.harness import DTYPES, operator_of
from tests.operators.kda.libraries import library
from tests.operators.kda.test_conventions import RIGHT, STEP, shown

ALONE = {"kda_recurrent", "kda_chunk", "short_conv", "gated_mla"}
ROWS = {
    *ALONE,
    "kda_chunk-to-kda_step",
    "kda_chunk-to-kda_recurrent",
    "stack-kda_chunk",
    "stack-kda_recurrent",
}


def plan(targets=None, *, dtype=None, conventions=None, profile="full", suites=("cache",), seed=0):
    """row -> check, for callables by operator; the others are built in."""
    targets = targets or {}
    specs = {
        name: CandidateSpec(
            name, "given", (conventions or {}).get(name, "k3check"), dtype=dtype, origin="test"
        )
        for name in targets
    }
    request = OpsRequest(
        suites=suites,
        candidates=specs,
        only_configured=not suites,
        default=CandidateSpec("*", dtype=dtype),
        profile=profile,
        seed=seed,
    )
    made = make_plan(request, lambda spec, _directory: targets[spec.operator])
    return {check.case: check for check in made if check.suite == "cache"}


def outcome(check):
    finding = check.run()
    return str(finding.outcome), [d.code for d in finding.diagnoses]


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_builtin_operators_pass(dtype):
    found = plan(dtype=dtype, seed=7)
    assert set(found) == ROWS
    assert {name: outcome(check) for name, check in found.items()} == dict.fromkeys(
        ROWS, ("pass", [])
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", FAULTY)
def test_each_wrong_snapshot_is_caught_and_told_from_all_others(name, dtype):
    operator, make, code = FAULTY[name]
    checks = plan({operator: make()}, dtype=dtype)
    assert outcome(checks[operator]) == ("fail", [code])


@pytest.mark.parametrize("name", FAULTY)
def test_within_a_stack_the_piece_is_named(name):
    operator, make, code = FAULTY[name]
    checks = plan({operator: make()}, dtype="bfloat16")  # where rounding hides the most
    assert outcome(checks["stack-kda_chunk"]) == ("fail", [code])


def test_every_code_of_a_wrong_piece_has_a_wrong_operator():
    named = {code for _, _, code in FAULTY.values()}
    tables = (*blame.SAVED.values(), *blame.READ.values())
    known = {code for table in tables for code in table.values()}
    assert named == known | {blame.POSITION, blame.UNKNOWN_SAVED, blame.UNKNOWN_READ}
    assert all(hints.get(code).slug.startswith("cache.") for code in known)


def test_two_wrong_pieces_are_both_named():
    wrong = {FAULTY[name][0]: FAULTY[name][1]() for name in ("kda transposed", "mla rows early")}
    checks = plan(wrong)
    assert outcome(checks["stack-kda_chunk"]) == ("fail", ["K3O-808", "K3O-824"])


def test_rows_without_the_wrong_operator_still_pass():
    checks = plan({"short_conv": FAULTY["conv reversed"][1]()})
    assert {name for name, check in checks.items() if outcome(check)[0] == "fail"} == {
        "short_conv", "stack-kda_chunk", "stack-kda_recurrent",
    }  # fmt: skip


def test_the_finding_says_where_and_when():
    operator, make, _ = FAULTY["kda at the boundary"]
    found = plan({operator: make()})[operator].run()
    assert found.location["tensor"] in ("output", "kda_state")
    assert found.location["n"] in (1, 100)  # at 64 it is right
    assert found.hint.values["n"] == 100
    assert found.hint.values["found"] == 64
    assert str(found.diagnoses[0].confidence) == "high"
    text = hints.title(found.hint.code, values=found.hint.values)
    assert "at 64 tokens instead of 100" in text


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_wrong_hand_over_blames_the_side_that_is_wrong(dtype):
    def transposing(**given):
        if given.get("initial_state") is not None:
            given["initial_state"] = given["initial_state"].mT
        output, state = kda.kda_recurrent(**given)
        return output, state.mT.contiguous()

    # its own two sides agree; what it takes over from another kernel does not
    checks = plan({"kda_recurrent": transposing}, dtype=dtype)
    assert outcome(checks["kda_recurrent"]) == ("pass", [])
    found = checks["kda_chunk-to-kda_recurrent"].run()
    assert [d.code for d in found.diagnoses] == ["K3O-811"]
    assert found.hint.values["operator"] == "kda_recurrent"


@pytest.mark.parametrize("change", [lambda s: s * 1.0, lambda s: s.contiguous()])
def test_copies_are_no_mistake(change):
    for make in (kda_saving, kda_reading):
        assert outcome(plan({"kda_chunk": make(change)})["kda_chunk"]) == ("pass", [])


def test_a_state_altogether_of_another_layout_passes_if_both_sides_agree():
    def target(**given):
        if given.get("initial_state") is not None:
            given["initial_state"] = given["initial_state"].mT
        output, state = kda.kda_chunk(**given)
        return output, state.mT.contiguous()

    checks = plan({"kda_chunk": target})
    assert outcome(checks["kda_chunk"]) == ("pass", [])
    assert outcome(checks["kda_chunk-to-kda_step"]) == ("fail", ["K3O-808"])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("row", RIGHT, ids=shown)
def test_every_convention_of_kda_resumes(row, dtype):
    """A right function in each library's form, with its layout of the state and its options."""
    convention, function, options, operator = row
    spec = CandidateSpec(operator, "given", convention, dtype=dtype, options=options, origin="test")
    request = OpsRequest(
        suites=("cache",), candidates={operator: spec}, default=CandidateSpec("*", dtype=dtype)
    )
    made = make_plan(request, lambda _spec, _directory: library(function))
    case = "kda_chunk-to-kda_step" if operator == STEP else operator
    (finding,) = (check.run() for check in made if check.case == case)
    assert str(finding.outcome) == "pass", finding


def article_step(S_prev, k, v, alpha, beta):
    decayed = S_prev * alpha[:, None]
    return decayed + beta * torch.outer(k, v - k @ decayed)


def forgetting_step(S_prev, k, v, alpha, beta):
    return article_step(torch.zeros_like(S_prev), k, v, alpha, beta)


def step_without_correction(S_prev, k, v, alpha, beta):
    return S_prev * alpha[:, None] + beta * torch.outer(k, v)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (article_step, ("pass", [])),
        (forgetting_step, ("fail", ["K3O-810"])),
        (step_without_correction, ("fail", ["K3O-802"])),  # what it is, its own suite says
    ],
)
def test_a_step_without_readout_is_judged_by_its_state(step, expected):
    checks = plan({"kda_step": step}, conventions={"kda_step": "article"})
    assert outcome(checks["kda_chunk-to-kda_step"]) == expected


def oldest_lost(state):
    return torch.cat([torch.full_like(state[..., :1], 7.0), state[..., 1:]], dim=-1)


def columns_off(state):
    return torch.nn.functional.pad(state[..., :-1], (1, 0))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_state_of_four_columns(dtype):
    def run(change):
        checks = plan(
            {"short_conv": four_columns(change)}, dtype=dtype, conventions={"short_conv": "fla"}
        )
        return outcome(checks["short_conv"]), outcome(checks["stack-kda_chunk"])

    assert run(lambda s: s) == (("pass", []), ("pass", []))
    assert run(oldest_lost) == (("pass", []), ("pass", []))  # nobody reads it
    assert run(columns_off) == (("fail", ["K3O-817"]), ("fail", ["K3O-817"]))


def test_a_wrong_shape_is_said_as_such():
    checks = plan({"kda_chunk": kda_saving(lambda s: s[:, :1])})
    found = checks["kda_chunk"].run()
    assert (str(found.outcome), found.hint.code) == ("fail", "K3O-002")


def test_not_a_number_fails():
    checks = plan({"kda_chunk": kda_saving(lambda s: s * float("nan"))})
    assert outcome(checks["kda_chunk"]) == ("fail", ["K3O-801"])


def forward(self, hidden_states):
    return self.o_proj(hidden_states)


def test_what_cannot_resume_is_skipped_with_the_reason():
    found = plan({"gated_mla": forward}, conventions={"gated_mla": "hf"})
    for row in ("gated_mla", "stack-kda_chunk"):
        finding = found[row].run()
        assert str(finding.outcome) == "skipped"
        assert "the convention hf does not take cached tokens" in finding.notes[0].values["reason"]


def stateless(x, weight, activation):
    return short_conv(x.mT, weight)[0].mT


def test_a_convolution_without_a_state_is_skipped():
    found = plan({"short_conv": stateless}, conventions={"short_conv": "causal-conv1d"})
    finding = found["short_conv"].run()
    assert str(finding.outcome) == "skipped"
    reason = finding.notes[0].values["reason"]
    assert "stateless() has no parameters initial_states, return_final_states" in reason


def test_different_semantics_do_not_hand_over():
    request = OpsRequest(
        suites=("cache",),
        candidates={"kda_step": CandidateSpec("kda_step", semantics="kimi-linear")},
    )
    checks = {check.case: check for check in make_plan(request, lambda _s, _d: None)}
    finding = checks["kda_chunk-to-kda_step"].run()
    assert str(finding.outcome) == "skipped"
    assert "kimi-linear" in finding.notes[0].values["reason"]


@pytest.mark.parametrize("semantics", ["kimi-linear", "article"])
def test_other_semantics_resume_too(semantics):
    names = ("kda_chunk", "kda_recurrent", "kda_step")
    request = OpsRequest(
        suites=("cache",),
        candidates={name: CandidateSpec(name, semantics=semantics) for name in names},
    )
    checks = {check.case: check for check in make_plan(request, lambda _s, _d: None)}
    assert {name: outcome(c)[0] for name, c in checks.items()} == dict.fromkeys(ROWS, "pass")


def test_only_rows_with_a_configured_operator_are_checked():
    assert set(plan({"short_conv": short_conv}, suites=())) == {
        "short_conv", "stack-kda_chunk", "stack-kda_recurrent",
    }  # fmt: skip


def test_operators_that_were_not_asked_for_get_no_cases():
    made = make_plan(OpsRequest(suites=("cache",)), lambda _s, _d: None)
    assert {check.suite for check in made} == {"cache"}
    kda_only = make_plan(OpsRequest(suites=("kda",)), lambda _s, _d: None)
    assert "cache" not in {check.suite for check in kda_only}


def test_a_hook_checks_each_operator_alone_and_in_a_stack():
    quick = set(plan(profile="quick"))
    assert quick >= {*ALONE, "stack-kda_chunk", "kda_chunk-to-kda_step"}
    assert quick < ROWS


def test_the_prefix_lengths_tell_the_ways_apart():
    # a multiple of every boundary, none of them, and the shortest
    assert [n % 64 for n in PREFIXES] == [0, 36, 1]
    ways = {
        "missing": lambda n: 0,
        "behind": lambda n: n - 1,
        "boundary": lambda n: boundary(64, 0, n),
        "before": lambda n: boundary(64, 1, n),
        "right": lambda n: n,
    }
    assert len({tuple(way(n) for n in PREFIXES) for way in ways.values()}) == len(ways)


def test_operators_that_take_multiples_are_cut_at_multiples():
    cuts = points(16)
    assert {(p.prefix, p.suffix) for p in cuts} == {(64, 16), (112, 16), (16, 16)}


def test_columns_are_moved_with_zeros():
    columns = torch.tensor([[1.0, 2.0, 3.0]])
    assert moved_columns(1, columns).tolist() == [[0.0, 1.0, 2.0]]
    assert moved_columns(-1, columns).tolist() == [[2.0, 3.0, 0.0]]


def test_every_operator_with_a_state_is_known():
    assert all(operator_of(name).name == name for name in KINDS)
