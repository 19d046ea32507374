"""A small, correct KDA to copy and change. Check it with

k3check ops --operator kda_chunk=examples/operators/my_kda.py:kda_chunk
"""

import torch
import torch.nn.functional as F


def kda_chunk(q, k, v, gate, beta, A_log=None, dt_bias=None, lower_bound=-5.0, scale=None,
              initial_state=None, cu_seqlens=None):  # fmt: skip
    """Kimi Delta Attention, chunk by chunk.

    q, k [B, T, H, K]; v [B, T, HV, V]; gate [B, T, HV, K] and beta [B, T, HV] as projected;
    A_log [HV]; dt_bias [HV, K]; lower_bound None for Kimi Linear's gate; initial_state
    [N, HV, K, V]; cu_seqlens [N + 1] for packed sequences (then B is 1).
    Returns (output [B, T, HV, V], final_state [N, HV, K, V]).
    """
    kept = torch.float32 if initial_state is None else initial_state.dtype
    out = torch.zeros_like(v)
    K, HV, V = k.shape[3], *v.shape[2:]
    scale = K**-0.5 if scale is None else scale

    # Before the recurrence: norms, the log decay, beta. All in float32, heads before tokens.
    q, k, v, gate, beta = (x.float().transpose(1, 2) for x in (q, k, v, gate, beta))
    q, k = (x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6) for x in (q, k))
    q, k = (x.repeat_interleave(HV // x.shape[1], dim=1) for x in (q * scale, k))
    gate = gate if dt_bias is None else gate + dt_bias.view(HV, 1, K)
    rate = 1.0 if A_log is None else A_log[:HV].exp().view(HV, 1, 1)
    g = -rate * F.softplus(gate) if lower_bound is None else lower_bound * (rate * gate).sigmoid()
    beta = beta.sigmoid().unsqueeze(-1)

    # Each sequence starts from a state of its own.
    packed = cu_seqlens is not None
    ends = cu_seqlens.tolist() if packed else [0, v.shape[2]]
    N = len(ends) - 1 if packed else len(v)
    start = v.new_zeros(N, HV, K, V) if initial_state is None else initial_state.float()
    states = []
    for n in range(len(ends) - 1):
        S = start[n : n + 1] if packed else start
        for t in range(ends[n], ends[n + 1], 64):
            part = slice(t, min(t + 64, ends[n + 1]))
            o, S = one_chunk(*(x[:, :, part] for x in (q, k, v, g, beta)), S)
            out[:, part] = o.transpose(1, 2).to(out.dtype)
        states.append(S)
    return out, torch.cat(states).to(kept)


def one_chunk(q, k, v, g, beta, S):
    """One chunk of every head: [B, HV, C, *] and the state [B, HV, K, V] before it."""
    G = g.cumsum(2)
    # Decay from token j to token i; never exp(G) / exp(G), which leaves float32's range.
    past = torch.ones(G.shape[2], G.shape[2], dtype=torch.bool, device=G.device).tril()
    between = (G.unsqueeze(3) - G.unsqueeze(2)).masked_fill(~past.unsqueeze(-1), -torch.inf).exp()
    kk = torch.einsum("bhik,bhjk,bhijk->bhij", k, k, between)
    qk = torch.einsum("bhik,bhjk,bhijk->bhij", q, k, between)
    # What each token writes depends on what the earlier ones wrote: a triangular system.
    system = (beta * kk).tril(-1) + torch.eye(G.shape[2], device=G.device)
    wanted = beta * (v - (k * G.exp()) @ S)
    news = torch.linalg.solve_triangular(system, wanted, upper=False, unitriangular=True)
    output = (q * G.exp()) @ S + qk @ news  # a token reads what it has just written
    last = G[:, :, -1:]
    return output, S * last.exp().mT + (k * (last - G).exp()).mT @ news
