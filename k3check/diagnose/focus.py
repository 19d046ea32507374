"""Looking at the first wrong place alone: a small record made of a failing one.

Up to its first wrong token a recurrence is right, so the state before that token is the
reference's, and one token tells what the whole case tells. That makes a search over thousands of
wrong operators a matter of seconds, and finds those that are wrong in a part only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from k3check.diagnose.record import Record
    from k3check.nouns.operator import Candidate
    from k3check.nouns.tensors import Tensors

#: In units of rounding, relative to the tensor's own size: what is wrong for certain.
WRONG = 8.0
#: One token may be rounded more coarsely than the whole.
SLACK = 2.0


@dataclass(frozen=True)
class Place:
    """The first wrong place of a record.

    Attributes:
        sequence: number of the packed sequence, or of the batch's entry.
        token: within its sequence.
        length: tokens of that sequence.
        heads: the heads that are wrong there.
        of: how many heads there are.
    """

    seen: Record
    sequence: int
    token: int
    length: int
    heads: tuple[int, ...]
    of: int


def wrong(seen: Record, name: str) -> torch.Tensor:
    """Which rows of an output are wrong: its shape without the last dimension, boolean."""
    x, r = seen.actual[name].double(), seen.reference[name].double()
    finite = torch.isfinite(r)
    bad = (torch.isfinite(x) != finite).any(-1)
    x, r = (torch.where(finite & torch.isfinite(y), y, 0) for y in (x, r))
    size = r.square().mean().sqrt().clamp(min=1e-300)
    gap = (x - r).square().mean(-1).sqrt()
    own = r.square().mean(-1).sqrt()
    return bad | (gap > WRONG * seen.unit[name] * torch.maximum(own, size))


def wrong_elements(seen: Record, name: str) -> torch.Tensor:
    """Which elements of an output are wrong by far more than rounding; its shape, boolean."""
    x, r = seen.actual[name].double(), seen.reference[name].double()
    finite = torch.isfinite(r)
    bad = torch.isfinite(x) != finite
    x, r = (torch.where(finite & torch.isfinite(y), y, 0) for y in (x, r))
    size = r.square().mean().sqrt().clamp(min=1e-300)
    return bad | ((x - r).abs() > 4 * WRONG * seen.unit[name] * torch.maximum(r.abs(), size))


def sequences(seen: Record, tokens: int) -> list[tuple[int, int, int]]:
    """(batch row, first token, end) of every sequence on the token axis."""
    lengths = seen.inputs.get("cu_seqlens")
    if lengths is None:
        rows = len(next(iter(seen.actual.values())))
        return [(row, 0, tokens) for row in range(rows)]
    ends = [int(end) for end in lengths]
    return [(0, a, b) for a, b in pairwise(ends)]


def first_wrong(candidate: Candidate, seen: Record) -> Place | None:
    """The earliest wrong token of a record of a recurrence; None where the output is right."""
    output = next((o for o in candidate.operator.outputs if o.axes[:2] == ("batch", "token")), None)
    if output is None or output.name not in seen.unit or "head" not in output.axes:
        return None
    bad = wrong(seen, output.name)  # [B, T, H]
    found: list[Place] = []
    for number, (row, begin, end) in enumerate(sequences(seen, bad.shape[1])):
        rows = bad[row, begin:end]
        if rows.any():
            token = int(rows.any(-1).nonzero()[0])
            heads = tuple(int(h) for h in rows[token].nonzero().flatten())
            found.append(Place(seen, number, token, end - begin, heads, rows.shape[-1]))
    return min(found, key=lambda place: (place.token, place.sequence), default=None)


def window(candidate: Candidate, place: Place, *, heads: bool = False) -> Record | None:
    """The record of a few tokens around a place; None where the operator has no such thing.

    What is compared is the wrong token, and those before it from the sequence's own start on.

    Args:
        candidate: what was called.
        place: where the first wrong token is.
        heads: compare its wrong heads alone.
    """
    operator, seen = candidate.operator, place.seen
    if operator.window is None:
        return None
    first = max(0, place.token - 1)
    last = min(place.length, place.token + 2)
    inputs = operator.window(
        candidate.semantics, candidate.interface, seen.inputs, place.sequence, first, last
    )
    if inputs is None:
        return None
    name = next(o.name for o in operator.outputs if o.axes[:2] == ("batch", "token"))
    row, begin, _ = sequences(seen, seen.actual[name].shape[1])[place.sequence]
    low = 0 if first == 0 else place.token
    chosen = list(place.heads) if heads else slice(None)

    def part(x: torch.Tensor, row: int, start: int) -> torch.Tensor:
        return x[row : row + 1, start : start + place.token + 1 - low][:, :, chosen]

    actual = part(seen.actual[name], row, begin + low)
    right = part(seen.reference[name], row, begin + low)
    size = seen.reference[name].double().square().mean().sqrt().item()
    own = right.double().square().mean().sqrt().item()
    unit = SLACK * seen.unit[name] * max(1.0, size / max(own, 1e-300))

    def shown(outputs: Tensors) -> Tensors:
        return {name: part(outputs[name], 0, low - first)}

    return replace(
        seen, inputs=inputs, actual={name: actual}, reference={name: right},
        unit={name: unit}, size=actual.numel(), sets={}, shown=shown,
    )  # fmt: skip
