"""Which convention parameter names show: right signatures, and near misses."""

from __future__ import annotations

import pytest

from k3check.checking.recognition import choose_convention, recognise
from k3check.errors import UsageError
from k3check.nouns.request import CandidateSpec
from k3check.nouns.signature import parameters_of
from tests.operators.harness import operator_of


def function(signature, module="kernels"):
    scope = {}
    exec(f"def f({signature}): ...", scope)
    scope["f"].__module__ = module
    return scope["f"]


def recognised(operator, signature, module="kernels"):
    target = function(signature, module)
    names, _ = parameters_of(target)
    return recognise(operator_of(operator), CandidateSpec(operator), names, target).name


GYM = "initial_state=None, output_final_state=False, cu_seqlens=None, scale=None, autotune=False"
FN = (
    "x, weight, bias=None, seq_idx=None, initial_states=None, return_final_states=False, "
    "final_states_out=None, activation=None"
)


@pytest.mark.parametrize(
    ("signature", "convention"),
    [
        (FN, "causal-conv1d"),
        ("x, weight, bias=None, seq_idx=None, activation=None", "causal-conv1d"),
        ("x, conv_state, weight, bias=None, activation=None, cache_seqlens=None",
         "causal-conv1d-update"),
        ("x, weight, initial_state=None, output_final_state=False, activation=None", "fla"),
        # an activation alone is nobody's mark, and neither is a bias
        ("x, weight, activation", "k3check"),
        ("x, weight, activation='silu'", "k3check"),
        ("x, weight, bias=None, activation=None", "k3check"),
        ("x, weight, initial_state=None, cu_seqlens=None, activation='silu'", "k3check"),
        ("x, weight", "k3check"),
    ],
)  # fmt: skip
def test_short_conv(signature, convention):
    assert recognised("short_conv", signature) == convention


def test_a_library_s_own_needs_no_mark():
    signature = "x, weight, bias=None, activation=None"
    assert recognised("short_conv", signature, "causal_conv1d.interface") == "causal-conv1d"
    update = "x, conv_state, weight, bias=None, activation=None"
    assert recognised("short_conv", update, "causal_conv1d.interface") == "causal-conv1d-update"


@pytest.mark.parametrize(
    ("operator", "signature", "convention"),
    [
        # raw gates: the parameters of the gate say so, whatever else is asked for
        ("kda_chunk", "q, k, v, gate, beta, A_log, initial_state, output_final_state", "k3check"),
        ("kda_chunk", f"q, k, v, gate, beta, lower_bound, {GYM}", "k3check"),
        ("kda_chunk", f"q, k, v, gate, beta, {GYM}", "attention-gym"),
        ("kda_gate", "logits", "article-logits"),
        ("kda_gate", "x, W_alpha, W_alpha_down", "article"),
        ("kda_chunk", "K_chunk, V_chunk, alpha_chunk, beta_chunk, S_prev", "article"),
        ("kda_gate", "gate, A_log, dt_bias", "k3check"),
        ("kda_gate", "g, A_log, dt_bias", "fla"),
        ("situ_glu", "beta, linear_beta", "module"),
        ("situ_glu", "x, beta, linear_beta", "k3check"),
        ("gated_mla", "self, hidden_states, attention_mask=None", "hf"),
        ("attn_res", "sources, query, gain", "k3check"),
    ],
)  # fmt: skip
def test_near_misses(operator, signature, convention):
    assert recognised(operator, signature) == convention


@pytest.mark.parametrize(
    ("operator", "signature"),
    [
        # logits with the gate's parameters are no article, which takes them alone
        ("kda_gate", "logits, A_log=None, dt_bias=None"),
        # a function that takes its input and both bounds is no class made of the bounds
        ("situ_glu", "gate_up, beta, linear_beta"),
        # a state under causal-conv1d's name, but none of its activation
        ("short_conv", "x, weight, initial_states"),
    ],
)
def test_what_is_nobody_s_is_said(operator, signature):
    with pytest.raises(UsageError) as caught:
        recognised(operator, signature)
    assert caught.value.code == "K3C-103"


def test_a_named_convention_needs_no_mark():
    spec = CandidateSpec("short_conv", convention="causal-conv1d", target="f")
    target = function("x, weight, activation")
    convention, _ = choose_convention(operator_of("short_conv"), spec, target)
    assert convention.name == "causal-conv1d"


def test_the_second_best_is_one_that_could_be_meant():
    from k3check.checking.recognition import why_recognised

    operator = operator_of("short_conv")
    target = function("x, weight, activation=None")
    said = why_recognised(operator, operator.conventions["k3check"], target)
    assert "next best" not in said.values["why"]
