"""Mistakes that any operator can make with what it returns: order, shift, sign, missing parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from k3check.nouns.fault import Fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from k3check.nouns.tensors import Tensors

#: dimension of tokens and heads in an output [B, T, H, *]
TOKEN, HEAD = 1, 2


def _on(name: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., Tensors]:
    def transform(outputs: Tensors, _inputs: Tensors) -> Tensors:
        return {**outputs, name: change(outputs[name])} if name in outputs else outputs

    return transform


def _shifted(x: torch.Tensor, by: int) -> torch.Tensor:
    """Tokens moved by one place, zero where nothing moves in."""
    moved = torch.zeros_like(x)
    if by > 0:
        moved[:, by:] = x[:, :-by]
    else:
        moved[:, :by] = x[:, -by:]
    return moved


def _without(x: torch.Tensor, dim: int, last: int) -> torch.Tensor:
    """The last entries along a dimension zeroed."""
    kept = x.clone()
    kept.narrow(dim, max(0, x.shape[dim] - last), min(last, x.shape[dim])).zero_()
    return kept


def output_faults(sequences: tuple[str, ...], states: tuple[str, ...]) -> tuple[Fault, ...]:
    """Transformations of outputs shaped [B, T, H, D] and of states shaped [N, H, K, V]."""
    rows: list[Fault] = []
    for name in sequences:
        values = {"tensor": name}
        rows += [
            Fault(code, slug, transform=_on(name, change), values=values)
            for code, slug, change in (
                ("K3O-060", "output.heads-reversed", lambda x: x.flip(HEAD)),
                ("K3O-061", "output.heads-rolled", lambda x: x.roll(1, HEAD)),
                ("K3O-062", "output.first-head-everywhere",
                 lambda x: x[:, :, :1].expand_as(x)),
                ("K3O-063", "output.one-token-late", lambda x: _shifted(x, 1)),
                ("K3O-064", "output.one-token-early", lambda x: _shifted(x, -1)),
                ("K3O-065", "output.negated", lambda x: -x),
                ("K3O-066", "output.channels-reversed", lambda x: x.flip(-1)),
                ("K3O-067", "output.last-token-missing", lambda x: _without(x, TOKEN, 1)),
                ("K3O-068", "output.last-channel-missing", lambda x: _without(x, -1, 1)),
                ("K3O-069", "output.tail-missing", lambda x: _without(x, TOKEN, 8)),
                ("K3O-070", "output.channel-halves-swapped",
                 lambda x: x.roll(x.shape[-1] // 2, -1)),
                ("K3O-071", "output.last-head-missing", lambda x: _without(x, HEAD, 1)),
            )
        ]  # fmt: skip
    for name in states:
        values = {"tensor": name}
        rows += [
            Fault(code, slug, transform=_on(name, change), values=values)
            for code, slug, change in (
                ("K3O-075", "state.heads-reversed", lambda x: x.flip(1)),
                ("K3O-076", "state.negated", lambda x: -x),
                ("K3O-077", "state.keys-reversed", lambda x: x.flip(-2)),
                ("K3O-078", "state.sequences-reversed", lambda x: x.flip(0)),
            )
        ]
    return tuple(rows)
