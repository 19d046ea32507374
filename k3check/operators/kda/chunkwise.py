"""KDA chunk by chunk: the second independent form, and the place of the chunkwise mistakes.

Within a chunk of C tokens with start state S and inclusive cumulative log decay G::

    A_ij = sum_c k_i k_j exp(G_i - G_j)   (j < i)      P_ij = sum_c q_i k_j exp(G_i - G_j)  (j <= i)
    (I + Diag(beta) A) U = Diag(beta) (V - (K exp(G)) S)
    O  = (Q exp(G)) S + P U
    S' = Diag(exp(G_C)) S + (K exp(G_C - G))^T U

Every exponent is <= 0: differences are masked before exp, so nothing overflows for any gate.
Source of the algebra: Kimi Linear report, arXiv 2510.26692, section 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from k3check.mutate.site import at

if TYPE_CHECKING:
    from k3check.nouns.recipe import Arithmetic
    from k3check.operators.kda.semantics import KdaSemantics
    from k3check.operators.kda.sequence import Sequence


BY_KEY, BY_VALUE = "batch head token key", "batch head token value"
STATE = "batch head key value"


def run_chunks(
    semantics: KdaSemantics, part: Sequence, arithmetic: Arithmetic
) -> tuple[torch.Tensor, torch.Tensor]:
    """The chunkwise form of :func:`k3check.operators.kda.reference.run_tokens`."""
    C, T = semantics.chunk, part.q.shape[2]
    state = stale = part.state
    outputs = []
    for start in range(0, T, C):
        rows = slice(start, min(start + C, T))
        block = tuple(x[:, :, rows] for x in (part.q, part.k, part.v, part.g, part.beta))
        entering = state
        if start and semantics.handed_state == "reset":
            entering = torch.zeros_like(state)
        elif start and semantics.handed_state == "stale":
            entering = stale
        entering = at("state handed in", entering, STATE, start=start, looped=True)
        output, leaving = one_chunk(semantics, block, entering, arithmetic, start=start)
        leaving = at("state handed on", leaving, STATE, start=start, looped=True)
        outputs.append(output)
        stale, state = state, arithmetic.stored(leaving)
        if T - start < C:
            state = tail_state(semantics, state, entering, block[3], C)
    return torch.cat(outputs, dim=2), state


def one_chunk(
    semantics: KdaSemantics,
    block: tuple[torch.Tensor, ...],
    state: torch.Tensor,
    arithmetic: Arithmetic,
    *,
    start: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """One chunk: (output [B, HV, C, V], state after it [B, HV, K, V])."""
    q, k, v, g, beta = block
    low = arithmetic.operands
    G = at("cumulative decay", g.cumsum(dim=2), BY_KEY, start=start)
    if semantics.sum_rounding != "none":
        G = G.to(getattr(torch, semantics.sum_rounding)).to(g.dtype)
    decay = pair_decay(G) if semantics.pair_form == "difference" else factored_decay(G)
    decay = at("pair decay", decay, "batch head token source key", start=start)
    A = torch.einsum("bhik,bhjk,bhijk->bhij", k, k, decay)
    P = torch.einsum("bhik,bhjk,bhijk->bhij", q, k, decay)
    A = at("products of keys", A, "batch head token source", start=start)
    P = at("products of queries and keys", P, "batch head token source", start=start)
    if semantics.intra == "no_decay":
        P = (q @ k.transpose(-1, -2)).tril()
    elif semantics.intra == "strict":
        P = P.tril(-1)
    elif semantics.intra == "full":
        P = P + (q @ k.transpose(-1, -2)).triu(1)
    held = low(state)
    entry = at("decay since chunk start", G.exp(), BY_KEY, start=start)
    old = at("handed prediction", low(k * entry) @ held, BY_VALUE, start=start)
    target = at("system target", v - old, BY_VALUE, start=start)
    U = solve(semantics, A, beta, beta.unsqueeze(-1) * low(target), start)
    U = at("system solution", U, BY_VALUE, start=start)
    grown = at("carried decay", G.exp(), BY_KEY, start=start)
    if semantics.inter == "exclusive":
        grown = (G - g).exp()
    elif semantics.inter == "undecayed":
        grown = torch.ones_like(G)
    read = held.transpose(-1, -2) if semantics.handed_state == "transposed_read" else held
    carried = low(q * grown) @ (read if start else held)
    carried = at("carried part", carried, BY_VALUE, start=start)
    if semantics.inter == "dropped":
        carried = torch.zeros_like(carried)
    output = carried + at("local part", low(P) @ low(U), BY_VALUE, start=start)
    last = -2 if semantics.handed_state == "loses_last" and G.shape[2] > 1 else -1
    end = G[:, :, last, :]
    factor = (end.unsqueeze(2) - G).exp().clamp(max=1.0)
    factor = at("decay to chunk end", factor, BY_KEY, start=start)
    if semantics.handed_state == "loses_last":
        U = U.clone()
        U[:, :, -1] = 0
    kept = state if semantics.handed_state == "not_decayed" else state * end.exp().unsqueeze(-1)
    kept = at("handed state that is kept", kept, STATE, start=start, looped=True)
    written = low(k * factor).transpose(-1, -2) @ low(U)
    return output, kept + at(
        "state that the chunk writes", written, STATE, start=start, looped=True
    )


def pair_decay(G: torch.Tensor) -> torch.Tensor:
    """exp(G_i - G_j) for j <= i, else 0: [B, HV, C, K] -> [B, HV, C, C, K]."""
    C = G.shape[2]
    difference = G.unsqueeze(3) - G.unsqueeze(2)
    future = torch.ones(C, C, dtype=torch.bool, device=G.device).triu(1)
    return difference.masked_fill(future[..., None], -torch.inf).exp()


def factored_decay(G: torch.Tensor) -> torch.Tensor:
    """The same as exp(G_i) * exp(-G_j) in float32: the second factor overflows beyond 88.7."""
    narrow = G.float()
    pairs = narrow.exp().unsqueeze(3) * (-narrow).exp().unsqueeze(2)
    C = G.shape[2]
    allowed = torch.ones(C, C, dtype=pairs.dtype, device=G.device).tril()
    return (pairs * allowed[..., None]).to(G.dtype)


def half_doubling(L: torch.Tensor) -> torch.Tensor:
    """(I + L)^-1 as (I - L)(I + L^2)(I + L^4) ..., every product rounded to float16.

    Exact in exact arithmetic, since L is nilpotent; its intermediates are not bounded by the
    inverse's entries.
    """
    half = torch.float16
    eye = torch.eye(L.shape[-1], dtype=L.dtype, device=L.device)
    inverse, power, reach = (eye - L).to(half), L.to(half), 2
    while reach < L.shape[-1]:
        power = (power.to(L.dtype) @ power.to(L.dtype)).to(half)
        inverse = (inverse.to(L.dtype) @ (eye + power.to(L.dtype))).to(half)
        reach *= 2
    return inverse.to(L.dtype)


def solve(
    semantics: KdaSemantics,
    A: torch.Tensor,
    beta: torch.Tensor,
    right: torch.Tensor,
    start: int = 0,
) -> torch.Tensor:
    """U of (I + Diag(beta) strictLower(A)) U = right, or of a wrong system."""
    rows, columns = beta.unsqueeze(-1), beta.unsqueeze(-2)
    strict = A.tril(-1)
    L = strict * (columns if semantics.system == "beta_on_columns" else rows)
    if semantics.system == "no_beta":
        L = strict
    elif semantics.system == "with_diagonal":
        L = A.tril() * rows
    L = at("system matrix", L, "batch head token source", start=start)
    if semantics.system == "no_solve":
        return right - L @ right
    if semantics.system == "truncated":  # Neumann series cut after the seventh power
        term = total = right
        for _ in range(7):
            term = -(L @ term)
            total = total + term
        return total
    if semantics.inverse == "half_doubling":
        return half_doubling(L) @ right
    eye = torch.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    if semantics.system == "transposed":
        return torch.linalg.solve_triangular((eye + L).transpose(-1, -2), right, upper=True)
    return torch.linalg.solve_triangular(
        eye + L, right, upper=False, unitriangular=semantics.system != "with_diagonal"
    )


def tail_state(
    semantics: KdaSemantics,
    state: torch.Tensor,
    entering: torch.Tensor,
    g: torch.Tensor,
    chunk: int,
) -> torch.Tensor:
    """The state after a partial last chunk, if its rows are counted wrongly."""
    if semantics.tail == "dropped":
        return entering
    if semantics.tail == "padded_decay":  # padding rows decay like the last valid one
        return state * (g[:, :, -1] * (chunk - g.shape[2])).exp().unsqueeze(-1)
    return state
