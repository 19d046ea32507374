"""Why a check does not apply: the function is named where the function is why."""

from __future__ import annotations

import torch

from k3check.nouns.capabilities import WORDS
from k3check.operators import families
from k3check.operators.conv.candidate import short_conv
from k3check.operators.kda.candidate import builtin
from tests.operators.harness import assert_passes, findings_for, plan_for


def reason(found):
    assert str(found.outcome) == "skipped"
    return found.notes[0].values["reason"]


def conv(x, weight, initial_state=None):
    return short_conv(x, weight, initial_state)


def stateless(x, weight):
    return short_conv(x, weight)[0]


def test_a_missing_parameter_is_the_function_s():
    found = findings_for("short_conv", conv, only={"packed"})
    assert reason(found["packed"]) == (
        "conv() has no parameter cu_seqlens: add it for packed sequences"
    )


def test_what_the_form_has_no_room_for_is_the_convention_s():
    def causal(x, weight, initial_states=None, return_final_states=False, activation=None):
        raise AssertionError("packed sequences are never passed")

    found = findings_for("short_conv", causal, only={"packed"}, convention="causal-conv1d")
    assert reason(found["packed"]) == (
        "the convention causal-conv1d does not take packed sequences"
    )


def test_two_missing_parameters_are_both_named():
    def pair(gate, up):
        return gate * up

    found = findings_for("situ_glu", pair, only={"uncapped"})
    assert reason(found["uncapped"]) == (
        "pair() has no parameters beta, linear_beta: add them for an up branch without a bound"
    )


def test_properties_say_it_too():
    whole = builtin("kda_chunk")({})

    def kda(q, k, v, gate, beta, A_log=None, dt_bias=None, lower_bound=-5.0, scale=None,
            initial_state=None):  # fmt: skip
        given = {"A_log": A_log, "dt_bias": dt_bias, "scale": scale, "initial_state": initial_state}
        given = {name: value for name, value in given.items() if value is not None}
        return whole(q, k, v, gate, beta, lower_bound=lower_bound, **given)

    expected = "kda() has no parameter cu_seqlens: add it for packed sequences"
    found = findings_for("kda_chunk", kda, only={"packed", "empty", "split"})
    assert reason(found["packed"]) == reason(found["empty"]) == expected
    assert str(found["split"].outcome) == "pass"


def test_the_cache_suite_says_it_too():
    checks = {c.id: c for c in plan_for("short_conv", stateless)}
    found = checks["cache/short_conv"].run()
    assert reason(found) == (
        "short_conv: stateless() has no parameter initial_state: "
        "add it for a final state, an initial state"
    )


def test_less_than_everything_still_passes():
    assert_passes("short_conv", stateless)
    assert_passes("short_conv", conv)


def test_every_capability_has_its_words():
    needed = {need for f in families() for op in f.operators for case in op.cases
              for need in case.needs}  # fmt: skip
    offered = {name for f in families() for op in f.operators for c in op.conventions.values()
               for name in c.abilities}  # fmt: skip
    assert needed | offered <= set(WORDS)


def test_an_ability_is_what_its_parameters_bring():
    """Each convention's table is what its binding does with and without the parameters."""
    tried = 0
    for operator in (op for f in families() for op in f.operators):
        for convention in operator.conventions.values():
            if not convention.abilities:
                continue
            every = frozenset({*convention.required}).union(*convention.abilities.values())
            for capability, parameters in convention.abilities.items():
                assert capability in convention.bind(every, {}).interface.supports
                for name in {*parameters} - {*convention.required}:
                    without = convention.bind(every - {name}, {}).interface.supports
                    assert capability not in without, (operator.name, convention.name, name)
                    tried += 1
    assert tried > 20


def test_what_a_function_has_no_parameter_for_is_not_passed():
    def norm(x, gate, gain):
        wide = x.float()
        unit = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)
        return (unit * gain.float() * gate.float().sigmoid()).to(x.dtype)

    assert_passes("gated_rms_norm", norm)


def test_any_keyword_is_every_input():
    def forwards(x, weight, **rest):
        assert set(rest) <= {"initial_state", "cu_seqlens"}
        return short_conv(x, weight, **rest)

    found = findings_for("short_conv", forwards)
    assert {str(f.outcome) for f in found.values()} == {"pass"}
