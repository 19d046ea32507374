"""Wrong operators that no input of ours once showed: each is found, and the right one passes."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tests.operators.harness import assert_passes, findings_for

EPS = 1e-20


def failed(name, target, **spec):
    found = findings_for(name, target, **spec)
    return {case for case, f in found.items() if str(f.outcome) in ("fail", "crashed")}


# --- a sigmoid as the difference of two large numbers ------------------------------------------


def mirrored(x):
    return 1 - (-x).sigmoid()


def norm(sigmoid):
    def gated_rms_norm(x, gate, gain, eps=1e-5):
        wide = x.float()
        unit = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
        return (unit * gain.float() * sigmoid(gate).float()).to(x.dtype)

    return gated_rms_norm


def conv(silu):
    def short_conv(x, weight, initial_state=None, cu_seqlens=None):
        assert cu_seqlens is None
        B, T, C = x.shape
        W = weight.shape[-1]
        state = x.new_zeros(B, C, W - 1) if initial_state is None else initial_state
        before = torch.cat([state.transpose(1, 2), x], dim=1).float()
        total = sum(before[:, w : w + T] * weight[:, w].float() for w in range(W))
        final = before[:, -(W - 1) :].transpose(1, 2).to(x.dtype)
        return silu(total.to(x.dtype)).to(x.dtype), final

    return short_conv


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_one_minus_a_sigmoid_in_low_precision(dtype):
    assert failed("gated_rms_norm", norm(mirrored), dtype=dtype, profile="quick") == {"shut"}
    only = ("shut", "sequence", "two-tokens")
    wrong = conv(lambda x: x * mirrored(x))
    assert failed("short_conv", wrong, dtype=dtype, profile="quick", only=only) == {"shut"}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("sigmoid", [torch.sigmoid, lambda x: 0.5 * (1 + (0.5 * x.float()).tanh())])
def test_forms_of_a_sigmoid_that_are_right(dtype, sigmoid):
    assert_passes("gated_rms_norm", norm(sigmoid), dtype=dtype)
    right = conv(lambda x: x * sigmoid(x))
    only = ("shut", "sequence", "two-tokens", "first-prefill", "one-token")
    assert_passes("short_conv", right, dtype=dtype, only=only)


# --- the router --------------------------------------------------------------------------------


def route(
    hidden, weight, bias, top_k, renormalize=True, scaling=1.0, *, eps=EPS, rows=None, marked=None
):
    scores = (hidden.float() @ weight.float().T).sigmoid()
    choice = scores + bias
    if marked is None:
        ids = choice.topk(top_k, dim=-1).indices
    else:  # one after the other, what is chosen marked by some number
        picked = []
        for _ in range(top_k):
            picked.append(choice.argmax(-1, keepdim=True))
            choice = choice.scatter(1, picked[-1], marked)
        ids = torch.cat(picked, 1)
    weights = scores.gather(1, ids)
    if renormalize:
        weights = weights / (weights.sum(-1, keepdim=True) + eps)
    weights = weights * scaling
    if rows is not None:
        weights[rows:] = 0
    return ids, weights


def router(**change):
    def moe_router(hidden, weight, bias, top_k, renormalize=True, scaling=1.0):
        return route(hidden, weight, bias, top_k, renormalize, scaling, **change)

    return moe_router


def only_for(experts, top_k, wrong):
    """Another operator for one pair of numbers."""

    def moe_router(hidden, weight, bias, top_k_, renormalize=True, scaling=1.0):
        if (len(bias), top_k_) == (experts, top_k):
            return wrong(hidden, weight, bias, top_k_, renormalize, scaling)
        return route(hidden, weight, bias, top_k_, renormalize, scaling)

    def named(hidden, weight, bias, top_k, renormalize=True, scaling=1.0):
        return moe_router(hidden, weight, bias, top_k, renormalize, scaling)

    return named


def without_bias(hidden, weight, bias, top_k, renormalize=True, scaling=1.0):
    return route(hidden, weight, torch.zeros_like(bias), top_k, renormalize, scaling)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_right_router_passes(dtype):
    assert_passes("moe_router", router(), dtype=dtype)
    assert_passes("moe_router", router(marked=float("-inf")), dtype=dtype, only=("biased",))


@pytest.mark.parametrize(
    ("case", "profile", "target"),
    [
        ("many-rows", "full", router(rows=1408)),
        ("zero-scores", "quick", router(eps=0.0)),
        ("closed-experts", "full", router(marked=-1e30)),
        ("experts-128-top-8", "full", only_for(128, 8, without_bias)),
        ("experts-384-top-8", "full", only_for(384, 8, without_bias)),
    ],
)
def test_a_routers_mistake_is_found(case, profile, target):
    assert failed("moe_router", target, profile=profile, dtype="float32") == {case}


def test_a_switch_that_is_not_read_shows_in_quick():
    def always(hidden, weight, bias, top_k, renormalize=True, scaling=1.0):
        return route(hidden, weight, bias, top_k, True, scaling)

    assert "not-renormalised" in failed("moe_router", always, profile="quick", dtype="float32")


# --- rows that a grid leaves out ---------------------------------------------------------------


@pytest.mark.parametrize("rows", [1408, 2048, 4096])
def test_rows_that_nobody_computed(rows):
    def first_rows(x, gate, gain, eps=1e-5):
        out = norm(torch.sigmoid)(x, gate, gain, eps)
        out.flatten(0, 2)[rows:] = 0
        return out

    def situ_glu(gate, up, beta=4.0, linear_beta=25.0):
        up = up.float() if linear_beta is None else linear_beta * (up.float() / linear_beta).tanh()
        out = beta * (gate.float() / beta).tanh() * F.sigmoid(gate.float()) * up
        out[rows:] = 0
        return out.to(gate.dtype)

    assert failed("gated_rms_norm", first_rows, dtype="float32") == {"many-rows"}
    found = failed("situ_glu", situ_glu, dtype="float32")
    assert "many-rows" in found
    assert "amplitudes" not in found


# --- attention residuals -----------------------------------------------------------------------


def attnres(*, scale_read=True, gain_read=True, bank_kept=True, low=False):
    """fla's form; ``low``: plain PyTorch, everything stored in the tensors' own precision."""

    def naive_attnres(
        query,
        residuals,
        rms_weight,
        output_rms_weight=None,
        rms_eps=1e-6,
        scale=1.0,
        return_weights=False,
    ):
        v = torch.stack(list(residuals))
        dtype = v.dtype
        if not low:
            v, query, rms_weight = v.float(), query.float(), rms_weight.float()
        keys = v * torch.rsqrt(v.square().mean(-1, keepdim=True) + rms_eps)
        scores = keys @ (query * rms_weight) if low else (keys * rms_weight) @ query
        weights = ((scale if scale_read else 1.0) * scores).softmax(0)
        out = (weights.unsqueeze(-1) * v).sum(0)
        if not bank_kept:
            residuals[1].mul_(0.5)
        if output_rms_weight is not None and gain_read:
            unit = out * torch.rsqrt(out.square().mean(-1, keepdim=True) + rms_eps)
            out = unit * output_rms_weight
        return out.to(dtype)

    return naive_attnres


def test_the_right_mix_passes():
    for dtype in ("float32", "bfloat16"):
        assert_passes("attn_res", attnres(), dtype=dtype)


@pytest.mark.parametrize(
    ("case", "change"),
    [("scaled", {"scale_read": False}), ("output-gain", {"gain_read": False})],
)
def test_what_is_optional_is_given(case, change):
    assert failed("attn_res", attnres(**change), dtype="float32") == {case}


def test_a_source_that_is_overwritten_is_seen():
    found = findings_for("attn_res", attnres(bank_kept=False), dtype="float32", only=("spread",))
    assert found["spread"].hint.code == "K3O-008"


def test_plain_pytorch_in_bfloat16_is_a_precision_and_has_its_name():
    found = findings_for("attn_res", attnres(low=True), dtype="bfloat16")
    assert {str(f.outcome) for f in found.values()} <= {"pass", "acceptable", "skipped"}
    sharp = found["sharp"]
    assert str(sharp.outcome) == "acceptable"
    assert [(n.code, n.values["recipe"]) for n in sharp.notes] == [
        ("K3O-011", "bfloat16 throughout")
    ]


# --- a state that is stored after every token ----------------------------------------------------


def steps(dtype, *, keep=1.0):
    """KDA token by token on activated inputs, the state stored in some precision each time."""

    def kda_chunk(q, k, v, gate, beta, *, activated, scale=None, initial_state=None):
        B, T, H, K = k.shape
        HV, V = v.shape[2:]
        q, k = (x.float().repeat_interleave(HV // H, 2) for x in (q, k))
        scale = K**-0.5 if scale is None else scale
        state = q.new_zeros(B, HV, K, V) if initial_state is None else initial_state.float()
        out = []
        for t in range(T):
            state = keep * state * gate[:, t].float().exp().unsqueeze(-1)
            error = v[:, t].float() - torch.einsum("bhk,bhkv->bhv", k[:, t], state)
            state = state + torch.einsum(
                "bhk,bhv->bhkv", k[:, t], beta[:, t].float().unsqueeze(-1) * error
            )
            state = state.to(dtype).float()
            out.append(scale * torch.einsum("bhk,bhkv->bhv", q[:, t], state))
        kept = torch.float32 if initial_state is None else initial_state.dtype
        return torch.stack(out, 1).to(v.dtype), state.to(kept)

    return kda_chunk


def test_a_state_stored_after_every_token_is_a_recipe_and_has_its_name():
    found = findings_for("kda_chunk", steps(torch.bfloat16), dtype="bfloat16", profile="quick")
    assert {str(f.outcome) for f in found.values()} <= {"pass", "acceptable", "skipped"}
    named = {n.values["recipe"] for f in found.values() for n in f.notes if n.code == "K3O-011"}
    assert "bfloat16 state, stored after every token" in named
    wrong = failed("kda_chunk", steps(torch.bfloat16, keep=0.9), dtype="bfloat16", profile="quick")
    assert wrong


# --- switches of a signature that nobody set ---------------------------------------------------


def fla(*, norm_eps=1e-6, gate_floor=-5.0, beta=torch.sigmoid, unasked=False, refuses=False):
    """fla's form with its switches; the mistakes are inside the kernel."""

    def chunk_kda(
        q,
        k,
        v,
        g,
        beta,
        scale=None,
        initial_state=None,
        output_final_state=False,
        use_qk_l2norm_in_kernel=False,
        use_gate_in_kernel=False,
        use_beta_sigmoid_in_kernel=False,
        lower_bound=None,
        A_log=None,
        dt_bias=None,
    ):
        if refuses and use_gate_in_kernel:
            raise NotImplementedError("the gate is the caller's")
        if use_qk_l2norm_in_kernel:
            q, k = (
                x.float() * torch.rsqrt(x.float().square().sum(-1, keepdim=True) + norm_eps)
                for x in (q, k)
            )
        if use_gate_in_kernel:
            HV, K = v.shape[2], k.shape[-1]
            raw = g.float() + dt_bias.float().view(HV, K)
            g = gate_floor * torch.sigmoid(A_log.float().exp().view(HV, 1) * raw)
        if use_beta_sigmoid_in_kernel:
            beta = activated(beta.float())
        run = steps(torch.float32)
        o, state = run(q, k, v, g, beta, activated=True, scale=scale, initial_state=initial_state)
        return o, state if output_final_state or unasked else None

    activated = beta
    return chunk_kda


def forms(target, profile="full"):
    found = findings_for("kda_chunk", target, dtype="float32", profile=profile, convention="fla")
    usual = {c for c, f in found.items() if str(f.outcome) == "fail" and not c.startswith("form-")}
    return usual, {c: f for c, f in found.items() if c.startswith("form-")}


def test_every_form_of_a_right_callable_passes_and_is_told():
    usual, found = forms(fla(), "quick")
    assert not usual
    assert {c: str(f.outcome) for c, f in found.items()} == {"form-released": "pass"}
    assert "use_qk_l2norm_in_kernel" in found["form-released"].title


@pytest.mark.parametrize(
    "change",
    [{"norm_eps": 1.0}, {"gate_floor": -8.0}, {"beta": torch.tanh}],
)
def test_a_mistake_behind_a_switch_is_found(change):
    usual, found = forms(fla(**change), "quick")
    assert not usual
    assert str(found["form-released"].outcome) == "fail"


def test_a_state_that_nobody_asked_for_and_a_form_that_is_refused():
    found = findings_for(
        "kda_chunk",
        fla(unasked=True, refuses=True),
        dtype="float32",
        convention="fla",
        only={"form-no-state", "form-released", "form-use_gate_in_kernel-alone"},
    )
    assert found["form-no-state"].hint.code == "K3O-850"
    assert str(found["form-released"].outcome) == "acceptable"
    assert found["form-released"].notes[0].code == "K3O-851"
