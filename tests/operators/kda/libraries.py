"""Every library's function of KDA, in plain torch: right, and with one mistake at a time.

Written from each library's documented signature, independently of k3check: one token loop on
states [B, HV, V, K], in float32 (float64 for float64 inputs), and around it what the library does
with its arguments. ``wrong`` names the mistake of a variant.
"""

from __future__ import annotations

import functools
import inspect
import math

import torch

LB = -5.0


def wide(*tensors):
    return [x if x.dtype == torch.float64 else x.float() for x in tensors]


def unit(x):
    (x,) = wide(x)
    return x / (x.square().sum(-1, keepdim=True) + 1e-6).sqrt()


def gate(raw, A_log, dt_bias, lower_bound, wrong=""):
    """The natural log decay of a raw gate [..., HV, K]."""
    (x,) = wide(raw)
    HV, K = x.shape[-2:]
    if dt_bias is not None and wrong != "bias dropped":
        x = x + dt_bias.reshape(HV, K).to(x.dtype)
    rate = A_log.reshape(-1)[:HV].to(x.dtype).exp()[:, None]
    if lower_bound is None:
        return -rate * torch.nn.functional.softplus(x)
    return lower_bound * torch.sigmoid(rate * x)


def loop(q, k, v, g, beta, scale, state):
    """One batch of sequences; ``state`` [B, HV, V, K] in compute precision, not changed."""
    q, k, v, g, beta = wide(q, k, v, g, beta)
    groups = v.shape[2] // k.shape[2]
    q, k = (x.repeat_interleave(groups, 2) for x in (q, k))
    out = torch.zeros_like(v)
    for t in range(v.shape[1]):
        state = state * g[:, t, :, None].exp()
        error = v[:, t] - torch.einsum("bhvk,bhk->bhv", state, k[:, t])
        state = state + torch.einsum("bhv,bhk->bhvk", beta[:, t, :, None] * error, k[:, t])
        out[:, t] = scale * torch.einsum("bhvk,bhk->bhv", state, q[:, t])
    return out, state


def kda(q, k, v, g, beta, scale=None, state=None, offsets=None):
    """(o in float32, states [N, HV, V, K] in float32) of a batch, or of packed sequences."""
    scale = k.shape[-1] ** -0.5 if scale is None else scale
    N = v.shape[0] if offsets is None else len(offsets) - 1
    work = torch.float64 if v.dtype == torch.float64 else torch.float32
    shape = (N, v.shape[2], v.shape[3], k.shape[3])
    state = torch.zeros(shape, dtype=work) if state is None else state.to(work)
    if offsets is None:
        return loop(q, k, v, g, beta, scale, state)
    outs, states = [], []
    for n in range(N):
        part = slice(int(offsets[n]), int(offsets[n + 1]))
        o, s = loop(*(x[:, part] for x in (q, k, v, g, beta)), scale, state[n : n + 1])
        outs.append(o)
        states.append(s)
    return torch.cat(outs, 1), torch.cat(states)


def turned(state):
    return None if state is None else state.mT


def variant(function, wrong):
    """The function with a mistake in it, under the same signature."""
    made = functools.partial(function, wrong=wrong)
    shown = inspect.signature(function)
    parameters = [p for n, p in shown.parameters.items() if n != "wrong"]
    made.__signature__ = shown.replace(parameters=parameters)
    return made


def library(function):
    """The right function: without the switch for mistakes in its signature."""
    return variant(function, "")


# --- flash-linear-attention ------------------------------------------------------------------
def chunk_kda(
    q, k, v, g, beta, scale=None, initial_state=None, output_final_state=False,
    use_qk_l2norm_in_kernel=False, use_gate_in_kernel=False, use_beta_sigmoid_in_kernel=False,
    allow_neg_eigval=False, safe_gate=False, lower_bound=None, disable_recompute=False,
    return_intermediate_states=False, state_v_first=False, cu_seqlens=None, wrong="", **kwargs,
):  # fmt: skip
    assert initial_state is None or initial_state.dtype == torch.float32
    assert q.shape == k.shape
    assert cu_seqlens is None or q.shape[0] == 1
    if return_intermediate_states:
        assert torch.is_inference_mode_enabled()
    if use_gate_in_kernel:
        assert lower_bound is not None or not safe_gate
        g = gate(g, kwargs["A_log"], kwargs["dt_bias"], lower_bound, wrong)
    if use_beta_sigmoid_in_kernel:
        beta = wide(beta)[0].sigmoid() * (2 if allow_neg_eigval else 1)
    if use_qk_l2norm_in_kernel and wrong != "norm missing":
        q, k = unit(q), unit(k)
    state = (
        initial_state
        if state_v_first or wrong == "state read transposed"
        else turned(initial_state)
    )
    o, s = kda(q, k, v, g, beta, scale, state, cu_seqlens)
    s = s if state_v_first else turned(s).contiguous()
    found = (o.to(v.dtype), s if output_final_state else None)
    return (*found, "h") if return_intermediate_states else found


def fused_recurrent_kda(
    q, k, v, g, beta, A_log=None, dt_bias=None, scale=None, initial_state=None,
    output_final_state=False, use_qk_l2norm_in_kernel=False, use_gate_in_kernel=False,
    use_beta_sigmoid_in_kernel=False, allow_neg_eigval=False, lower_bound=None,
    state_v_first=False, cu_seqlens=None, wrong="", **kwargs,
):  # fmt: skip
    return chunk_kda(
        q, k, v, g, beta, scale, initial_state, output_final_state, use_qk_l2norm_in_kernel,
        use_gate_in_kernel, use_beta_sigmoid_in_kernel, allow_neg_eigval, lower_bound=lower_bound,
        state_v_first=state_v_first, cu_seqlens=cu_seqlens, A_log=A_log, dt_bias=dt_bias,
        wrong=wrong,
    )  # fmt: skip


# --- FlashKDA --------------------------------------------------------------------------------
def fwd(
    q, k, v, g, beta, scale, out, A_log, dt_bias, lower_bound, initial_state=None,
    final_state=None, cu_seqlens=None, wrong="",
):  # fmt: skip
    assert q.shape[-1] == v.shape[-1] == 128
    assert q.shape == v.shape
    assert all(x.is_contiguous() for x in (q, k, v, g, beta, out, final_state))
    assert initial_state is None or initial_state.dtype == final_state.dtype
    assert out.isnan().all()
    assert final_state.isnan().all()
    assert cu_seqlens is None or (cu_seqlens.dtype == torch.int64 and q.shape[0] == 1)
    assert dt_bias.shape == q.shape[2:]
    g = gate(g, A_log, dt_bias, lower_bound, wrong)
    start = turned(initial_state) if wrong == "state read transposed" else initial_state
    o, s = kda(unit(q), unit(k), v, g, wide(beta)[0].sigmoid(), scale, start, cu_seqlens)
    if wrong == "tail unwritten":
        out[:, : -(-o.shape[1] // 16) * 16 - 16] = o[:, : -(-o.shape[1] // 16) * 16 - 16].to(v)
    else:
        out.copy_(o)
    final_state.copy_(turned(s) if wrong == "state returned transposed" else s)


# --- flashinfer ------------------------------------------------------------------------------
def recurrent_kda(
    q, k, v, g, beta, A_log=None, dt_bias=None, scale=None, initial_state=None,
    output_final_state=False, use_qk_l2norm_in_kernel=True, use_gate_in_kernel=False,
    lower_bound=None, cu_seqlens=None, ssm_state_indices=None, num_spec_tokens=None,
    num_accepted_tokens=None, output=None, initial_state_source=None, initial_state_indices=None,
    beta_is_logit=False, wrong="",
):  # fmt: skip
    assert q.dtype == g.dtype == beta.dtype
    assert cu_seqlens is None or cu_seqlens.dtype == torch.int32
    if use_gate_in_kernel:
        H, groups = q.shape[2], v.shape[2] // q.shape[2]
        assert A_log.shape == (H,)
        assert dt_bias.shape == (H * q.shape[3],)
        spread = [x.repeat_interleave(groups, 0) for x in (A_log, dt_bias.view(H, -1))]
        g = gate(g, *spread, lower_bound, wrong)
    if beta_is_logit and wrong != "no sigmoid":
        beta = wide(beta)[0].sigmoid()
    if use_qk_l2norm_in_kernel:
        q, k = unit(q), unit(k)
    N = v.shape[0] if cu_seqlens is None else len(cu_seqlens) - 1
    pooled = ssm_state_indices is not None
    rows = ssm_state_indices.long() if pooled else torch.arange(N)
    start = None if initial_state is None else initial_state[rows]
    o, s = kda(q, k, v, g, beta, scale, start, cu_seqlens)
    if initial_state is None:
        return o.to(v.dtype), s.to(v.dtype)
    if wrong == "not in place":
        return o.to(v.dtype), s.to(initial_state.dtype)
    if wrong == "slot zero written":
        initial_state[0] = 0
    s = turned(s) if wrong == "state returned transposed" else s
    initial_state[rows] = s.to(initial_state.dtype)
    return o.to(v.dtype), initial_state


def packed_kda_decode(
    mixed_qkv, raw_gate, raw_beta, A_log, dt_bias, state, state_indices, output=None, wrong=""
):
    H, D = 12, 128
    B = len(mixed_qkv)
    q, k, v = mixed_qkv.view(B, 1, 3, H, D).unbind(2)
    g = gate(raw_gate.view(B, 1, H, D), A_log, dt_bias, LB, wrong)
    active = state_indices >= 0
    rows = state_indices[active].long()
    beta = wide(raw_beta)[0].sigmoid()[:, None]
    o, s = kda(
        *(x[active] for x in (unit(q), unit(k), v, g, beta)), D**-0.5, state[rows]
    )  # fmt: skip
    out = torch.full_like(v, float("nan")) if wrong == "padding unwritten" else torch.zeros_like(v)
    out[active] = o.to(v.dtype)
    state[rows] = s.to(state.dtype)
    return out


# --- vLLM ------------------------------------------------------------------------------------
def chunk_kda_with_fused_gate(
    q, k, v, raw_g, raw_beta, A_log, g_bias, lower_bound=None, scale=None, initial_state=None,
    output_final_state=True, cu_seqlens=None, wrong="",
):  # fmt: skip
    assert q.shape[0] == 1
    g = gate(raw_g, A_log, g_bias, lower_bound, wrong)
    o, s = kda(
        unit(q), unit(k), v, g, wide(raw_beta)[0].sigmoid(), scale, initial_state, cu_seqlens
    )
    s = turned(s) if wrong == "state returned transposed" else s
    return o.to(v.dtype), s.contiguous()


def vllm_recurrent(
    q, k, v, raw_g, raw_beta, A_log, dt_bias, lower_bound=None, scale=None, initial_state=None,
    cu_seqlens=None, ssm_state_indices=None, use_qk_l2norm_in_kernel=True, wrong="",
):  # fmt: skip
    rows = ssm_state_indices.long()
    o, s = chunk_kda_with_fused_gate(
        q, k, v, raw_g, raw_beta, A_log, dt_bias, lower_bound, scale, initial_state[rows],
        cu_seqlens=cu_seqlens, wrong=wrong,
    )  # fmt: skip
    if wrong == "slots by sequence":
        rows = torch.arange(len(rows))
    initial_state[rows] = s.to(initial_state.dtype)
    return o, initial_state


# --- sglang ----------------------------------------------------------------------------------
def sglang_chunk_kda(
    q, k, v, g, beta, scale=None, initial_state=None, initial_state_indices=None,
    use_qk_l2norm_in_kernel=False, cu_seqlens=None, A_log=None, dt_bias=None, lower_bound=None,
    output_intermediate_states=False, beta_is_raw=False, wrong="", **kwargs,
):  # fmt: skip
    assert q.shape[0] == 1
    rows = initial_state_indices.long()
    g = g if A_log is None else gate(g, A_log, dt_bias, lower_bound, wrong)
    beta = wide(beta)[0].sigmoid() if beta_is_raw else beta
    if use_qk_l2norm_in_kernel:
        q, k = unit(q), unit(k)
    o, s = kda(q, k, v, g, beta, scale, initial_state[rows], cu_seqlens)
    if wrong == "not in place":
        initial_state = initial_state.clone()
    if wrong == "one slot too far":
        rows = rows + 1
    initial_state[rows] = s.to(initial_state.dtype)
    v.copy_(o)  # as there: the output takes the values' memory
    return (v, "h") if output_intermediate_states else v


def fused_sigmoid_gating_delta_rule_update(
    A_log, a, dt_bias, softplus_beta, softplus_threshold, q, k, v, b, initial_state_source,
    initial_state_indices, scale=None, use_qk_l2norm_in_kernel=False, cu_seqlens=None,
    is_kda=False, lower_bound=None, wrong="",
):  # fmt: skip
    assert is_kda
    assert (softplus_beta, softplus_threshold) == (1.0, 20.0)
    return sglang_chunk_kda(
        q, k, v.clone(), a, b, scale, initial_state_source, initial_state_indices,
        use_qk_l2norm_in_kernel, cu_seqlens, A_log, dt_bias, lower_bound, beta_is_raw=True,
        wrong=wrong,
    )  # fmt: skip


# --- cuDNN -----------------------------------------------------------------------------------
def kimi_delta_attention(
    q, k, v, g, beta, cu_seqlens, scale=None, initial_state=None, output_final_state=False,
    use_qk_l2norm_in_kernel=False, use_beta_sigmoid_in_kernel=False, safe_gate=False,
    gate_lower_bound=None, gate_domain="log", a_log=None, dt_bias=None, wrong="",
):  # fmt: skip
    assert q.dim() == 3
    assert cu_seqlens.dtype == torch.int32
    if safe_gate:
        g = gate(g, a_log, dt_bias, LB if gate_lower_bound is None else gate_lower_bound, wrong)
    else:
        assert a_log is None
        g = wide(g)[0].log() if gate_domain == "linear" else g
    beta = wide(beta)[0].sigmoid() if use_beta_sigmoid_in_kernel else beta
    if use_qk_l2norm_in_kernel:
        q, k = unit(q), unit(k)
    start = turned(initial_state) if wrong == "state read transposed" else initial_state
    o, s = kda(*(x[None] for x in (q, k, v, g, beta)), scale, start, cu_seqlens)
    dtype = s.dtype if initial_state is None else initial_state.dtype
    return o[0].to(v.dtype), s.to(dtype) if output_final_state else s.new_empty(0)


# --- attention-gym ---------------------------------------------------------------------------
def gym_chunk_kda(
    q, k, v, gate, beta, initial_state=None, *, cu_seqlens=None, scale=None,
    output_final_state=False, fastmath=True, autotune=True, impl="fused", kernel_options=None,
    wrong="",
):  # fmt: skip
    assert q.shape[2] == v.shape[2]
    assert cu_seqlens is None or cu_seqlens.dtype == torch.int32
    g = gate * math.log(2.0) if wrong == "base two" else gate
    start = turned(initial_state) if wrong == "state read transposed" else initial_state
    o, s = kda(q, k, v, g, beta, scale, start, cu_seqlens)
    return o.to(q.dtype), s if output_final_state else None


def gym_naive_recurrent_kda(
    q, k, v, g, beta, scale=None, initial_state=None, output_final_state=False, cu_seqlens=None,
    wrong="",
):  # fmt: skip
    g = g if wrong == "natural base" else g * math.log(2.0)
    o, s = kda(q, k, v, g, beta, scale, initial_state, cu_seqlens)
    return o.to(q.dtype), s if output_final_state else None


def gym_cumulative(
    q, k, v, cumulative_g, beta, scale=None, initial_state=None, output_final_state=False,
    chunk_size=64, wrong="",
):  # fmt: skip
    assert q.shape[1] % chunk_size == 0
    parts = cumulative_g.split(chunk_size, 1)
    g = torch.cat([torch.cat([x[:, :1], x.diff(dim=1)], 1) for x in parts], 1)
    return gym_naive_recurrent_kda(
        q, k, v, g, beta, scale, initial_state, output_final_state, wrong=wrong
    )


def gym_paged_chunk_kda(
    q, k, v, gate, beta, state_cache, state_indices, *, cu_seqlens=None, has_initial_state=None,
    autotune=True, kernel_options=None, replay_state=None, wrong="",
):  # fmt: skip
    assert (state_indices > 0).all()
    rows = state_indices.long()
    o, s = gym_chunk_kda(
        q, k, v, gate, beta, state_cache[rows], cu_seqlens=cu_seqlens, output_final_state=True,
        wrong=wrong,
    )  # fmt: skip
    state_cache[rows] = s.to(state_cache.dtype)
    if wrong == "null slot written":
        state_cache[0, 0] = 0
    return o


def recurrent_kda_decode(
    packed_qkv, raw_gate, raw_beta, A_log, dt_bias, state_cache, state_indices, *,
    has_initial_state=None, gate_transform="bounded", lower_bound=-5.0, scale=None, out=None,
    wrong="",
):  # fmt: skip
    B, H, V, K = len(packed_qkv), *state_cache.shape[1:]
    q, k, v = packed_qkv.split((H * K, H * K, H * V), 1)
    q, k, v = q.view(B, 1, H, K), k.view(B, 1, H, K), v.view(B, 1, H, V)
    bound = lower_bound if gate_transform == "bounded" else None
    g = gate(raw_gate[0][:, None], A_log, dt_bias, bound, wrong)
    beta = wide(raw_beta)[0].sigmoid()[0][:, None]
    active = state_indices > 0
    rows = state_indices[active].long()
    o, s = kda(*(x[active] for x in (unit(q), unit(k), v, g, beta)), scale, state_cache[rows])
    found = torch.ones_like(v) if wrong == "padding unwritten" else torch.zeros_like(v)
    found[active] = o.to(v.dtype)
    state_cache[rows] = s.to(state_cache.dtype)
    return found.transpose(0, 1)


# --- mlx-lm ----------------------------------------------------------------------------------
def gated_delta_update(
    q, k, v, a, b, A_log, dt_bias, state=None, mask=None, *, use_kernel=True, lower_bound=None,
    allow_neg_eigval=False, wrong="",
):  # fmt: skip
    assert A_log.shape == (v.shape[2], 1)
    g = gate(a, A_log, dt_bias, lower_bound, wrong)
    start = turned(state) if wrong == "state read transposed" else state
    o, s = kda(q, k, v, g, wide(b)[0].sigmoid(), 1.0, start)
    return o.to(q.dtype), s if state is None else s.to(state.dtype)


# --- tokamax ---------------------------------------------------------------------------------
def tokamax_kimi_delta_attention(
    query, key, value, gate, beta, *, a_log=None, delta_time_bias=None, scale=None,
    initial_state=None, output_final_state=False, use_qk_l2norm=False, use_gate_in_kernel=False,
    segment_ids=None, lower_bound=None, max_num_segments=None, implementation=None, wrong="",
):  # fmt: skip
    q, k, v, g, beta = (x.movedim(0, 2) for x in (query, key, value, gate, beta))
    if use_gate_in_kernel:
        g = globals()["gate"](g, a_log, delta_time_bias, lower_bound, wrong)
    if use_qk_l2norm:
        q, k = unit(q), unit(k)
    offsets = None
    if segment_ids is not None:
        counts = [int((segment_ids == n + 1).sum()) for n in range(max_num_segments)]
        offsets = torch.tensor([0, *counts]).cumsum(0)
    axis = 1 if offsets is None else 0
    start = None if initial_state is None else initial_state.squeeze(axis)
    start = start if wrong == "state read transposed" else turned(start)
    o, s = kda(q, k, v, g, beta, scale, start, offsets)
    dtype = s.dtype if initial_state is None else initial_state.dtype
    return o.movedim(2, 0).to(query.dtype), turned(s).unsqueeze(axis).to(dtype)


# --- transformers ----------------------------------------------------------------------------
def chunk_kimi_delta_attention(
    query, key, value, g, beta, chunk_size=64, initial_state=None, output_final_state=False,
    use_qk_l2norm_in_kernel=False, wrong="", **kwargs,
):  # fmt: skip
    assert query.shape[2] == value.shape[2]
    scale = 1.0 if wrong == "scale missing" else None
    return chunk_kda(
        query, key, value, g, beta, scale, initial_state, output_final_state,
        use_qk_l2norm_in_kernel,
    )  # fmt: skip


# --- tt-metal --------------------------------------------------------------------------------
def kda_recurrent_reference(q, k, v, g, beta, state=None, wrong=""):
    if wrong == "norm missing":
        o, s = kda(q, k, v, g, beta, None, turned(state))
    else:
        o, s = kda(unit(q), unit(k), v, g, beta, None, turned(state))
    return o.to(v.dtype), turned(s).contiguous()


# --- k3check's own and the article's -----------------------------------------------------------
def own(
    q, k, v, gate, beta, A_log=None, dt_bias=None, lower_bound=-5.0, scale=None,
    initial_state=None, cu_seqlens=None, wrong="",
):  # fmt: skip
    g = globals()["gate"](gate, A_log, dt_bias, lower_bound, wrong)
    start = turned(initial_state)
    o, s = kda(unit(q), unit(k), v, g, wide(beta)[0].sigmoid(), scale, start, cu_seqlens)
    dtype = s.dtype if initial_state is None else initial_state.dtype
    return o.to(v.dtype), turned(s).to(dtype).contiguous()


def own_activated(
    q, k, v, gate, beta, *, activated, scale=None, initial_state=None, cu_seqlens=None, wrong=""
):
    assert activated
    g = gate * math.log(2.0) if wrong == "base two" else gate
    o, s = kda(q, k, v, g, beta, scale, turned(initial_state), cu_seqlens)
    dtype = s.dtype if initial_state is None else initial_state.dtype
    return o.to(v.dtype), turned(s).to(dtype).contiguous()


def kda_step(S_prev, k, v, alpha, beta, wrong=""):
    S, k, v, alpha, beta = wide(S_prev, k, v, alpha, beta)
    S = S if wrong == "no decay" else S * alpha[:, None]
    return (S + torch.outer(k, beta * (v - S.T @ k))).to(S_prev.dtype)


def kda_decode(
    x_q, x_k, x_v, w_q_t, w_k_t, w_v_t, conv_state, g, beta, A_log, dt_bias, state,
    lower_bound=None,
):  # fmt: skip
    raise AssertionError("never called")


def fused_kda_decode(
    x, weight, conv_state, raw_gate, raw_beta, A_log, dt_bias, state_indices, state, output_gate,
    norm_weight, lower_bound=-5.0, norm_eps=1e-5,
):  # fmt: skip
    raise AssertionError("never called")
