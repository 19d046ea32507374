"""Every check that needs no reference has a wrong operator that it catches.

The wrong ones are built around the built-in token recurrence; each makes one mistake that its
check is there for. The right operator passes all of them, in every recipe.
"""

from __future__ import annotations

import pytest
import torch

from k3check.model import Outcome
from k3check.nouns.recipe import Arithmetic, Recipe
from k3check.operators.kda.candidate import kda_chunk, kda_recurrent
from k3check.operators.kda.properties import SEQUENCE_PROPERTIES
from tests.operators.harness import findings_for, operator_of

NAMES = [item.name for item in SEQUENCE_PROPERTIES]


def state_one_token_early(**given):
    """Returns the state before the last token."""
    output, state = kda_recurrent(**given)
    if given.get("cu_seqlens") is None and given["k"].shape[1] > 1:
        short = {n: x[:, :-1] if n in ("q", "k", "v", "gate", "beta") else x
                 for n, x in given.items()}  # fmt: skip
        state = kda_recurrent(**short)[1]
    return output, state


def sees_the_next_token(**given):
    """Adds a thousandth of the next token's value."""
    output, state = kda_recurrent(**given)
    output = output.clone()
    output[:, :-1] += 1e-3 * given["v"][:, 1:]
    return output, state


def packs_without_resets(**given):
    """One recurrence over all packed sequences, from the first one's state."""
    offsets = given.pop("cu_seqlens", None)
    if offsets is None:
        return kda_recurrent(**given)
    count = len(offsets) - 1
    given["initial_state"] = given["initial_state"][:1]
    output, state = kda_recurrent(**given)
    return output, state.expand(count, *state.shape[1:]).clone()


def uses_the_first_heads_beta(**given):
    """Reads beta of head 0 for every head."""
    return kda_recurrent(**{**given, "beta": given["beta"][..., :1].expand_as(given["beta"])})


def clamps_values(**given):
    """Cuts v at one."""
    return kda_recurrent(**{**given, "v": given["v"].clamp(-1, 1)})


def writes_without_beta(**given):
    """beta is one wherever its logit is very negative: an underflow taken for "not given"."""
    beta = torch.where(given["beta"] < -100, 20.0, given["beta"].double()).to(given["beta"].dtype)
    return kda_recurrent(**{**given, "beta": beta})


class Races:
    """One token changes by a share of itself at every other call."""

    def __init__(self, share=1e-3):
        self.calls = 0
        self.share = share

    def __call__(self, **given):
        output, state = kda_recurrent(**given)
        self.calls += 1
        if self.calls % 2 and output.shape[1] > 100:
            output = output.clone()
            output[:, 100] *= 1 + self.share
        return output, state


def reference_row_inside(leak=0.0):
    """A right kernel in chunks of 16 whose decays are counted from the chunk's row 12.

    exp(G_t - G_12) exp(G_12 - G_s): where row 12 is a later token, the earlier ones round otherwise
    when it changes. ``leak`` is a share of the next token's value that is added to each output.
    """

    def chunked(q, k, v, gate, beta, A_log, dt_bias, initial_state=None, **_):
        wide = torch.float64 if v.dtype == torch.float64 else torch.float32
        q, k = (x.to(wide) for x in (q, k))
        q, k = (x * (x.square().sum(-1, keepdim=True) + 1e-6).rsqrt() for x in (q, k))
        g = -5 * torch.sigmoid(A_log.to(wide).exp()[:, None] * (gate.to(wide) + dt_bias.to(wide)))
        q, k, w, g = (x.to(wide).transpose(1, 2) for x in (q * k.shape[-1] ** -0.5, k, v, g))
        b = beta.to(wide).sigmoid().mT[..., None]
        S = w.new_zeros(*k.shape[:2], k.shape[3], w.shape[3])
        S = S if initial_state is None else initial_state.to(wide)
        out = []
        for i in range(0, k.shape[2], 16):
            qc, kc, vc, gc, bc = (x[:, :, i : i + 16] for x in (q, k, w, g, b))
            G = gc.cumsum(2)
            ref = G[:, :, min(12, G.shape[2] - 1), None]
            up, down = (G - ref).exp(), (ref - G).exp()
            A = ((kc * up) @ (kc * down).mT).tril(-1)
            P = ((qc * up) @ (kc * down).mT).tril()
            eye = torch.eye(G.shape[2], dtype=wide)
            U = torch.linalg.solve_triangular(
                eye + bc * A, bc * (vc - (kc * G.exp()) @ S), upper=False, unitriangular=True
            )
            out.append((qc * G.exp()) @ S + P @ U)
            rest = (G[:, :, -1:] - G).exp()
            S = G[:, :, -1, :, None].exp() * S + (kc * rest).mT @ U
        o = torch.cat(out, 2).transpose(1, 2)
        o[:, :-1] += leak * v[:, 1:].to(wide)
        kept = torch.float32 if wide == torch.float32 else wide
        return o.to(v.dtype), S.to(kept)

    return chunked


def ignores_strides(**given):
    """Reads q as if it were contiguous from where its memory begins."""
    q = given["q"]
    flat = torch.as_strided(q, (q.numel(),), (1,), q.storage_offset())
    return kda_recurrent(**{**given, "q": flat.reshape(q.shape)})


def leaves_empty_states_unwritten(**given):
    """A sequence without tokens returns early; its state is whatever stood there."""
    output, state = kda_recurrent(**given)
    if given.get("cu_seqlens") is not None:
        empty = given["cu_seqlens"].diff() == 0
        state = state.clone()
        state[empty] = 7.0
    return output, state


def forgets_the_row_after_a_chunk(**given):
    """The first row of a partial chunk is not computed."""
    output, state = kda_recurrent(**given)
    if output.shape[1] % 64 == 1 and output.shape[1] > 1:
        output = output.clone()
        output[:, -1] = 0
    return output, state


WRONG = {
    "split": state_one_token_early,
    "causal": sees_the_next_token,
    "packed-separate": packs_without_resets,
    "head-order": uses_the_first_heads_beta,
    "linear": clamps_values,
    "beta-zero": writes_without_beta,
    "repeat": Races(),
    "strided": ignores_strides,
    "empty": leaves_empty_states_unwritten,
    "chunk-edges": forgets_the_row_after_a_chunk,
}


def test_every_property_has_a_wrong_operator():
    assert set(WRONG) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_operator_is_caught(name):
    found = findings_for("kda_recurrent", WRONG[name], convention="k3check", only={name})[name]
    assert found.outcome is Outcome.FAIL
    code = next(f"K3O-{700 + i}" for i, item in enumerate(SEQUENCE_PROPERTIES) if item.name == name)
    assert found.hint.code == code


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
@pytest.mark.parametrize("target", [kda_recurrent, kda_chunk])
def test_a_right_operator_is_left_alone(target, dtype):
    operator = "kda_chunk" if target is kda_chunk else "kda_recurrent"
    found = findings_for(operator, target, convention="k3check", dtype=dtype, only=set(NAMES))
    assert {case: str(f.outcome) for case, f in found.items()} == dict.fromkeys(NAMES, "pass")


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
def test_a_reference_row_inside_the_chunk_is_no_leak(dtype):
    found = findings_for("kda_chunk", reference_row_inside(), convention="k3check", dtype=dtype,
                         only={"causal", "split", "slow-correlated", "fast-gates"})  # fmt: skip
    causal = found.pop("causal")
    assert causal.outcome in (Outcome.ACCEPTABLE, Outcome.PASS)
    if dtype in ("float64", "float32"):
        assert causal.outcome is Outcome.ACCEPTABLE
        assert [note.code for note in causal.notes] == ["K3O-710"]
        assert 0 < causal.metrics["output.difference"] <= causal.limits["output.difference"]
    assert {str(f.outcome) for f in found.values()} == {"pass"}


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
def test_a_leak_of_five_times_the_limit_fails(dtype):
    """The limit is that of the whole tensor: a leak must be no larger to be found."""
    loud = findings_for("kda_chunk", reference_row_inside(1e-2), convention="k3check", dtype=dtype,
                        only={"causal"})["causal"]  # fmt: skip
    share = 5 * loud.limits["output.difference"] / loud.metrics["output.difference"] * 1e-2
    leak = reference_row_inside(share)
    found = findings_for("kda_chunk", leak, convention="k3check", dtype=dtype, only={"causal"})
    assert found["causal"].outcome is Outcome.FAIL
    assert found["causal"].hint.code == "K3O-701"


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_one_poisoned_element_of_the_past_fails(poison):
    """Whatever the size of everything else."""
    seen = []

    def poisons(**given):
        output, state = kda_recurrent(**given)
        seen.append(output)
        if len(seen) == 2:
            output = output.clone()
            output[0, 3, 0, 0] = poison
        return output, state

    found = findings_for("kda_recurrent", poisons, convention="k3check", only={"causal"})["causal"]
    assert found.outcome is Outcome.FAIL
    assert found.hint.code == "K3O-701"


def test_atomics_are_no_race():
    """Two units in the last place of one token: another order of summation."""
    atomics = Races(2 * torch.finfo(torch.float32).eps)
    found = findings_for("kda_recurrent", atomics, convention="k3check", only={"repeat"})["repeat"]
    assert found.outcome is Outcome.ACCEPTABLE
    assert [note.code for note in found.notes] == ["K3O-711"]


def test_the_worst_of_five_calls_counts():
    """A difference within rounding first, a race later."""
    calls = []

    def races_late(**given):
        output, state = kda_recurrent(**given)
        calls.append(1)
        output = output.clone()
        output[:, 100] *= 1 + (0, 2e-7, 2e-7, 1e-2, 0)[len(calls) - 1]
        return output, state

    found = findings_for("kda_recurrent", races_late, convention="k3check", only={"repeat"})
    assert found["repeat"].outcome is Outcome.FAIL


def test_a_state_in_bfloat16_inside_may_hand_on_an_empty_sequence_rounded():
    def low_state(**given):
        output, state = kda_recurrent(**given)
        return output, state.bfloat16().to(state.dtype)

    found = findings_for("kda_recurrent", low_state, convention="k3check", dtype="bfloat16",
                         only={"empty"})["empty"]  # fmt: skip
    assert found.outcome is Outcome.ACCEPTABLE
    assert [note.code for note in found.notes] == ["K3O-712", "K3O-011"]


def test_tf32_is_legal_on_an_accelerator_alone():
    legal = operator_of("kda_chunk").legal
    assert list(legal(Recipe(device=torch.device("cuda")))) == ["TF32 products"]
    assert legal(Recipe()) == {}


def test_a_small_factor_is_no_rounding_of_a_cpu():
    def grown(**given):
        output, state = kda_chunk(**given)
        return output * 1.0003, state

    found = findings_for("kda_chunk", grown, convention="k3check", only={"fast-gates"})
    assert found["fast-gates"].outcome is Outcome.FAIL


def test_tf32_cuts_thirteen_bits():
    cut = Arithmetic(torch.float32, "tf32", torch.float32, torch.float32).operands
    one = torch.tensor([1.0, 1.0 + 2.0**-10, 1.0 + 2.0**-10 + 2.0**-11, -1.0 - 2.0**-11])
    assert cut(one).tolist() == [1.0, 1.0 + 2.0**-10, 1.0 + 2.0**-10, -1.0]
