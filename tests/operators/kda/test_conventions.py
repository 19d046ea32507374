"""Every convention of KDA: a right function of its form passes, a wrong one fails and is named."""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path

import pytest
import torch

from k3check.errors import UsageError
from k3check.operators.kda.conventions import SEQUENCE_CONVENTIONS, STEP_CONVENTIONS
from tests.operators.harness import assert_passes, findings_for, operator_of, plan_for
from tests.operators.kda import libraries as lib

CHUNK, RECURRENT, STEP = "kda_chunk", "kda_recurrent", "kda_step"
RAW = {
    "use_gate_in_kernel": True,
    "use_beta_sigmoid_in_kernel": True,
    "use_qk_l2norm_in_kernel": True,
}
V_FIRST = {**RAW, "safe_gate": True, "state_v_first": True}
FLASHINFER = {"use_gate_in_kernel": True, "beta_is_logit": True}
CUDNN = {"safe_gate": True, "use_beta_sigmoid_in_kernel": True, "use_qk_l2norm_in_kernel": True}
TOKAMAX = {"use_gate_in_kernel": True, "use_qk_l2norm": True}

#: (convention, function, options, the operator it is checked as)
RIGHT = [
    ("k3check", lib.own, {}, CHUNK),
    ("k3check-activated", lib.own_activated, {}, RECURRENT),
    ("fla", lib.chunk_kda, {}, RECURRENT),
    ("fla", lib.chunk_kda, RAW, CHUNK),
    ("fla", lib.chunk_kda, V_FIRST, RECURRENT),
    ("fla", lib.chunk_kda, {**RAW, "return_intermediate_states": True}, RECURRENT),
    ("fla", lib.fused_recurrent_kda, {}, RECURRENT),
    ("fla", lib.fused_recurrent_kda, RAW, STEP),
    ("flash_kda", lib.fwd, {}, CHUNK),
    ("flashinfer", lib.recurrent_kda, {}, RECURRENT),
    ("flashinfer", lib.recurrent_kda, FLASHINFER, RECURRENT),
    ("flashinfer", lib.recurrent_kda, {"use_qk_l2norm_in_kernel": False}, STEP),
    ("flashinfer-pool", lib.recurrent_kda, FLASHINFER, STEP),
    ("flashinfer-pool", lib.recurrent_kda, {}, RECURRENT),
    ("flashinfer-packed", lib.packed_kda_decode, {}, STEP),
    ("vllm", lib.chunk_kda_with_fused_gate, {}, RECURRENT),
    ("vllm", lib.vllm_recurrent, {}, RECURRENT),
    ("vllm", lib.vllm_recurrent, {}, STEP),
    ("sglang", lib.sglang_chunk_kda, {}, RECURRENT),
    ("sglang", lib.sglang_chunk_kda, {"output_intermediate_states": True}, RECURRENT),
    ("sglang-fused", lib.fused_sigmoid_gating_delta_rule_update, {}, RECURRENT),
    ("sglang-fused", lib.fused_sigmoid_gating_delta_rule_update, {}, STEP),
    ("cudnn", lib.kimi_delta_attention, {}, RECURRENT),
    ("cudnn", lib.kimi_delta_attention, CUDNN, RECURRENT),
    ("cudnn", lib.kimi_delta_attention, {"gate_domain": "linear"}, RECURRENT),
    ("attention-gym", lib.gym_chunk_kda, {}, RECURRENT),
    ("attention-gym-naive", lib.gym_naive_recurrent_kda, {}, RECURRENT),
    ("attention-gym-cumulative", lib.gym_cumulative, {}, CHUNK),
    ("attention-gym-paged", lib.gym_paged_chunk_kda, {}, RECURRENT),
    ("attention-gym-packed", lib.recurrent_kda_decode, {}, STEP),
    ("mlx-lm", lib.gated_delta_update, {}, RECURRENT),
    ("mlx-lm", lib.gated_delta_update, {}, STEP),
    ("tokamax", lib.tokamax_kimi_delta_attention, {}, RECURRENT),
    ("tokamax", lib.tokamax_kimi_delta_attention, TOKAMAX, RECURRENT),
    ("hf", lib.chunk_kimi_delta_attention, {}, RECURRENT),
    ("hf", lib.chunk_kimi_delta_attention, {"use_qk_l2norm_in_kernel": False}, RECURRENT),
    ("tt-metal", lib.kda_recurrent_reference, {}, RECURRENT),
]
#: (convention, function, options, operator, mistake, the code that names it)
WRONG = [
    ("k3check", lib.own, {}, RECURRENT, "bias dropped", "K3O-114"),
    ("k3check-activated", lib.own_activated, {}, RECURRENT, "base two", "K3O-120"),
    ("fla", lib.chunk_kda, {}, RECURRENT, "state read transposed", "K3O-191"),
    ("fla", lib.fused_recurrent_kda, RAW, RECURRENT, "norm missing", "K3O-145"),
    ("flash_kda", lib.fwd, {}, RECURRENT, "state read transposed", "K3O-191"),
    ("flash_kda", lib.fwd, {}, RECURRENT, "state returned transposed", "K3O-196"),
    ("flashinfer", lib.recurrent_kda, FLASHINFER, RECURRENT, "no sigmoid", "K3O-131"),
    ("flashinfer", lib.recurrent_kda, {}, RECURRENT, "not in place", "K3O-198"),
    ("flashinfer-pool", lib.recurrent_kda, {}, RECURRENT, "state returned transposed", "K3O-196"),
    ("flashinfer-packed", lib.packed_kda_decode, {}, STEP, "bias dropped", "K3O-114"),
    ("vllm", lib.chunk_kda_with_fused_gate, {}, RECURRENT, "state returned transposed", "K3O-196"),
    ("vllm", lib.vllm_recurrent, {}, RECURRENT, "bias dropped", "K3O-114"),
    ("sglang", lib.sglang_chunk_kda, {}, RECURRENT, "bias dropped", "K3O-114"),
    ("sglang", lib.sglang_chunk_kda, {}, RECURRENT, "not in place", "K3O-198"),
    ("sglang-fused", lib.fused_sigmoid_gating_delta_rule_update, {}, STEP, "bias dropped",
     "K3O-114"),
    ("cudnn", lib.kimi_delta_attention, {}, RECURRENT, "state read transposed", "K3O-191"),
    ("cudnn", lib.kimi_delta_attention, CUDNN, RECURRENT, "bias dropped", "K3O-114"),
    ("attention-gym", lib.gym_chunk_kda, {}, RECURRENT, "base two", "K3O-120"),
    ("attention-gym", lib.gym_chunk_kda, {}, RECURRENT, "state read transposed", "K3O-191"),
    ("attention-gym-naive", lib.gym_naive_recurrent_kda, {}, RECURRENT, "natural base", "K3O-121"),
    ("attention-gym-cumulative", lib.gym_cumulative, {}, RECURRENT, "natural base", "K3O-121"),
    ("attention-gym-paged", lib.gym_paged_chunk_kda, {}, RECURRENT, "base two", "K3O-120"),
    ("attention-gym-packed", lib.recurrent_kda_decode, {}, STEP, "bias dropped", "K3O-114"),
    ("mlx-lm", lib.gated_delta_update, {}, RECURRENT, "state read transposed", "K3O-191"),
    ("mlx-lm", lib.gated_delta_update, {}, RECURRENT, "bias dropped", "K3O-114"),
    ("tokamax", lib.tokamax_kimi_delta_attention, {}, RECURRENT, "state read transposed",
     "K3O-191"),
    ("hf", lib.chunk_kimi_delta_attention, {}, RECURRENT, "scale missing", "K3O-155"),
    ("tt-metal", lib.kda_recurrent_reference, {}, RECURRENT, "norm missing", "K3O-145"),
]  # fmt: skip
#: what no distance to a reference shows: the finding says it itself
BROKEN = [
    ("flash_kda", lib.fwd, {}, RECURRENT, "tail unwritten", "K3O-004"),
    ("flashinfer-pool", lib.recurrent_kda, FLASHINFER, RECURRENT, "slot zero written", "K3O-651"),
    ("flashinfer-packed", lib.packed_kda_decode, {}, STEP, "padding unwritten", "K3O-652"),
    ("vllm", lib.vllm_recurrent, {}, RECURRENT, "slots by sequence", "K3O-651"),
    ("sglang", lib.sglang_chunk_kda, {}, RECURRENT, "one slot too far", "K3O-651"),
    ("attention-gym-paged", lib.gym_paged_chunk_kda, {}, RECURRENT, "null slot written", "K3O-651"),
    ("attention-gym-packed", lib.recurrent_kda_decode, {}, STEP, "padding unwritten", "K3O-652"),
]


def shown(row):
    named = (x for x in (row[0], row[1].__name__, row[3], *row[4:5]) if x)
    return "-".join([*named, *row[2]]).replace(" ", "_")


def everything():
    return {**SEQUENCE_CONVENTIONS, **STEP_CONVENTIONS}


def test_each_convention_has_a_right_and_a_wrong_function_here():
    checked = {name for name, c in everything().items() if c.refuses is None} - {"article"}
    assert {row[0] for row in RIGHT} == checked
    assert {row[0] for row in WRONG} == checked


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("row", RIGHT, ids=shown)
def test_a_right_function_passes(row, dtype):
    convention, function, options, operator = row
    # the checks that need no reference run in one precision only: they call it in the same way
    only = {case.name for case in operator_of(operator).cases} if dtype == "float32" else None
    assert_passes(
        operator,
        lib.library(function),
        convention=convention,
        options=options,
        dtype=dtype,
        only=only,
    )


@pytest.mark.parametrize("row", RIGHT, ids=shown)
def test_only_what_the_form_has_no_room_for_is_skipped(row):
    convention, function, options, operator = row
    names = frozenset(inspect.signature(lib.library(function)).parameters)
    interface = everything()[convention].bind(names, options).interface
    fit = operator_of(operator).fit
    for case in operator_of(operator).cases:
        single = case.spec.tokens == 1 and interface.multiple_of > 1
        no_room = bool(case.needs - interface.supports) or single
        assert isinstance(fit(case, interface), str) == no_room


@pytest.mark.parametrize("row", WRONG, ids=shown)
def test_a_wrong_function_fails_and_is_named(row):
    convention, function, options, operator, mistake, code = row
    target = lib.variant(function, mistake)
    checks = [
        check
        for check in plan_for(
            operator, target, convention=convention, options=options, profile="quick"
        )
        if check.operator == operator
    ]
    found = [check.run() for check in checks]
    assert "fail" in {str(finding.outcome) for finding in found}
    amended = [finding for check in checks if check.amend for finding in check.amend()]
    assert amended
    assert {finding.diagnoses[0].code for finding in amended} == {code}


@pytest.mark.parametrize("row", WRONG, ids=shown)
def test_a_wrong_function_fails_in_bfloat16_too(row):
    convention, function, options, operator, mistake, _ = row
    target = lib.variant(function, mistake)
    found = findings_for(
        operator, target, convention=convention, options=options, dtype="bfloat16", profile="quick"
    )
    assert "fail" in {str(finding.outcome) for finding in found.values()}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("row", BROKEN, ids=shown)
def test_a_broken_rule_is_said(row, dtype):
    convention, function, options, operator, mistake, code = row
    found = findings_for(
        operator,
        lib.variant(function, mistake),
        convention=convention,
        options=options,
        dtype=dtype,
        profile="quick",
    )
    assert code in {f.hint.code for f in found.values() if str(f.outcome) == "fail"}


def test_the_article_s_step():
    spec = {"convention": "article", "semantics": "article"}
    assert_passes(STEP, lib.library(lib.kda_step), **spec)
    wrong = findings_for(STEP, lib.variant(lib.kda_step, "no decay"), **spec)
    assert "fail" in {str(finding.outcome) for finding in wrong.values()}


# --- recognising ------------------------------------------------------------------------------
@pytest.mark.parametrize("row", [r for r in RIGHT if everything()[r[0]].recognisable], ids=shown)
def test_auto_recognises_it_and_says_why(row):
    convention, function, options, operator = row
    checks = plan_for(operator, lib.library(function), options=options, profile="quick")
    notes = checks[0].run().notes
    told = [note for note in notes if note.code == "K3O-650"]
    assert [note.values["convention"] for note in told] == [convention]
    required = everything()[convention].required
    assert all(name in told[0].values["why"] for name in required)
    assert not any(n.code == "K3O-650" for n in checks[1].run().notes), "said once"


def test_a_named_convention_needs_no_reason():
    checks = plan_for(CHUNK, lib.library(lib.chunk_kda), convention="fla", profile="quick")
    assert not any(note.code == "K3O-650" for note in checks[0].run().notes)


@pytest.mark.parametrize(
    ("module", "function", "convention"),
    [
        ("attn_gym.linear.kda.naive", lib.gym_naive_recurrent_kda, "attention-gym-naive"),
        ("fla.ops.kda.naive", lib.gym_naive_recurrent_kda, "fla"),
        ("mine", lib.gym_naive_recurrent_kda, "fla"),
        ("flashinfer.kda", lib.recurrent_kda, "flashinfer"),
    ],
)
def test_a_function_of_a_library_has_its_convention(module, function, convention):
    target = lib.library(function)
    target.__module__ = module
    found = plan_for(RECURRENT, target, profile="quick")[0].run()
    (note,) = (n for n in found.notes if n.code == "K3O-650")
    assert note.values["convention"] == convention
    assert (f"comes from {module.partition('.')[0]}" in note.values["why"]) == (module != "mine")


# --- what does not fit ------------------------------------------------------------------------
def two_names(x, y):
    raise AssertionError("never called")


@pytest.mark.parametrize("operator", [RECURRENT, STEP])
def test_what_does_not_fit_says_what_was_expected_and_found(operator):
    for name, convention in operator_of(operator).conventions.items():
        if convention.refuses is not None:
            continue
        with pytest.raises(UsageError) as caught:
            plan_for(operator, two_names, convention=name)
        assert caught.value.code == "K3C-102", name
        assert caught.value.found == "(x, y)"
        assert all(parameter in caught.value.accepted for parameter in convention.required)


@pytest.mark.parametrize(
    ("function", "name"), [(lib.kda_decode, "trtllm"), (lib.fused_kda_decode, "flashinfer-fused")]
)
@pytest.mark.parametrize("auto", [True, False])
def test_more_than_the_operator_is_refused_with_the_reason(function, name, auto):
    with pytest.raises(UsageError) as caught:
        plan_for(STEP, function, convention="auto" if auto else name)
    assert caught.value.code == "K3C-109"
    assert name in caught.value.what
    assert "convolution" in caught.value.found
    assert name not in caught.value.accepted.split(", ")


@pytest.mark.parametrize(
    ("convention", "function", "options", "semantics"),
    [
        ("flash_kda", lib.fwd, {}, "kimi-linear"),
        ("flash_kda", lib.fwd, {}, "article"),
        ("cudnn", lib.kimi_delta_attention, CUDNN, "kimi-linear"),
        ("fla", lib.chunk_kda, RAW, "article"),
        ("hf", lib.chunk_kimi_delta_attention, {}, "article"),
    ],
)
def test_semantics_that_a_form_cannot_have(convention, function, options, semantics):
    with pytest.raises(UsageError) as caught:
        plan_for(
            CHUNK,
            lib.library(function),
            convention=convention,
            options=options,
            semantics=semantics,
        )
    assert caught.value.code == "K3C-107"
    assert semantics in caught.value.what


@pytest.mark.parametrize(
    ("convention", "function", "options"),
    [
        ("fla", lib.chunk_kda, RAW),
        ("flashinfer", lib.recurrent_kda, FLASHINFER),
        ("vllm", lib.chunk_kda_with_fused_gate, {}),
        ("sglang", lib.sglang_chunk_kda, {}),
        ("mlx-lm", lib.gated_delta_update, {}),
        ("tokamax", lib.tokamax_kimi_delta_attention, TOKAMAX),
        ("cudnn", lib.kimi_delta_attention, {}),
    ],
)
def test_kimi_linear_s_gate_passes_too(convention, function, options):
    assert_passes(
        RECURRENT,
        lib.library(function),
        convention=convention,
        options=options,
        semantics="kimi-linear",
        profile="quick",
    )


def test_an_old_mlx_function_only_has_kimi_linear_s_gate():
    def gated_delta_update(q, k, v, a, b, A_log, dt_bias, state=None, mask=None):
        return lib.gated_delta_update(q, k, v, a, b, A_log, dt_bias, state)

    assert_passes(RECURRENT, gated_delta_update, semantics="kimi-linear", profile="quick")
    with pytest.raises(UsageError, match="K3C-107"):
        plan_for(RECURRENT, gated_delta_update, semantics="k3")


# --- recipes ----------------------------------------------------------------------------------
def test_a_convention_brings_its_usual_recipe():
    seen = []

    def fwd(q, k, v, g, beta, scale, out, A_log, dt_bias, lower_bound, initial_state=None,
            final_state=None, cu_seqlens=None):  # fmt: skip
        seen.append((q.dtype, out.dtype, final_state.dtype, A_log.dtype))
        lib.fwd(q, k, v, g, beta, scale, out, A_log, dt_bias, lower_bound, initial_state,
                final_state, cu_seqlens)  # fmt: skip

    assert_passes(CHUNK, fwd)
    assert set(seen) == {(torch.bfloat16, torch.bfloat16, torch.bfloat16, torch.float32)}
    seen.clear()
    assert_passes(CHUNK, fwd, dtype="bfloat16", state_dtype="float32", profile="quick")
    assert {row[2] for row in seen} == {torch.float32}
    seen.clear()
    assert_passes(CHUNK, fwd, dtype="float32", profile="quick")
    assert {row[2] for row in seen} == {torch.float32}


def test_fla_takes_no_bfloat16_state():
    with pytest.raises(UsageError) as caught:
        plan_for(CHUNK, lib.library(lib.chunk_kda), dtype="bfloat16", state_dtype="bfloat16")
    assert caught.value.code == "K3C-108"
    assert caught.value.accepted == "float32"


# --- fla's options ----------------------------------------------------------------------------
def notes_of(function, options, semantics="k3"):
    checks = plan_for(
        RECURRENT,
        lib.library(function),
        convention="fla",
        options=options,
        semantics=semantics,
        profile="quick",
    )
    return {note.code: note.values for note in checks[0].run().notes}


def test_safe_gate_alone_does_not_bound_the_gate():
    options = {**RAW, "safe_gate": True}
    assert "K3O-653" in notes_of(lib.fused_recurrent_kda, options, "kimi-linear")
    assert "K3O-653" not in notes_of(lib.fused_recurrent_kda, options, "k3")
    assert "K3O-653" not in notes_of(lib.fused_recurrent_kda, RAW, "kimi-linear")


def test_options_that_disappear_are_named():
    notes = notes_of(lib.fused_recurrent_kda, {**RAW, "safe_gate": True, "chunk_size": 32})
    assert notes["K3O-654"] == {"options": "chunk_size, safe_gate"}
    assert "K3O-656" in notes
    assert not {"K3O-654", "K3O-656"} & set(notes_of(lib.chunk_kda, {**RAW, "safe_gate": True}))


def test_flash_kda_may_serve_fla_s_call():
    assert "K3O-657" in notes_of(lib.chunk_kda, V_FIRST)
    assert "K3O-657" not in notes_of(lib.chunk_kda, RAW)


def test_a_doubled_beta_is_noted_and_fails():
    options = {**RAW, "allow_neg_eigval": True}
    assert "K3O-655" in notes_of(lib.chunk_kda, options)
    found = findings_for(
        RECURRENT, lib.library(lib.chunk_kda), convention="fla", options=options, profile="quick"
    )
    assert "fail" in {str(finding.outcome) for finding in found.values()}


def test_rates_by_query_head_are_noted():
    target = lib.library(lib.recurrent_kda)
    found = plan_for(RECURRENT, target, options=FLASHINFER, profile="quick")[0].run()
    assert "K3O-658" in {note.code for note in found.notes}


# --- fla itself -------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def fla_kda():
    """fla's own functions; its import warns about missing accelerators."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(
            "fla.ops.kda", reason="fla-core is not installed", exc_type=ImportError
        )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_fla_s_naive_functions_pass(fla_kda, dtype):
    naive = pytest.importorskip("fla.ops.kda.naive", exc_type=ImportError)
    assert_passes(RECURRENT, naive.naive_recurrent_kda, dtype=dtype)
    assert_passes(CHUNK, naive.naive_chunk_kda, dtype=dtype)


@pytest.mark.parametrize("name", ["chunk_kda", "fused_recurrent_kda"])
@pytest.mark.parametrize("options", [{}, RAW, V_FIRST], ids=["activated", "raw", "all"])
def test_fla_s_own_signatures_fit(fla_kda, name, options):
    """They need an accelerator to run; that they can be called so is seen without one."""
    function = getattr(fla_kda, name)
    checks = plan_for(RECURRENT, function, convention="fla", options=options)
    assert checks
    ours = inspect.signature(lib.library(getattr(lib, name))).parameters
    theirs = inspect.signature(function).parameters
    # what the copy here has, fla has: the copy is what the other tests call
    assert set(ours) - {"return_intermediate_states", "kwargs"} <= set(theirs)


# --- the example ------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_example_passes(dtype):
    source = Path(__file__).parents[3] / "examples" / "operators" / "my_kda.py"
    scope = {"__name__": "my_kda"}
    exec(compile(source.read_text(), str(source), "exec"), scope)
    assert_passes(CHUNK, scope["kda_chunk"], dtype=dtype)
    assert_passes(CHUNK, scope["kda_chunk"], dtype=dtype, semantics="kimi-linear", profile="quick")
