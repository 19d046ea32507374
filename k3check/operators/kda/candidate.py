"""The built-in KDA: what is checked when the user brings no operator of their own.

Written for use, not for reference: float32 inside, fast enough for a hook, and with the article's
two switches really changing the computation. Shares no line with ``reference.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from k3check.released import LOWER_BOUND

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def kda_gate(
    gate: torch.Tensor,
    A_log: torch.Tensor | None = None,
    dt_bias: torch.Tensor | None = None,
    lower_bound: float | None = LOWER_BOUND,
    floor: float | None = None,
) -> torch.Tensor:
    """Log decay of the raw gate [..., HV, K].

    The lower-bound form, softplus without a bound, or the article's with a floor of alpha.
    """
    x = _wide(gate)
    if floor is not None:
        return (torch.sigmoid(x) * (1 - floor) + floor).log()
    if dt_bias is not None:
        x = x + dt_bias.to(x.dtype).view(x.shape[-2:])
    speed = 1.0 if A_log is None else A_log.to(x.dtype).view(-1)[: x.shape[-2]].exp().unsqueeze(-1)
    if lower_bound is not None:
        return lower_bound * torch.sigmoid(speed * x)
    # torch's own softplus takes x for it from 20 on: off by 2e-9, which float64 shows
    return -speed * (x.clamp(min=0) + (-x.abs()).exp().log1p())


def _wide(x: torch.Tensor) -> torch.Tensor:
    """float32, unless it is float64 already."""
    return x if x.dtype == torch.float64 else x.float()


def three_step(
    state: torch.Tensor, k: torch.Tensor, v: torch.Tensor, alpha: torch.Tensor, beta: torch.Tensor
) -> torch.Tensor:
    """Decay, rank-1 correction, write: O(K V) instead of the dense form's O(K^2 V).

    Args:
        state: [..., K, V].
        k, alpha: [..., K].
        v: [..., V].
        beta: [...].
    """
    state = state * alpha.unsqueeze(-1)
    # Products instead of einsum, whose set-up costs more than the work of one token.
    seen = (k.unsqueeze(-2) @ state).squeeze(-2)
    return state + (beta.unsqueeze(-1) * k).unsqueeze(-1) * (v - seen).unsqueeze(-2)


@dataclass(frozen=True)
class _Arguments:
    """What both built-ins take besides q, k, v, gate and beta."""

    A_log: torch.Tensor | None = None
    dt_bias: torch.Tensor | None = None
    lower_bound: float | None = LOWER_BOUND
    scale: float | None = None
    initial_state: torch.Tensor | None = None
    cu_seqlens: torch.Tensor | None = None
    activated: bool = False


def _front(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    gate: torch.Tensor,
    beta: torch.Tensor,
    given: _Arguments,
) -> tuple[torch.Tensor, ...]:
    """Everything before the recurrence, wide, with the head axis second."""
    q, k, v, gate, beta = (_wide(x) for x in (q, k, v, gate, beta))
    if not given.activated:
        q, k = (x * (x.pow(2).sum(-1, keepdim=True) + 1e-6).rsqrt() for x in (q, k))
        gate = kda_gate(gate, given.A_log, given.dt_bias, given.lower_bound)
        beta = beta.sigmoid()
    repeat = v.shape[2] // k.shape[2]
    q, k = (x.repeat_interleave(repeat, dim=2).transpose(1, 2) for x in (q, k))
    q = q * (k.shape[-1] ** -0.5 if given.scale is None else given.scale)
    return q, k, v.transpose(1, 2), gate.transpose(1, 2), beta.mT


def kda_recurrent(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    gate: torch.Tensor,
    beta: torch.Tensor,
    **given: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """KDA token by token.

    Args:
        q, k: [B, T, H, K], not yet normalised.
        v: [B, T, HV, V].
        gate: [B, T, HV, K], raw.
        beta: [B, T, HV], logits.
        given: ``A_log`` [HV]; ``dt_bias`` [HV, K]; ``lower_bound``, K3's -5 by default, None for
            Kimi Linear's softplus gate; ``scale``, default K^-1/2; ``initial_state``
            [N, HV, K, V]; ``cu_seqlens`` [N + 1] (then B is 1); ``activated``: gate is the log
            decay, beta a probability, q and k are normalised.

    Returns:
        (output [B, T, HV, V], final state [N, HV, K, V] in the initial state's dtype).
    """

    def tokens(parts: tuple[torch.Tensor, ...], state: torch.Tensor) -> tuple[torch.Tensor, ...]:
        q, k, v, g, beta = parts
        alpha = g.exp()
        out = torch.empty_like(v)
        for t in range(v.shape[2]):
            state = three_step(state, k[:, :, t], v[:, :, t], alpha[:, :, t], beta[:, :, t])
            out[:, :, t] = (q[:, :, t].unsqueeze(-2) @ state).squeeze(-2)
        return out, state

    arguments = _Arguments(**given)
    parts = _front(q, k, v, gate, beta, arguments)
    return _per_sequence(tokens, parts, v.dtype, arguments)


def kda_chunk(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    gate: torch.Tensor,
    beta: torch.Tensor,
    *,
    chunk_size: int = 64,
    use_ut_transform: bool = True,
    bind_dplr_to_k: bool = True,
    **given: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """KDA chunk by chunk; arguments and result as :func:`kda_recurrent`.

    Args:
        chunk_size: tokens per chunk.
        use_ut_transform: solve the chunk's unit-triangular system; False applies its rank-1
            corrections one after the other.
        bind_dplr_to_k: use the bound form, where both low-rank vectors are the key; False runs
            the general diagonal-plus-low-rank form with separate vectors.
        given: as for :func:`kda_recurrent`.
    """

    def chunks(parts: tuple[torch.Tensor, ...], state: torch.Tensor) -> tuple[torch.Tensor, ...]:
        out = []
        for block in zip(*(x.split(chunk_size, dim=2) for x in parts), strict=True):
            q, k, v, g, beta = block
            one = bound_chunk if bind_dplr_to_k else dplr_chunk
            o, state = one(q, k, v, g, beta, state, use_ut_transform)
            out.append(o)
        return torch.cat(out, dim=2), state

    arguments = _Arguments(**given)
    parts = _front(q, k, v, gate, beta, arguments)
    return _per_sequence(chunks, parts, v.dtype, arguments)


def bound_chunk(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    state: torch.Tensor,
    use_ut_transform: bool = True,
) -> tuple[torch.Tensor, torch.Tensor]:
    """One chunk of KDA with both low-rank vectors bound to the key: two intra-chunk matrices."""
    total = g.cumsum(2)
    kk, qk = _bound_pairs(q, k, total)
    kk = kk * beta.unsqueeze(-1)
    wanted = beta.unsqueeze(-1) * (v - (k * total.exp()) @ state)
    news = _corrections(kk.tril(-1), wanted, use_ut_transform)
    out = (q * total.exp()) @ state + qk @ news
    rest = (total[:, :, -1:] - total).exp()
    return out, state * total[:, :, -1].exp().unsqueeze(-1) + (k * rest).mT @ news


def dplr_chunk(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    state: torch.Tensor,
    use_ut_transform: bool = True,
) -> tuple[torch.Tensor, torch.Tensor]:
    """One chunk of S' = (Diag(alpha) + a b^T) S + c v^T with a, b, c as separate vectors.

    KDA is the special case a = -beta k, b = alpha k, c = beta k. Nothing of that is used here: four
    intra-chunk matrices (b with a, b with c, q with a, q with c), as in the general form.
    """
    a, b, c = -beta.unsqueeze(-1) * k, g.exp() * k, beta.unsqueeze(-1) * k
    total = g.cumsum(2)
    before = total - g
    early, late = _decays(before, total), _decays(total, total)
    ba = torch.einsum("bhijc,bhic,bhjc->bhij", early, b, a).tril(-1)
    bc = torch.einsum("bhijc,bhic,bhjc->bhij", early, b, c).tril(-1)
    qa = torch.einsum("bhijc,bhic,bhjc->bhij", late, q, a)
    qc = torch.einsum("bhijc,bhic,bhjc->bhij", late, q, c)
    known = (b * before.exp()) @ state + bc @ v
    seen = _corrections(-ba, known, use_ut_transform)
    out = (q * total.exp()) @ state + qa @ seen + qc @ v
    rest = (total[:, :, -1:] - total).exp()
    state = state * total[:, :, -1].exp().unsqueeze(-1)
    return out, state + (a * rest).mT @ seen + (c * rest).mT @ v


def _bound_pairs(
    q: torch.Tensor, k: torch.Tensor, total: torch.Tensor, block: int = 16
) -> tuple[torch.Tensor, torch.Tensor]:
    """sum_c k_i k_j and q_i k_j exp(total_i - total_j) for j <= i, as one pass: [..., C, C] each.

    That both share the key's side is what binding buys. Within a block each pair has a decay of its
    own; a block against all earlier tokens is one product, its decays cut where the block begins.
    """
    B, H, C, _ = k.shape
    pairs = k.new_zeros(B, H, 2, C, C)
    for start in range(0, C, block):
        rows = slice(start, min(start + block, C))
        left, here = torch.stack([k[:, :, rows], q[:, :, rows]], dim=2), total[:, :, rows]
        near = (_decays(here, here) * k[:, :, None, rows]) @ left.permute(0, 1, 3, 4, 2)
        pairs[:, :, :, rows, rows] = near.permute(0, 1, 4, 2, 3)
        if start:
            border = total[:, :, start - 1 : start]
            since = left * (here - border).exp().unsqueeze(2)
            until = k[:, :, :start] * (border - total[:, :, :start]).exp()
            pairs[:, :, :, rows, :start] = since @ until.mT.unsqueeze(2)
    return pairs[:, :, 0], pairs[:, :, 1]


def _decays(rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
    """exp(rows_i - columns_j), zero above the diagonal: [..., C, K] twice -> [..., C, C, K]."""
    C = rows.shape[2]
    allowed = torch.ones(C, C, dtype=torch.bool, device=rows.device).tril()
    difference = rows.unsqueeze(3) - columns.unsqueeze(2)
    # Above the diagonal the exponent is positive: cut it before exp, not after.
    return difference.clamp(max=0.0).exp() * allowed.unsqueeze(-1)


def _corrections(strict: torch.Tensor, right: torch.Tensor, together: bool) -> torch.Tensor:
    """x of (I + strict) x = right: as one triangular system, or row after row."""
    if together:
        eye = torch.eye(strict.shape[-1], dtype=strict.dtype, device=strict.device)
        return torch.linalg.solve_triangular(eye + strict, right, upper=False, unitriangular=True)
    rows = right.clone()
    for i in range(1, rows.shape[-2]):
        rows[..., i, :] -= (strict[..., i, None, :i] @ rows[..., :i, :]).squeeze(-2)
    return rows


def _per_sequence(
    run: Callable[[tuple[torch.Tensor, ...], torch.Tensor], tuple[torch.Tensor, ...]],
    parts: tuple[torch.Tensor, ...],
    out_dtype: torch.dtype,
    given: _Arguments,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Run every packed sequence from its own state and put the outputs together again."""
    k, v = parts[1], parts[2]
    initial_state, cu_seqlens = given.initial_state, given.cu_seqlens
    ends = [0, v.shape[2]] if cu_seqlens is None else cu_seqlens.tolist()
    count = v.shape[0] if cu_seqlens is None else len(ends) - 1
    shape = (count, v.shape[1], k.shape[3], v.shape[3])
    start = v.new_zeros(shape) if initial_state is None else initial_state.to(v.dtype)
    out, states = torch.zeros_like(v), []
    for n in range(len(ends) - 1):
        rows = slice(ends[n], ends[n + 1])
        state = start if cu_seqlens is None else start[n : n + 1]
        if ends[n + 1] > ends[n]:
            out[:, :, rows], state = run(tuple(x[:, :, rows] for x in parts), state)
        states.append(state)
    kept = torch.float32 if initial_state is None else initial_state.dtype
    if out_dtype == torch.float64:
        kept = torch.float64
    return out.transpose(1, 2).to(out_dtype), torch.cat(states).to(kept)


def builtin(name: str) -> Callable[[Mapping[str, Mapping[str, Any]]], Callable[..., Any]]:
    """The built-in of an operator, with the configuration's switches applied."""

    def make(settings: Mapping[str, Mapping[str, Any]]) -> Callable[..., Any]:
        if name == "kda_gate":
            return kda_gate
        if name != "kda_chunk":
            return kda_recurrent
        flash = settings.get("flashkda", {})
        return partial(
            kda_chunk,
            use_ut_transform=flash.get("use_ut_transform", True),
            bind_dplr_to_k=flash.get("bind_dplr_to_k", True),
        )

    return make
