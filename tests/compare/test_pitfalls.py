"""How comparisons of kernels go wrong in the field: each way is tried on ours.

The list is of things that real test suites let through or refuse by mistake. ``output`` has shape
[batch, token, head, channel]; the baseline is the reference with every value rounded to bfloat16.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from k3check.checking import planning
from k3check.compare.verdict import judge
from k3check.model import Outcome
from k3check.nouns.operator import Output
from k3check.nouns.recipe import EXACT, Recipe
from k3check.operators.kda.candidate import kda_recurrent
from tests.operators.harness import findings_for, operator_of

OUTPUT = Output("output", ("batch", "token", "head", "channel"))
STATE = Output("final_state", ("batch", "head", "key", "channel"), dtype="state")
BF16 = Recipe(io=torch.bfloat16)
SHAPE = (2, 96, 4, 32)


def exact(seed=0, shape=SHAPE, size=1.0):
    draw = torch.Generator().manual_seed(seed)
    return size * torch.randn(*shape, generator=draw, dtype=torch.float64)


def verdict(actual, reference=None, inputs=None, recipe=BF16, tolerance=None, outputs=(OUTPUT,)):
    reference = exact() if reference is None else reference
    baseline = {"output": reference.to(recipe.io)}
    return judge(outputs, actual, {"output": reference}, baseline, inputs or {}, recipe, tolerance)


def code(**kept):
    """The code of what is wrong with an output, None if nothing is."""
    actual = kept.pop("actual")
    found = verdict({"output": actual}, **kept)
    assert (found.outcome is Outcome.FAIL) == (found.problem is not None)
    return None if found.problem is None else found.problem.code


def test_the_reference_rounded_to_the_recipe_passes():
    assert code(actual=exact().bfloat16()) is None


# --- degenerate outputs ---------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1.0, 1e-3, 1e-20, 1e20])
def test_zeros_fail_at_any_size(size):
    assert code(actual=torch.zeros(SHAPE).bfloat16(), reference=exact(size=size)) == "K3O-005"


def test_a_constant_fails():
    assert code(actual=torch.full(SHAPE, 0.01).bfloat16(), reference=exact(size=0.01)) == "K3O-006"


def test_a_copied_input_fails():
    v = exact(seed=3).bfloat16()
    assert code(actual=v.clone(), inputs={"q": exact(), "v": v}) == "K3O-007"


def test_an_input_that_is_the_answer_may_be_returned():
    v = exact().bfloat16()
    assert code(actual=v.clone(), reference=v.double(), inputs={"v": v}) is None


def test_a_reference_that_is_zero_accepts_zeros_and_nothing_else():
    zero = torch.zeros(SHAPE, dtype=torch.float64)
    assert code(actual=zero.bfloat16(), reference=zero) is None
    small = torch.full(SHAPE, 1e-30).bfloat16()
    assert code(actual=small, reference=zero) == "K3O-009"


@pytest.mark.parametrize(
    "name", ["kda_gate", "kda_step", "kda_recurrent", "attn_res", "moe_router", "situ_glu"]
)
def test_no_case_has_a_trivial_reference(name):
    """Every output of every case is finite, varies, and is not near the end of float32's range."""
    operator = operator_of(name)
    semantics = next(iter(operator.semantics.values()))
    interface = operator.conventions["k3check"].bind(None, {}).interface
    for case in operator.cases:
        if case.profile == "stress":
            continue
        inputs = operator.present(
            operator.raw(case, semantics, 0), semantics, interface, Recipe(io=torch.float32)
        )
        outputs = operator.evaluate(semantics, interface, inputs, EXACT)
        for output in operator.outputs:
            x = outputs[output.name].double()
            assert torch.isfinite(x).all(), (case.name, output.name)
            assert x.std() > 0, (case.name, output.name)
            assert 1e-10 < x.abs().max() < 1e6, (case.name, output.name)


# --- NaN and infinity -----------------------------------------------------------------------------


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_one_value_that_is_not_finite_fails(value):
    actual = exact().bfloat16()
    actual[1, 50, 2, 7] = value
    found = verdict({"output": actual})
    assert found.problem.code == "K3O-004"
    assert found.problem.values["index"] == [1, 50, 2, 7]
    assert found.location["token"] == 50
    assert found.location["head"] == 2


def test_nan_everywhere_fails():
    assert code(actual=torch.full(SHAPE, math.nan).bfloat16()) == "K3O-004"


def with_holes():
    reference = exact()
    reference[0, 3, 1, 4], reference[0, 5, 0, 0] = math.inf, math.nan
    return reference


def test_infinity_where_the_reference_has_it_passes_and_is_told():
    found = verdict({"output": with_holes().bfloat16()}, with_holes())
    assert found.outcome is Outcome.PASS
    assert [(n.code, n.values["count"]) for n in found.notes] == [("K3O-014", 2)]


@pytest.mark.parametrize("value", [0.0, 3e38, -math.inf, math.nan])
def test_another_value_where_the_reference_is_infinite_fails(value):
    actual = with_holes().bfloat16()
    actual[0, 3, 1, 4] = value
    assert code(actual=actual, reference=with_holes()) == "K3O-013"


@pytest.mark.parametrize("value", [0.0, math.inf])
def test_another_value_where_the_reference_is_nan_fails(value):
    actual = with_holes().bfloat16()
    actual[0, 5, 0, 0] = value
    assert code(actual=actual, reference=with_holes()) == "K3O-013"


def test_nan_elsewhere_is_not_hidden_by_holes_of_the_reference():
    actual = with_holes().bfloat16()
    actual[1, 9, 3, 31] = math.nan
    assert code(actual=actual, reference=with_holes()) == "K3O-004"


def test_wrong_values_beside_holes_of_the_reference_fail():
    assert code(actual=(1.05 * with_holes()).bfloat16(), reference=with_holes()) == "K3O-009"


# --- size, scale, direction -----------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(size=st.floats(-18, 18), factor=st.sampled_from([0.9, 0.97, 1.03, 1.2, 11.3, -1.0]))
def test_a_wrong_factor_fails_at_every_size(size, factor):
    reference = exact(size=10.0**size)
    assert code(actual=(factor * reference).bfloat16(), reference=reference) == "K3O-009"
    assert code(actual=reference.bfloat16(), reference=reference) is None


@settings(max_examples=20, deadline=None)
@given(size=st.integers(-60, 60))
def test_metrics_do_not_depend_on_the_size(size):
    noisy = exact() + 0.01 * exact(seed=1)
    base = verdict({"output": noisy.float()}, recipe=Recipe()).metrics
    scale = 2.0**size
    scaled = verdict({"output": (scale * noisy).float()}, scale * exact(), recipe=Recipe()).metrics
    assert scaled == pytest.approx(base, rel=1e-6)


def test_equal_norms_are_no_agreement():
    reference = exact()
    for actual in (-reference, reference.flip(1), reference.roll(1, 2), reference.flip(3)):
        assert actual.norm() == pytest.approx(reference.norm().item())
        assert code(actual=actual.bfloat16()) == "K3O-009"


def test_a_cosine_of_one_is_no_agreement():
    found = verdict({"output": (1.05 * exact()).bfloat16()})
    assert found.measured["output"].cosine > 0.99999
    assert found.measured["output"].best_scale == pytest.approx(1.05, rel=1e-3)
    assert found.outcome is Outcome.FAIL


def test_one_bad_part_is_enough():
    """Metrics are judged each for itself: a good whole does not outvote a bad part."""
    actual = exact()
    actual[:, :, :, 5] *= 1.1
    found = verdict({"output": actual.bfloat16()})
    assert found.metrics["output.worst_channel"] > 0.09
    assert found.outcome is Outcome.FAIL


# --- small parts of large tensors -----------------------------------------------------------------

LARGE = (1, 2048, 16, 128)


@pytest.fixture(scope="module")
def large():
    return exact(seed=8, shape=LARGE)


@pytest.mark.parametrize(
    ("where", "axis", "index"),
    [
        ((slice(None), slice(None), 11), "head", 11),
        ((slice(None), slice(640, 672)), "token", None),
        ((..., 97), "channel", 97),
    ],
)
def test_a_bad_part_of_a_large_tensor_is_found(large, where, axis, index):
    """A deviation of 5 % in one head, window or channel: 0.4 to 1.3 % of the whole."""
    actual = large.clone()
    actual[where] *= 1.05
    found = verdict({"output": actual.bfloat16()}, large)
    assert found.outcome is Outcome.FAIL
    part = {"head": "worst_head", "token": "worst_window", "channel": "worst_channel"}[axis]
    worst = found.measured["output"].parts[part]
    assert found.metrics[f"output.{part}"] > found.limits[f"output.{part}"]
    assert worst.index == (640 // 32 if index is None else index)


def test_a_swapped_pair_of_heads_in_a_large_tensor_is_found(large):
    actual = large.clone()
    actual[:, :, [3, 4]] = actual[:, :, [4, 3]]
    assert code(actual=actual.bfloat16(), reference=large) == "K3O-009"


@settings(max_examples=25, deadline=None)
@given(token=st.integers(0, 95), head=st.integers(0, 3), batch=st.integers(0, 1))
def test_one_row_of_another_sign_is_found_wherever_it_is(token, head, batch):
    actual = exact()
    actual[batch, token, head] *= -1
    assert code(actual=actual.bfloat16()) == "K3O-009"


def test_a_head_that_is_nearly_zero_is_not_judged_by_its_own_size():
    """Its rounding, small beside the others, is no deviation of 100 %."""
    reference = exact()
    reference[:, :, 2] *= 1e-6
    actual = reference.bfloat16()
    actual[:, :, 2] = 0
    assert code(actual=actual, reference=reference) is None


# --- what is returned -----------------------------------------------------------------------------


def test_a_missing_output_fails():
    found = verdict({}, outputs=(OUTPUT,))
    assert (found.outcome, found.problem.code) == (Outcome.FAIL, "K3O-001")


@pytest.mark.parametrize("value", [None, 3.0, (1, 2), "text"])
def test_something_else_than_a_tensor_fails(value):
    assert code(actual=value) == "K3O-001"


def test_a_second_output_is_judged_even_if_the_first_is_right():
    reference = {"output": exact(), "final_state": exact(shape=(2, 4, 8, 8))}
    baseline = {"output": exact().bfloat16(), "final_state": reference["final_state"].float()}
    wrong = {**baseline, "final_state": 1.01 * baseline["final_state"]}
    for actual, outcome in ((baseline, Outcome.PASS), (wrong, Outcome.FAIL)):
        found = judge((OUTPUT, STATE), actual, reference, baseline, {}, BF16)
        assert found.outcome is outcome
    assert found.problem.values["tensor"] == "final_state"


def test_one_output_too_many_is_no_silent_pass():
    def three(**given):
        return given["v"], given["initial_state"], given["v"]

    findings = findings_for("kda_recurrent", three, convention="k3check", only={"fast-gates"})
    found = findings["fast-gates"]
    assert found.outcome is Outcome.FAIL
    assert found.hint.code == "K3O-019"
    assert (found.hint.values["found"], found.hint.values["expected"]) == (3, "2")


@pytest.mark.parametrize(
    "shape", [(2, 96, 4, 1), (2, 1, 4, 32), (1, 96, 4, 32), (96, 4, 32), (2, 4, 96, 32), ()]
)
def test_a_shape_that_could_be_broadcast_fails(shape):
    assert code(actual=torch.ones(shape).bfloat16()) == "K3O-002"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_another_dtype_fails_whichever_way_it_differs(dtype):
    assert code(actual=exact().to(dtype)) == "K3O-003"


def test_distances_are_measured_in_float64():
    """2^-30 is far below what float32 resolves of a sum, and is measured all the same."""
    actual = exact() * (1 + 2.0**-30)
    found = verdict({"output": actual}, recipe=Recipe(*[torch.float64] * 3))
    assert found.metrics["output.relative_l2"] == pytest.approx(2.0**-30, rel=1e-4)
    assert found.outcome is Outcome.FAIL


# --- limits ---------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(tolerance=st.floats(0, 1e3), noise=st.floats(-5, 0))
def test_a_tolerance_never_loosens(tolerance, noise):
    actual = (exact() + 10.0**noise * exact(seed=1)).bfloat16()
    free, capped = (verdict({"output": actual}, tolerance=t) for t in (None, tolerance))
    for key, limit in free.limits.items():
        assert capped.limits[key] <= limit
        assert capped.limits[key] <= max(tolerance, 0)
    if free.outcome is Outcome.FAIL:
        assert capped.outcome is Outcome.FAIL


def test_a_tolerance_below_rounding_is_told():
    found = verdict({"output": exact().bfloat16()}, tolerance=1e-5)
    assert found.outcome is Outcome.FAIL
    assert [n.code for n in found.notes] == ["K3O-012"]


@settings(max_examples=30, deadline=None)
@given(noise=st.floats(-4, 1))
def test_the_smallest_passing_tolerance_is_what_it_says(noise):
    actual = (exact() + 10.0**noise * exact(seed=1)).float()
    loose = [torch.float32] * 3
    reference = {"output": exact()}
    rough = {"output": exact() + 100 * exact(seed=2)}  # the derived limits do not bind
    needed = judge((OUTPUT,), {"output": actual}, reference, rough, {}, Recipe(*loose)).metrics[
        "smallest_passing_tolerance"
    ]
    for factor, outcome in ((1.001, Outcome.PASS), (0.999, Outcome.FAIL)):
        found = judge(
            (OUTPUT,), {"output": actual}, reference, rough, {}, Recipe(*loose), factor * needed
        )
        assert found.outcome is outcome


def test_limits_do_not_grow_with_the_number_of_elements():
    small = verdict({"output": exact().bfloat16()}).limits["output.relative_l2"]
    reference = exact(shape=(2, 960, 8, 32))
    large = verdict({"output": reference.bfloat16()}, reference).limits["output.relative_l2"]
    assert large == pytest.approx(small, rel=0.02)


def test_an_exact_baseline_leaves_room_for_one_rounding():
    """Values that bfloat16 holds exactly: the floor alone decides."""
    reference = exact().bfloat16().double()
    assert code(actual=reference.bfloat16(), reference=reference) is None
    worse = (reference * (1 + 2.0**-6)).bfloat16()
    assert code(actual=worse, reference=reference) == "K3O-009"


# --- calling --------------------------------------------------------------------------------------


correct = kda_recurrent


def one(target, name="fast-gates", **spec):
    found = findings_for("kda_recurrent", target, convention="k3check", only={name}, **spec)
    return found[name]


def test_the_candidate_runs_before_the_reference(monkeypatch):
    """Otherwise an operator that returns unwritten memory may find the right answer in it."""
    order = []
    operator = operator_of("kda_recurrent")

    def evaluate(*arguments):
        order.append("reference")
        return operator.evaluate(*arguments)

    def target(**given):
        order.append("candidate")
        return correct(**given)

    family = next(f for f in planning.families() if operator in f.operators)
    patched = replace(family, operators=(replace(operator, evaluate=evaluate),))
    monkeypatch.setattr(planning, "families", lambda: (patched,))
    assert one(target).outcome is Outcome.PASS
    assert order[0] == "candidate"
    assert "reference" in order


def test_uninitialised_outputs_fail():
    def unwritten(**given):
        v, state = given["v"], given["initial_state"]
        return torch.full_like(v, math.nan), torch.full_like(state, math.nan)

    assert one(unwritten).hint.code == "K3O-004"


@pytest.mark.parametrize("name", ["v", "initial_state", "gate", "A_log"])
def test_a_changed_input_is_found_although_the_result_is_right(name):
    def changes(**given):
        result = correct(**given)
        given[name].add_(1)
        return result

    found = one(changes)
    assert found.hint.code == "K3O-008"
    assert found.hint.values["input"] == name


def test_a_state_updated_in_place_and_returned_is_a_changed_input():
    def in_place(**given):
        output, state = correct(**given)
        return output, given["initial_state"].copy_(state)

    assert one(in_place).hint.code == "K3O-008"


def test_an_input_returned_as_the_result_is_found():
    def lazy(**given):
        return given["v"], given["initial_state"]

    assert one(lazy).hint.code == "K3O-007"


def test_outputs_that_share_memory_with_each_other_are_taken_as_they_are():
    """Views, strides and shared storage are nobody's mistake."""

    def strided(**given):
        output, state = correct(**given)
        wide = torch.stack([output, -output], dim=-1)
        return wide[..., 0], state.transpose(-1, -2).contiguous().transpose(-1, -2)

    assert one(strided).outcome is Outcome.PASS


def test_an_operator_that_keeps_its_buffer_cannot_change_an_earlier_result():
    kept = []

    def reuses(**given):
        output, state = correct(**given)
        if not kept:
            kept.append(torch.empty_like(output))
        buffer = kept[0] if kept[0].shape == output.shape else torch.empty_like(output)
        return buffer.copy_(output), state

    found = findings_for("kda_recurrent", reuses, convention="k3check", profile="quick")
    assert {str(f.outcome) for f in found.values()} == {"pass"}


# --- inputs ---------------------------------------------------------------------------------------


def test_seeds_and_cases_have_inputs_of_their_own():
    operator = operator_of("kda_recurrent")
    semantics = operator.semantics["k3"]
    first = [operator.raw(operator.cases[0], semantics, seed)["v"] for seed in range(3)]
    assert not any(torch.equal(a, b) for a, b in pairwise(first))
    assert torch.equal(first[1], operator.raw(operator.cases[0], semantics, 1)["v"])
    cases = [operator.raw(case, semantics, 0)["v"].flatten()[:8] for case in operator.cases]
    assert len({tuple(x.tolist()) for x in cases}) == len(cases)


def test_kda_cases_are_no_lucky_shapes():
    """Partial chunks of every size, several heads, V other than K, more value heads, a batch."""
    specs = [c.spec for c in operator_of("kda_chunk").cases if c.belongs_to("full")]
    for chunk, boundaries in ((16, 2), (32, 2), (64, 2), (128, 1)):
        assert any(s.tokens % chunk and s.tokens > boundaries * chunk for s in specs)
    assert any(s.value_dim != s.key_dim for s in specs)
    assert any(s.value_heads > s.heads for s in specs)
    assert any(s.batch > 1 for s in specs)
    assert {0, 1} < set(next(s.lengths for s in specs if s.lengths))
    assert {s.gate for s in specs} >= {"fast", "medium", "slow", "saturated", "mixed"}
