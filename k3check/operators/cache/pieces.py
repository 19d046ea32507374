"""How a piece of a snapshot can be wrong: what it would hold instead, at every prefix length."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from k3check.operators.cache.layers import CONV, KDA, MLA, REFERENCE, forward, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from k3check.operators.cache.layers import Kind, Layer

#: Chunk and block sizes at whose boundaries states are kept; larger than the prefixes is "missing".
BOUNDARIES = (16, 32, 64)
#: How far a piece may have run ahead: a few drafted tokens, or all that were computed later.
AHEAD = 8


@dataclass(frozen=True)
class Track:
    """The right piece at every position, 0 to the last token, and the outputs in front of it."""

    pieces: tuple[torch.Tensor, ...]
    before: torch.Tensor | None

    @classmethod
    def of(cls, layers: Sequence[Layer], index: int, tokens: int) -> Track:
        """By the reference, token by token; what stands in front is exact, too."""
        layer, front = layers[index], layers[:index]
        before = walk(front, [REFERENCE] * index, (0, tokens)).output if front else None
        piece, pieces = None, []
        for t in range(tokens):
            one = None if before is None else before[:, t : t + 1]
            _, piece = forward(layer, (t, t + 1), piece, one, REFERENCE)
            pieces.append(piece)
        first = pieces[0]
        nothing = first[:, :0] if layer.kind is MLA else torch.zeros_like(first)
        return cls((nothing, *pieces), before)


@dataclass(frozen=True)
class Wrong:
    """One way to be wrong.

    Attributes:
        slug: as in the texts: ``missing``, ``behind`` ...
        make: ``make(n) -> piece``, None where it does not exist.
        position: ``position(n)``, for a piece that is right at another number of tokens.
    """

    slug: str
    make: Callable[[int], torch.Tensor | None]
    position: Callable[[int], int] | None = None


def wrongs(kind: Kind, track: Track) -> Iterator[Wrong]:
    """Every known way of a kind's piece, the likeliest first."""
    right = track.pieces

    def way(slug: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Wrong:
        return Wrong(slug, lambda n: change(right[n]))

    yield way("missing", torch.zeros_like)
    if kind is MLA:
        yield Wrong("missing", lambda _n: right[0])
        yield from moved_rows(track)
    else:
        yield at_position(kind, track, "behind", lambda n: n - 1)
        for by in range(1, AHEAD + 1):
            yield at_position(kind, track, "ahead", partial(int.__add__, by))
    for chunk in BOUNDARIES:
        for before in (0, 1):  # the boundary at n itself counts, or only one before n
            yield at_position(kind, track, "boundary", partial(boundary, chunk, before))
    yield way("other-sequence", lambda piece: piece.roll(1, 0))
    if kind is KDA:
        if right[0].shape[-1] == right[0].shape[-2]:
            yield way("transposed", lambda piece: piece.mT)
        return
    yield way("transposed", lambda piece: piece.mT.reshape(piece.shape))
    if kind is CONV:
        for step in (-1, 1):
            yield way("shifted", partial(torch.roll, shifts=step, dims=-1))
            yield way("shifted", partial(moved_columns, step))
        yield way("reversed", lambda piece: piece.flip(-1))


def moved_rows(track: Track) -> Iterator[Wrong]:
    """A cache whose rows stand one too late or too early, or whose last row is missing."""
    right = track.pieces
    yield at_position(MLA, track, "behind", lambda n: n - 1)
    yield Wrong("behind", lambda n: F.pad(right[n][:, :-1], (0, 0, 1, 0)))
    yield Wrong("behind", lambda n: torch.cat([right[n][:, :1], right[n][:, :-1]], dim=1))
    yield Wrong("ahead", lambda n: F.pad(right[n][:, 1:], (0, 0, 0, 1)))
    yield Wrong("ahead", lambda n: torch.cat([right[n][:, 1:], right[n][:, -1:]], dim=1))
    yield Wrong("ahead", lambda n: right[n + 1][:, 1:] if n + 1 < len(right) else None)


def boundary(chunk: int, before: int, n: int) -> int:
    """The last boundary at n (``before`` 0) or before it (1)."""
    return (n - before) // chunk * chunk


def at_position(kind: Kind, track: Track, slug: str, position: Callable[[int], int]) -> Wrong:
    """A piece that is right at another position; a cache with no rows from there on."""

    def make(n: int) -> torch.Tensor | None:
        m = position(n)
        if not 0 <= m < len(track.pieces):
            return None
        piece = track.pieces[m]
        return F.pad(piece, (0, 0, 0, n - m)) if kind is MLA else piece

    return Wrong(slug, make, position)


def moved_columns(by: int, columns: torch.Tensor) -> torch.Tensor:
    """Columns one place later (1) or earlier (-1), with zeros where nothing comes from."""
    if by > 0:
        return F.pad(columns[..., :-1], (1, 0))
    return F.pad(columns[..., 1:], (0, 1))
