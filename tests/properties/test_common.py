"""Every check that needs no reference has a wrong operator that it catches, of every operator.

The wrong ones are built around the built-ins and make one mistake each. The right ones pass all of
them in every recipe; those of the conventions do so in the tests of their families.
"""

from __future__ import annotations

import pytest
import torch

from k3check.compare import twice
from k3check.model import Outcome
from k3check.nouns.call import call
from k3check.operators import families
from k3check.operators.attn_res.candidate import attn_res
from k3check.operators.conv.candidate import short_conv
from k3check.operators.kda.candidate import kda_gate, kda_recurrent
from k3check.operators.mla.candidate import gated_mla
from k3check.operators.moe.candidate import latent_moe, moe_router, situ_and_mul
from k3check.operators.moe.router_cases import RouterSpec
from k3check.operators.mxfp4.candidate import mxfp4_dequant
from k3check.operators.norm.candidate import gated_rms_norm
from k3check.properties import common
from k3check.properties.along import Along, shuffled, view
from tests.diagnose.test_trust import failed, run_all
from tests.operators.harness import DTYPES, findings_for, operator_of, plan_for

BUILTIN = {
    "kda_gate": kda_gate,
    "kda_step": kda_recurrent,
    "short_conv": short_conv,
    "gated_rms_norm": gated_rms_norm,
    "attn_res": attn_res,
    "moe_router": moe_router,
    "situ_glu": situ_and_mul,
    "latent_moe": latent_moe,
    "gated_mla": gated_mla,
    "mxfp4_dequant": mxfp4_dequant,
}
#: the input with a row a token, and the dimension of its tokens, in the own convention
FIRST = {
    "kda_gate": ("gate", 1),
    "kda_step": ("q", 1),
    "short_conv": ("x", 1),
    "gated_rms_norm": ("x", 1),
    "attn_res": ("sources", 1),
    "moe_router": ("hidden", 0),
    "situ_glu": ("x", 0),
    "latent_moe": ("x", 0),
    "gated_mla": ("x", 1),
    "mxfp4_dequant": ("packed", 0),
}
#: the dimension of the tokens in the first floating output
OUT = {"kda_gate": 1, "gated_rms_norm": 1, "kda_step": 1, "short_conv": 1, "gated_mla": 1}
CODES = {
    "repeat": "K3O-706", "strided": "K3O-707", "token-order": "K3O-715", "row-order": "K3O-715",
    "alone": "K3O-716", "no-tokens": "K3O-717", "batch-order": "K3O-721",
    "channel-order": "K3O-722", "expert-order": "K3O-723", "source-order": "K3O-724",
    "causal": "K3O-725", "packed-separate": "K3O-702", "linear": "K3O-704",
    "beta-zero": "K3O-705",
}  # fmt: skip


def code_of(operator, name):
    by_operator = {
        ("kda_step", "head-order"): "K3O-703",
        ("short_conv", "split"): "K3O-700",
        ("gated_mla", "split"): "K3O-727",
    }
    usual = "K3O-720" if name == "head-order" else CODES.get(name)
    return by_operator.get((operator, name), usual)


def changed(result, change):
    """A result whose (first floating) tensor went through ``change``; ids stay."""
    if isinstance(result, torch.Tensor):
        return change(result)
    which = next(i for i, x in enumerate(result) if x.is_floating_point())
    return tuple(change(x) if i == which else x for i, x in enumerate(result))


def with_result(operator, change):
    """The built-in, its result changed: ``change(result, number of tokens)``."""
    name, dim = FIRST[operator]

    def wrong(*first, **given):
        given |= dict.fromkeys([name], *first) if first else {}
        tokens = given[name].shape[dim]
        return changed(BUILTIN[operator](**given), lambda x: change(x, tokens))

    return wrong


def races(operator):
    """A share of a thousandth of everything, at every other call."""
    calls = []

    def change(x, _tokens):
        calls.append(1)
        return x * (1.05 if len(calls) % 2 else 1)

    return with_result(operator, change)


def ignores_strides(operator):
    """Reads its first input as if it were contiguous from where its memory begins."""
    name, _ = FIRST[operator]

    def wrong(*first, **given):
        given |= dict.fromkeys([name], *first) if first else {}
        x = given[name]
        flat = torch.as_strided(x, (x.numel(),), (1,), x.storage_offset())
        return BUILTIN[operator](**{**given, name: flat.reshape(x.shape)})

    return wrong


def keeps_the_row_before(operator):
    """A twentieth of the row before is still in the buffer."""
    dim = OUT.get(operator, 0)

    def change(x, tokens):
        if tokens < 2:
            return x
        rows = x.clone()
        rows.narrow(dim, 1, tokens - 1).add_(x.narrow(dim, 0, tokens - 1), alpha=0.05)
        return rows

    return with_result(operator, change)


def scales_by_the_batch(operator):
    """Something is taken over all tokens: no order of theirs shows it."""
    return with_result(operator, lambda x, tokens: x * (1 + 0.1 / max(tokens, 1)))


def at_least_one_row(operator):
    dim = OUT.get(operator, 0)

    def change(x, tokens):
        if tokens:
            return x
        shape = list(x.shape)
        shape[dim] = 1
        return x.new_zeros(shape)

    return with_result(operator, change)


def usual_mistakes(operator, order="token-order"):
    return {
        (operator, order): keeps_the_row_before(operator),
        (operator, "alone"): scales_by_the_batch(operator),
        (operator, "repeat"): races(operator),
        (operator, "strided"): ignores_strides(operator),
        (operator, "no-tokens"): at_least_one_row(operator),
    }


def with_inputs(operator, **changes):
    """The built-in on other inputs: ``name = change(input, all inputs)``."""

    def wrong(**given):
        return BUILTIN[operator](
            **{**given, **{n: c(given[n], given) for n, c in changes.items() if n in given}}
        )

    return wrong


def of_the_first(dim):
    """What belongs to the first thing along a dimension is used for all of them."""
    return lambda x, _given: x.narrow(dim, 0, 1).expand_as(x).contiguous()


def state_before_the_last_token(x, weight, initial_state=None, cu_seqlens=None):
    output, state = short_conv(x, weight, initial_state, cu_seqlens)
    return output, (
        short_conv(x[:, :-1], weight, initial_state)[1]
        if cu_seqlens is None and x.shape[1] > 1
        else state
    )


def sees_the_next_input(x, weight, initial_state=None, cu_seqlens=None):
    output, state = short_conv(x, weight, initial_state, cu_seqlens)
    output = output.clone()
    output[:, :-1] += 0.05 * x[:, 1:]
    return output, state


def without_resets(x, weight, initial_state=None, cu_seqlens=None):
    if cu_seqlens is None:
        return short_conv(x, weight, initial_state)
    output, _ = short_conv(x, weight, initial_state[:1])
    return output, short_conv(x, weight, initial_state, cu_seqlens)[1]


def caches_other_rows(**given):
    output, rows = gated_mla(**given)
    return output, 1.1 * rows


def mask_one_off(**given):
    """A twentieth of what comes out of the next token."""
    output, rows = gated_mla(**given)
    output = output.clone()
    output[:, :-1] += 0.05 * output[:, 1:]
    return output, rows


def mixes_the_batch(**given):
    output, rows = gated_mla(**given)
    return torch.cat([output[:1], output[1:] + 0.05 * output[:1]]), rows


def gate_of_the_first_head(w_g, given):
    width = given["value"]
    return w_g[:width].repeat(given["heads"], 1)


def only_half_of_the_experts(bias, _given):
    bias = bias.clone()
    bias[len(bias) // 2 :] = -100
    return bias


def without_the_last_expert(w2, _given):
    return torch.cat([w2[:-1], torch.zeros_like(w2[-1:])])


def counts_the_last_source_twice(sources, query, gain, eps=1e-5):
    return attn_res(torch.cat([sources, sources[-1:]]), query, gain, eps)


def drops_the_last_row(packed, scale, dtype=torch.bfloat16):
    output = mxfp4_dequant(packed, scale, dtype).clone()
    output[-1] = 0
    return output


def doubles_one_row(packed, scale, dtype=torch.bfloat16):
    return mxfp4_dequant(packed, scale, dtype) * (2 if len(packed) == 1 else 1)


def beta_underflows(beta, _given):
    return torch.where(beta < -100, 20.0, beta.double()).to(beta.dtype)


WRONG = {
    **usual_mistakes("kda_gate"),
    ("kda_gate", "head-order"): with_inputs("kda_gate", A_log=of_the_first(0)),
    ("kda_step", "head-order"): with_inputs("kda_step", beta=of_the_first(2)),
    ("kda_step", "linear"): with_inputs("kda_step", v=lambda v, _given: v.clamp(-1, 1)),
    ("kda_step", "beta-zero"): with_inputs("kda_step", beta=beta_underflows),
    ("kda_step", "repeat"): races("kda_step"),
    ("kda_step", "strided"): ignores_strides("kda_step"),
    ("kda_step", "batch-order"): with_inputs("kda_step", initial_state=of_the_first(0)),
    ("short_conv", "split"): state_before_the_last_token,
    ("short_conv", "causal"): sees_the_next_input,
    ("short_conv", "packed-separate"): without_resets,
    ("short_conv", "batch-order"): with_inputs("short_conv", initial_state=of_the_first(0)),
    ("short_conv", "channel-order"): with_inputs("short_conv", weight=of_the_first(0)),
    ("short_conv", "repeat"): races("short_conv"),
    ("short_conv", "strided"): ignores_strides("short_conv"),
    ("short_conv", "no-tokens"): at_least_one_row("short_conv"),
    **usual_mistakes("gated_rms_norm"),
    ("gated_rms_norm", "head-order"): with_inputs("gated_rms_norm", gate=of_the_first(2)),
    **usual_mistakes("attn_res"),
    ("attn_res", "source-order"): counts_the_last_source_twice,
    **usual_mistakes("moe_router"),
    ("moe_router", "expert-order"): with_inputs("moe_router", bias=only_half_of_the_experts),
    **usual_mistakes("situ_glu"),
    **usual_mistakes("latent_moe"),
    ("latent_moe", "expert-order"): with_inputs("latent_moe", w2=without_the_last_expert),
    ("gated_mla", "split"): caches_other_rows,
    ("gated_mla", "causal"): mask_one_off,
    ("gated_mla", "head-order"): with_inputs("gated_mla", w_g=gate_of_the_first_head),
    ("gated_mla", "batch-order"): mixes_the_batch,
    ("gated_mla", "repeat"): races("gated_mla"),
    ("gated_mla", "strided"): ignores_strides("gated_mla"),
    ("mxfp4_dequant", "row-order"): drops_the_last_row,
    ("mxfp4_dequant", "alone"): doubles_one_row,
    ("mxfp4_dequant", "repeat"): races("mxfp4_dequant"),
    ("mxfp4_dequant", "strided"): ignores_strides("mxfp4_dequant"),
}


def names_of(operator):
    return {item.name for item in operator_of(operator).properties}


def one(operator, name, target, **spec):
    return findings_for(operator, target, convention="k3check", only={name}, **spec)[name]


def test_every_property_of_every_operator_has_a_wrong_one():
    own = {"kda_recurrent", "kda_chunk"}  # in tests/operators/kda/test_properties.py
    every = {op.name for family in families() for op in family.operators} - own
    assert every == set(BUILTIN)
    assert set(WRONG) == {(operator, name) for operator in every for name in names_of(operator)}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("operator", "name"), WRONG)
def test_a_wrong_operator_is_caught(operator, name, dtype):
    found = one(operator, name, WRONG[operator, name], dtype=dtype)
    assert found.outcome is Outcome.FAIL
    assert found.hint.code == code_of(operator, name)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operator", BUILTIN)
def test_a_right_operator_is_left_alone(operator, dtype):
    names = names_of(operator)
    for seed in range(3):
        found = findings_for(operator, None, dtype=dtype, seed=seed, only=names)
        assert {name: str(f.outcome) for name, f in found.items()} == dict.fromkeys(names, "pass")


def test_a_capacity_drops_by_order():
    """An expert that is full leaves out whoever comes last."""

    def overflowing(ids, weights, **given):
        taken = torch.zeros(given["w1"].shape[0], dtype=torch.long)
        kept = weights.clone()
        for t in range(len(ids)):
            for j, e in enumerate(ids[t].tolist()):
                taken[e] += 1
                if taken[e] > 15:
                    kept[t, j] = 0
        return latent_moe(ids=ids, weights=kept, **given)

    for name in ("token-order", "alone"):
        assert one("latent_moe", name, overflowing).outcome is Outcome.FAIL


def test_a_state_is_handed_through_where_there_are_no_tokens():
    def forgets(x, weight, initial_state=None, cu_seqlens=None):
        output, state = short_conv(x, weight, initial_state, cu_seqlens)
        return output, state if x.shape[1] else torch.zeros_like(state)

    found = one("short_conv", "no-tokens", forgets)
    assert (found.outcome, found.hint.code) == (Outcome.FAIL, "K3O-708")


def raising_without(tokens_in, error):
    def refuses(x, gate, gain, eps=1e-5):
        if not tokens_in(x):
            raise error
        return gated_rms_norm(x, gate, gain, eps)

    return refuses


def test_who_raises_without_tokens_is_told_so_and_no_more():
    refuses = raising_without(lambda x: x.numel(), ValueError("no tokens"))
    found = one("gated_rms_norm", "no-tokens", refuses)
    assert found.outcome is Outcome.ACCEPTABLE
    (note,) = found.notes
    assert (note.code, note.values) == ("K3O-718", {"error": "ValueError: no tokens"})


def test_who_raises_for_views_is_told_so_and_no_more():
    refuses = raising_without(torch.Tensor.is_contiguous, RuntimeError("x must be contiguous"))
    found = one("gated_rms_norm", "strided", refuses)
    assert found.outcome is Outcome.ACCEPTABLE
    (note,) = found.notes
    assert (note.code, note.values) == ("K3O-719", {"error": "RuntimeError: x must be contiguous"})


def test_kda_may_refuse_views_too():
    def refuses(**given):
        if not given["q"].is_contiguous():
            raise RuntimeError("q must be contiguous")
        return kda_recurrent(**given)

    found = one("kda_recurrent", "strided", refuses)
    assert found.outcome is Outcome.ACCEPTABLE
    assert [note.code for note in found.notes] == ["K3O-719"]


def test_a_grid_of_no_blocks_is_a_refusal():
    error = RuntimeError("CUDA error: invalid configuration argument")
    refuses = raising_without(lambda x: x.numel(), error)
    found = one("gated_rms_norm", "no-tokens", refuses)
    assert found.outcome is Outcome.ACCEPTABLE
    assert [note.code for note in found.notes] == ["K3O-718"]


@pytest.mark.parametrize("name", ["no-tokens", "strided"])
def test_a_lack_of_memory_is_no_refusal(name):
    def greedy(x, gate, gain, eps=1e-5):
        if not x.numel() or not x.is_contiguous():
            raise MemoryError("too much")
        return gated_rms_norm(x, gate, gain, eps)

    with pytest.raises(common.CandidateError):
        one("gated_rms_norm", name, greedy)


def reason(operator, name, target, **spec):
    found = findings_for(operator, target, only={name}, **spec)[name]
    assert found.outcome is Outcome.SKIPPED
    (note,) = found.notes
    assert note.code == "K3O-016"
    return note.values["reason"]


def test_what_does_not_apply_is_said():
    def fold(out, src, fold, nsrc, n, eps):
        del nsrc, n
        keys = src.double() / (src.double().square().mean(-1, keepdim=True) + eps).sqrt()
        out.copy_((keys @ fold.double()).softmax(0) @ src.double())

    said = reason("attn_res", "no-tokens", fold, convention="fold")
    assert said == "the convention fold calls it once a token, so never without any"
    said = reason("attn_res", "strided", fold, convention="fold")
    assert said == "the convention fold hands on contiguous copies"
    said = reason("gated_rms_norm", "alone", gated_rms_norm, multiple_of=8)
    assert said == "the operator only takes multiples of 8 tokens"
    said = reason("attn_res", "source-order", lambda **_: None, convention="vllm")
    assert said == "the callable adds to the last source, so the order is part of the mix"


def test_in_multiples_the_others_apply():
    only = names_of("short_conv")
    found = findings_for("short_conv", short_conv, multiple_of=16, only=only)
    assert {name: str(f.outcome) for name, f in found.items()} == dict.fromkeys(only, "pass")
    only = names_of("gated_mla")
    found = findings_for("gated_mla", gated_mla, multiple_of=16, only=only)
    assert {name: str(f.outcome) for name, f in found.items()} == dict.fromkeys(only, "pass")


def test_atomics_are_no_race():
    def atomics(x, tokens, calls=[]):  # noqa: B006 - counts the calls
        calls.append(tokens)
        x = x.clone()
        x[:, 3] *= 1 + (len(calls) % 2) * 2 * torch.finfo(x.dtype).eps
        return x

    found = one("gated_rms_norm", "repeat", with_result("gated_rms_norm", atomics))
    assert found.outcome is Outcome.ACCEPTABLE
    assert [note.code for note in found.notes] == ["K3O-711"]


def test_bits_that_depend_on_the_future_are_told():
    """A scale over all tokens that is divided out again rounds otherwise."""

    def scaled(x, weight, initial_state=None, cu_seqlens=None):
        output, state = short_conv(x, weight, initial_state, cu_seqlens)
        scale = 1.1 * x.abs().max()
        return output / scale * scale, state

    found = one("short_conv", "causal", scaled)
    assert found.outcome is Outcome.ACCEPTABLE
    assert [note.code for note in found.notes] == ["K3O-726"]


def test_a_tie_may_be_broken_by_the_place_in_the_batch():
    """Of two equal experts either is right: every second row takes the other one."""

    def either(hidden, weight, bias, top_k, renormalize=True, scaling=1.0):
        tilt = torch.zeros_like(bias)
        tilt[1::2] = 1e-9
        rows = []
        for t in range(len(hidden)):
            other = bias.double() + tilt.double() * (1 if t % 2 else -1)
            rows.append(
                moe_router(
                    hidden[t : t + 1].double(), weight.double(), other, top_k,
                    renormalize=renormalize, scaling=scaling,
                )
            )  # fmt: skip
        ids, weights = (torch.cat(x) for x in zip(*rows, strict=True))
        return ids, weights.float()

    spec = RouterSpec(equal=True, top_k=7)
    along = Along(spec, {"hidden": 0}, dict.fromkeys(("ids", "weights", "choice"), 0))
    check = common.order("token-order", along)
    candidate = candidate_of("moe_router", either)
    found = check.check(candidate, 0)
    assert found.outcome is Outcome.PASS
    assert found.metrics["weights.difference"] <= found.limits["weights.difference"]
    # Its answers do differ, and rows without a tie are judged: none of the usual case has one.
    inputs = twice.inputs_of(candidate, spec, "token-order", 0)
    turned = {**inputs, "hidden": inputs["hidden"].flip(0)}
    one_way, other = (twice.outputs_of(candidate, x)["weights"] for x in (inputs, turned))
    assert not torch.allclose(one_way, other.flip(0), rtol=1e-2)
    usual = twice.inputs_of(candidate, RouterSpec(), "token-order", 0)
    for made, ties in ((inputs, len(one_way)), (usual, 0)):
        exact = twice.exact_of(candidate, made)
        assert twice.undecided(candidate, exact, exact).sum() == ties


def candidate_of(operator, target):
    """The candidate that a plan makes of a target."""
    from k3check.checking.candidates import build_candidate
    from k3check.nouns.request import CandidateSpec, OpsRequest

    spec = CandidateSpec(operator, "given", origin="test", convention="k3check")
    request = OpsRequest(candidates={operator: spec}, only_configured=True)
    return build_candidate(operator_of(operator), request, lambda *_: target)


@pytest.mark.parametrize("count", range(2, 40))
def test_an_order_is_none_that_a_mistake_follows(count):
    for seed in range(5):
        order = shuffled(count, seed)
        assert sorted(order.tolist()) == list(range(count))
        assert order[0] != 0
        assert order[-1] != count - 1
        if count > 3:
            turned = count - 1 - order
            assert not torch.equal(order.flip(0), turned)
            assert any(not torch.equal(order.roll(1), (order + s) % count) for s in range(count))


def test_a_view_has_the_values_and_strangers_beside_them():
    x = torch.arange(12.0).view(3, 4)
    inside = view(x)
    assert torch.equal(inside, x)
    assert not inside.is_contiguous()
    assert inside.data_ptr() % 16 == 0
    around = torch.as_strided(inside, (3,), (1,), inside.storage_offset() - 3)
    assert around.isnan().all()


def test_views_reach_the_callable():
    """Nothing between the check and the callable makes them contiguous."""
    seen = []

    def watching(x, gate, gain, eps=1e-5):
        seen.append((x.is_contiguous(), gate.is_contiguous()))
        return gated_rms_norm(x, gate, gain, eps)

    candidate = candidate_of("gated_rms_norm", watching)
    inputs = {"x": torch.ones(1, 2, 1, 4), "gate": torch.ones(1, 2, 1, 4), "gain": torch.ones(4)}
    call(candidate, {**inputs, "eps": 1e-5}, lambda given: {**given, "x": view(given["x"])})
    assert seen == [(False, True)]


# --- what follows from a named mistake ----------------------------------------------------------
def gate_of_the_previous_token(x, gate, gain, eps=1e-5):
    """K3O-535."""
    return gated_rms_norm(x, gate.roll(1, 1), gain, eps)


def test_a_check_refers_to_the_mistake_that_the_cases_name():
    found = failed(run_all(gate_of_the_previous_token, "full", "gated_rms_norm"))
    named = found["gated_rms_norm/heads"].diagnoses[0].code
    assert named == "K3O-535"
    for name, own in (("token-order", "K3O-715"), ("alone", "K3O-716")):
        follows = found[f"gated_rms_norm/{name}"]
        assert follows.hint.code == named
        assert follows.evidence["follows_from"] == named
        assert follows.evidence["fails_as"] == own


def test_what_the_mistake_does_not_explain_keeps_its_own_advice():
    def strides_too(x, gate, gain, eps=1e-5):
        read = torch.as_strided(x, (x.numel(),), (1,), x.storage_offset()).reshape(x.shape)
        return gate_of_the_previous_token(read, gate, gain, eps)

    found = failed(run_all(strides_too, "full", "gated_rms_norm"))
    assert found["gated_rms_norm/token-order"].evidence["follows_from"] == "K3O-535"
    assert found["gated_rms_norm/strided"].hint.code == "K3O-707"


def test_an_early_kernel_explains_that_later_tokens_are_seen():
    def early(x, weight, initial_state=None, cu_seqlens=None):
        """K3O-509: every sequence is read one input ahead."""
        _, state = short_conv(x, weight, initial_state, cu_seqlens)
        ends = [0, x.shape[1]] if cu_seqlens is None else cu_seqlens.tolist()
        rows = []
        for n in range(len(ends) - 1):
            part = x[:, ends[n] : ends[n + 1]]
            start = initial_state
            if cu_seqlens is not None and start is not None:
                start = start[n : n + 1]
            ahead = torch.cat([part, torch.zeros_like(part[:, :1])], dim=1)
            rows.append(short_conv(ahead, weight, start)[0][:, 1:])
        return torch.cat(rows, dim=1), state

    found = failed(run_all(early, "full", "short_conv"))
    assert found["short_conv/causal"].evidence["follows_from"] == "K3O-509"
    assert found["short_conv/split"].evidence["follows_from"] == "K3O-509"


@pytest.mark.parametrize("operator", BUILTIN)
def test_they_belong_to_the_full_profile(operator):
    quick = {check.case for check in plan_for(operator, profile="quick")}
    assert not quick & names_of(operator)
