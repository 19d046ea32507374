"""The exact KDA as fast as the hardware does float64: many chunks at once, then a walk over states.

The algebra is the chunkwise one (``chunkwise.py``; Kimi Linear report, arXiv 2510.26692, section
3), with p_i the product of a chunk's decays up to token i. For all chunks at once::

    A_ij = sum_c k_i k_j p_i / p_j  (j < i)          P_ij = sum_c q_i k_j p_i / p_j  (j <= i)
    (I + Diag(beta) A) [W, X] = Diag(beta) [K p, V]

and then from chunk to chunk, with p the whole chunk's decay and E_j = k_j p / p_j::

    U = X - W S        S' = Diag(p) S + E^T U        O = (Q p) S + P U

Two ways to the pairs (i, j). Where float64 holds 1 / p_j, one product of (K p) with (K / p). Where
it does not (gates of any size, alpha = 0), a tree: a block's second half against its first, the
decays cut at the border between them. Every factor is then a product of alphas: nothing is divided,
and only underflow to the right value, zero, is possible.

Exact for the recurrence as it is (:func:`applies`); every mistake stays in the two plain forms,
against which the test suite holds this one.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise
from typing import TYPE_CHECKING

import torch

from k3check.operators.kda.semantics import KdaSemantics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

#: Tokens per chunk, a power of two.
CHUNK = 64

#: The smallest product of a chunk's decays with which a factor 1 / p stays far from both ends of
#: float64 (1e-308), whatever keys it multiplies.
_SMALLEST = 1e-240

#: Elements of one [chunks, HV, C, K] tensor that are worked on at once. On an accelerator enough to
#: fill it; on a CPU few enough for its caches.
_AT_ONCE = {"cpu": 1 << 17, "cuda": 1 << 24}

#: The semantics' choices that come before the recurrence: ``prepare`` has made them.
_FRONT = frozenset(
    [
        "gate",
        "lower_bound",
        "floor",
        "gate_sign",
        "rate",
        "rate_place",
        "bias",
        "decay_gain",
        "gate_over",
        "gate_token",
        "bottleneck",
        "beta",
        "beta_gain",
        "beta_token",
        "beta_head",
        "norm",
        "norm_eps",
        "eps_on",
        "scale",
        "value_token",
        "key_token",
        "group",
        "head_order",
        "active_heads",
        "chunk",
    ]
)
#: What ``evaluate`` does with the states.
_AROUND = {
    "initial_state": ("read", "ignored", "transposed", "first_sequence"),
    "final_state": ("last", "transposed", "initial"),
}


@dataclass(frozen=True)
class Tokens:
    """What the recurrence works on, of any stretch of tokens of one sequence.

    ``q, k, g`` are [HV, T, K] (q scaled), ``v`` is [HV, T, V], ``beta`` [HV, T]; float64.
    """

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    g: torch.Tensor
    beta: torch.Tensor


@dataclass(frozen=True)
class Run:
    """Neighbouring tokens of one sequence, from a chunk's start on."""

    sequence: int
    start: int
    end: int

    @property
    def chunks(self) -> int:
        """How many chunks the tokens fill, the last perhaps in part."""
        return -(-(self.end - self.start) // CHUNK)


def launches_cost(device: torch.device) -> bool:
    """Whether many small operations one after the other leave the device idle."""
    return device.type != "cpu"


def applies(semantics: KdaSemantics) -> bool:
    """Whether the recurrence itself is the released one, whatever comes before or after it."""
    plain = KdaSemantics()
    return all(
        getattr(semantics, field.name) in _AROUND[field.name]
        if field.name in _AROUND
        else getattr(semantics, field.name) == getattr(plain, field.name)
        for field in fields(KdaSemantics)
        if field.name not in _FRONT
    )


def run(
    lengths: Sequence[int],
    tokens: Callable[[int, int, int], Tokens],
    states: torch.Tensor,
    width: int | None = None,
) -> Iterator[tuple[Run, torch.Tensor]]:
    """The recurrence over sequences of any lengths.

    Args:
        lengths: tokens of each sequence.
        tokens: ``tokens(sequence, start, end)``; asked for each stretch once, in order.
        states: the state before each sequence's first token, [N, HV, K, V]; overwritten with the
            one after its last.
        width: chunks at once, if not as many as suit the device.

    Yields:
        Each stretch and its output [HV, T, V].
    """
    _, HV, K, V = states.shape
    at_once = _AT_ONCE.get(states.device.type, _AT_ONCE["cuda"])
    width = width or max(1, at_once // (HV * CHUNK * max(K, V)))
    for wave in waves(lengths, width):
        parts = [tokens(item.sequence, item.start, item.end) for item in wave]
        outputs = run_wave(wave, parts, states)
        first = 0
        for item in wave:
            held = outputs[first : first + item.chunks].transpose(0, 1)
            yield item, held.reshape(HV, -1, V)[:, : item.end - item.start]
            first += item.chunks


def waves(lengths: Iterable[int], width: int) -> Iterator[list[Run]]:
    """Stretches of sequences in order, as many at a time as fill ``width`` chunks."""
    wave: list[Run] = []
    room = width
    for sequence, length in enumerate(lengths):
        start = 0
        while start < length:
            end = min(length, start + room * CHUNK)
            wave.append(Run(sequence, start, end))
            room -= wave[-1].chunks
            start = end
            if room == 0:
                yield wave
                wave, room = [], width
    if wave:
        yield wave


def run_wave(wave: Sequence[Run], parts: Sequence[Tokens], states: torch.Tensor) -> torch.Tensor:
    """Outputs [chunks, HV, C, V] of stretches side by side; their states are carried on."""
    rows = {name: _in_chunks([getattr(part, name) for part in parts], wave) for name in "qkv"}
    alpha = _in_chunks([part.g for part in parts], wave, fill=0.0).exp_()
    beta = _in_chunks([part.beta.unsqueeze(-1) for part in parts], wave)
    q, k, v = rows["q"], rows["k"], rows["v"]
    grown = alpha.cumprod(dim=2)
    total = grown[:, :, -1].clone().unsqueeze(-1)
    if bool(((total >= _SMALLEST) & (total <= 1 / _SMALLEST)).all()):
        inner, outer, read, write, E = _by_division(q, k, grown)
        scaled = True
    else:
        inner, outer, read, write, E = _by_tree(q, k, alpha)
        scaled = False
    system = (inner * beta).tril_(-1)
    K = k.shape[-1]
    both = solve_unit_lower(system, torch.cat([write * beta, v * beta], dim=-1))
    W, X = both[..., :K], both[..., K:]
    before = _walk(wave, W, X, E.mT, total, states, scaled=scaled)
    U = torch.baddbmm(_flat(X), _flat(W), _flat(before), alpha=-1)
    output = torch.bmm(_flat(read), _flat(before))
    return output.baddbmm_(_flat(outer.tril_()), U).view(v.shape)


def _in_chunks(
    parts: Sequence[torch.Tensor], wave: Sequence[Run], fill: float = 0.0
) -> torch.Tensor:
    """[HV, T, D] of several stretches -> [chunks, HV, C, D], the last chunk of each filled up."""
    HV, _, D = parts[0].shape
    made = parts[0].new_empty(sum(item.chunks for item in wave), HV, CHUNK, D)
    first = 0
    for item, part in zip(wave, parts, strict=True):
        T = part.shape[1]
        own = made[first : first + item.chunks]
        whole = T // CHUNK
        own[:whole] = part[:, : whole * CHUNK].reshape(HV, whole, CHUNK, D).transpose(0, 1)
        if T % CHUNK:
            own[whole, :, : T % CHUNK] = part[:, whole * CHUNK :]
            own[whole, :, T % CHUNK :] = fill
        first += item.chunks
    return made


def _flat(x: torch.Tensor) -> torch.Tensor:
    """[chunks, HV, rows, columns] -> [chunks * HV, rows, columns]."""
    return x.flatten(0, 1)


def _by_division(q: torch.Tensor, k: torch.Tensor, grown: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The pairs where 1 / p is safe; E lacks its factor p, which the walk multiplies in."""
    shrunk = k / grown
    read, write = q * grown, k * grown
    columns = _flat(shrunk).mT
    inner = torch.bmm(_flat(write), columns).view(*k.shape[:3], CHUNK)
    outer = torch.bmm(_flat(read), columns).view(*k.shape[:3], CHUNK)
    return inner, outer, read, write, shrunk


def _by_tree(q: torch.Tensor, k: torch.Tensor, alpha: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The pairs for any decay from 0 on: blocks of 2, 4, 8 ... tokens, second half against first.

    ``ahead`` is the product of alphas from a block's start up to and with each token, ``behind``
    of those after it up to the block's end.
    """
    N, HV, C, K = k.shape
    inner = k.new_zeros(N * HV, C, C)
    outer = k.new_zeros(N * HV, C, C)
    outer.diagonal(dim1=1, dim2=2).copy_((_flat(q) * _flat(k)).sum(-1))
    ahead, behind = alpha.clone(), torch.ones_like(alpha)
    half = 1
    while half < C:
        shape = (N * HV, C // (2 * half), 2, half, K)
        q_, k_, ahead_, behind_ = (x.view(shape) for x in (q, k, ahead, behind))
        late = ahead_[:, :, 1]
        rows = torch.cat([k_[:, :, 1] * late, q_[:, :, 1] * late], dim=2)
        pairs = rows @ (k_[:, :, 0] * behind_[:, :, 0]).mT
        for target, found in ((inner, pairs[:, :, :half]), (outer, pairs[:, :, half:])):
            blocks = target.view(N * HV, C // (2 * half), 2, half, C // (2 * half), 2, half)
            blocks[:, :, 1, :, :, 0].diagonal(dim1=1, dim2=3).copy_(found.permute(0, 2, 3, 1))
        behind_[:, :, 0] *= ahead_[:, :, 1, -1:]
        ahead_[:, :, 1] *= ahead_[:, :, 0, -1:]
        half *= 2
    square = (N, HV, C, C)
    return inner.view(square), outer.view(square), q * ahead, k * ahead, k * behind


def solve_unit_lower(strict: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """x of (I + strict) x = right for strictly lower triangular ``strict``.

    A CPU substitutes. An accelerator has no fast batched substitution in float64: there the inverse
    grows from its diagonal blocks, [[a, 0], [b, c]]^-1 = [[a', 0], [-c' b a', c']], which
    substitutes blocks and is as stable.

    Args:
        strict: [..., C, C], zero on and above the diagonal.
        right: [..., C, D].
    """
    if not launches_cost(strict.device):
        eye = torch.eye(strict.shape[-1], dtype=strict.dtype)
        return torch.linalg.solve_triangular(eye + strict, right, upper=False, unitriangular=True)
    return (_flat(unit_lower_inverse(strict)) @ _flat(right)).view(right.shape)


def unit_lower_inverse(strict: torch.Tensor) -> torch.Tensor:
    """(I + strict)^-1 for strictly lower triangular ``strict`` [..., C, C], C a power of two."""
    C = strict.shape[-1]
    given = strict.reshape(-1, C, C)
    inverse = torch.zeros_like(given)
    inverse.diagonal(dim1=1, dim2=2).fill_(1.0)
    half = 1
    while half < C:
        count = C // (2 * half)
        shape = (-1, count, 2, half, count, 2, half)
        own, made = (
            x.view(shape).diagonal(dim1=1, dim2=4).permute(0, 5, 1, 2, 3, 4)
            for x in (given, inverse)
        )
        first, second = made[:, :, 0, :, 0], made[:, :, 1, :, 1]
        made[:, :, 1, :, 0] = -(second @ (own[:, :, 1, :, 0] @ first))
        half *= 2
    return inverse.view(strict.shape)


def _walk(
    wave: Sequence[Run],
    W: torch.Tensor,
    X: torch.Tensor,
    Et: torch.Tensor,
    total: torch.Tensor,
    states: torch.Tensor,
    *,
    scaled: bool,
) -> torch.Tensor:
    """The state before every chunk, [chunks, HV, K, V]; ``states`` are carried over the wave.

    On an accelerator every step's S' = M S + N is made ready for all chunks at once: one product a
    step is left, where waiting costs more than work.
    """
    at_once = launches_cost(W.device)
    if at_once:
        M, N = _transitions(W, X, Et, total, scaled=scaled)
    before = W.new_empty(*W.shape[:2], W.shape[-1], X.shape[-1])
    firsts = [0, *torch.tensor([item.chunks for item in wave]).cumsum(0).tolist()]
    order = sorted(range(len(wave)), key=lambda n: -wave[n].chunks)
    held = states[[wave[n].sequence for n in order]]
    for step in range(wave[order[0]].chunks):
        live = [n for n in order if wave[n].chunks > step]
        at: slice | list[int] = [firsts[n] + step for n in live]
        if len(live) == 1:
            at = slice(firsts[live[0]] + step, firsts[live[0]] + step + 1)
        now = held[: len(live)]
        before[at] = now
        if at_once:
            new = torch.baddbmm(_flat(N[at]), _flat(M[at]), _flat(now)).view(now.shape)
        else:
            more = Et[at] @ (X[at] - W[at] @ now)
            new = total[at] * (now + more) if scaled else total[at] * now + more
        held = new if len(live) == len(held) else torch.cat([new, held[len(live) :]])
    states[[wave[n].sequence for n in order]] = held
    return before


def _transitions(
    W: torch.Tensor, X: torch.Tensor, Et: torch.Tensor, total: torch.Tensor, *, scaled: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """M and N of S' = M S + N for every chunk."""
    M = -(_flat(Et) @ _flat(W)).view(*W.shape[:2], W.shape[-1], W.shape[-1])
    N = (_flat(Et) @ _flat(X)).view(*X.shape[:2], W.shape[-1], X.shape[-1])
    diagonal = M.diagonal(dim1=2, dim2=3)
    if scaled:
        diagonal += 1.0
        return M.mul_(total), N.mul_(total)
    diagonal += total.squeeze(-1)
    return M, N


def lengths_of(cu_seqlens: torch.Tensor | None, batch: int, tokens: int) -> list[int]:
    """Tokens of each sequence of a packed or a batched input."""
    if cu_seqlens is None:
        return [tokens] * batch
    return [end - start for start, end in pairwise(cu_seqlens.tolist())]
