"""Mutation operators in order, extent, source and accumulation."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import torch

from k3check.mutate.mutation import Change, Memory
from k3check.mutate.values import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from k3check.mutate.site import Site, Visit

Edge = Literal["zero", "itself", "wrapped"]
_EDGES: dict[Edge, str] = {
    "zero": "zero where there is none",
    "itself": "its own where there is none",
    "wrapped": "wrapping around at the end",
}
_NEIGHBOURS = {1: ("previous", "preceding"), -1: ("next", "following")}


def shifted(x: torch.Tensor, dim: int, by: int, edge: Edge) -> torch.Tensor:
    """Every place reads its neighbour ``by`` places before."""
    moved = x.roll(by, dim)
    if edge == "wrapped":
        return moved
    place = 0 if by > 0 else x.shape[dim] - 1
    inside = torch.arange(x.shape[dim]).view([-1 if d == dim else 1 for d in range(x.dim())])
    return torch.where(inside == place, torch.zeros_like(x) if edge == "zero" else x, moved)


def neighbour(axis: str, dim: int, by: int, edge: Edge, rank: int) -> Change:
    """The neighbour before or after on an axis."""
    slug, word = _NEIGHBOURS[by]

    def apply(seen: Visit, memory: Memory) -> torch.Tensor:
        ends = memory.facts.get("ends")
        if axis != "token" or ends is None or edge == "wrapped" or not memory.facts.get("whole"):
            return shifted(seen.value, dim, by, edge)
        sizes = [b - a for a, b in pairwise(ends)]
        parts = [shifted(x, dim, by, edge) if x.shape[dim] else x
                 for x in seen.value.split(sizes, dim)]  # fmt: skip
        return torch.cat(parts, dim)

    return Change(
        f"{slug}-{axis}" + ("" if edge == "zero" and axis == "token" else f"-{edge}"),
        apply,
        "{site} of the " + word + " " + axis + " is used (" + _EDGES[edge] + "); "
        "the reference uses the " + axis + "'s own",
        "Read {site} at the " + axis + " itself.",
        rank,
    )


def leaking(axis: str, dim: int, by: int, edge: Edge, rank: int) -> Change:
    """The neighbour across the borders of packed sequences too."""
    slug, word = _NEIGHBOURS[by]
    return plain(
        f"{slug}-{axis}-{edge}-across", rank, lambda x: shifted(x, dim, by, edge),
        "{site} of the " + word + " " + axis + " is used, across the borders of packed sequences "
        "(" + _EDGES[edge] + "); the reference uses the " + axis + "'s own",
        "Read {site} at the " + axis + " itself.",
    )  # fmt: skip


def previous_in_loop(edge: Edge) -> Change:
    """What the token before had, in a token loop."""

    def apply(seen: Visit, memory: Memory) -> torch.Tensor:
        if memory.last is not None and memory.last.shape == seen.value.shape:
            return memory.last
        return torch.zeros_like(seen.value) if edge == "zero" else seen.value

    return Change(
        "previous-token" + ("" if edge == "zero" else f"-{edge}"),
        apply,
        "{site} of the preceding token is used (" + _EDGES[edge] + "); "
        "the reference uses the token's own",
        "Read {site} at the token itself.",
        2 if edge == "itself" else 1,
    )


def of_axis(axis: str, dim: int, size: int) -> Iterator[Change]:
    """Everything that can go wrong along one axis of at least two places."""
    for change in _of_axis(axis, dim, size):
        near = axis != "token" or change.slug in _NEAR
        yield change if near else replace(change, local=False)


#: changes along the token axis that a few tokens show as all of them do
_NEAR = frozenset(
    f"{by}-token{edge}"
    for by in ("previous", "next")
    for edge in ("", "-itself", "-zero-across", "-itself-across")
)


def _of_axis(axis: str, dim: int, size: int) -> Iterator[Change]:
    if axis == "token":
        for by in (1, -1):
            yield neighbour(axis, dim, by, "zero", 1)
            yield neighbour(axis, dim, by, "itself", 2)
            yield neighbour(axis, dim, by, "wrapped", 2)
            yield leaking(axis, dim, by, "zero", 4)
            yield leaking(axis, dim, by, "itself", 4)
    elif axis != "batch":
        for by in (1, -1):
            yield neighbour(axis, dim, by, "wrapped", 2)
            yield neighbour(axis, dim, by, "zero", 3)
    yield plain(
        f"reversed-{axis}", 1, lambda x: x.flip(dim),
        "{site} is read in reverse over the " + axis + " axis",
        "Read the " + axis + " axis of {site} in its own order.",
    )  # fmt: skip
    yield plain(
        f"first-{axis}", 2, lambda x: x.narrow(dim, 0, 1).expand_as(x),
        "{site} of the first " + axis + " is used for all",
        "Index {site} by " + axis + ".",
    )  # fmt: skip
    yield plain(
        f"mean-{axis}", 2, lambda x: x.mean(dim, keepdim=True).expand_as(x),
        "the mean of {site} over the " + axis + " axis is used for all",
        "Use every " + axis + "'s own {site}.",
    )  # fmt: skip
    yield plain(
        f"last-{axis}-dropped", 2, lambda x: _without(x, dim, x.shape[dim] - 1),
        "{site} of the last " + axis + " is left out",
        "Let the loop over the " + axis + " axis of {site} run to its end.",
    )  # fmt: skip
    yield plain(
        f"first-{axis}-dropped", 3, lambda x: _without(x, dim, 0),
        "{site} of the first " + axis + " is left out",
        "Begin the loop over the " + axis + " axis of {site} at zero.",
    )  # fmt: skip
    if axis in ("token", "source", "expert"):
        yield plain(
            f"running-{axis}", 3, lambda x: x.cumsum(dim),
            "{site} is summed up along the " + axis + " axis",
            "Use every " + axis + "'s own {site}, not a running sum.",
        )  # fmt: skip
        yield plain(
            f"own-{axis}", 3,
            lambda x: torch.cat([x.narrow(dim, 0, 1), x.diff(dim=dim)], dim),
            "{site} of each " + axis + " alone is used; the reference has the running sum",
            "Sum {site} up along the " + axis + " axis.",
        )  # fmt: skip
    if size % 2 == 0 and size > 2 and axis not in ("batch", "token"):
        yield plain(
            f"halves-{axis}", 2, lambda x: x.roll(x.shape[dim] // 2, dim),
            "the two halves of {site} over the " + axis + " axis are swapped",
            "Read the " + axis + " axis of {site} in its own order.",
        )  # fmt: skip
        yield plain(
            f"interleaved-{axis}", 3,
            lambda x: torch.cat([x.index_select(dim, torch.arange(0, x.shape[dim], 2)),
                                 x.index_select(dim, torch.arange(1, x.shape[dim], 2))], dim),
            "the " + axis + " axis of {site} is read as interleaved pairs",
            "Read the " + axis + " axis of {site} in its own order.",
        )  # fmt: skip
        yield plain(
            f"halved-{axis}", 3,
            lambda x: _first_half(x, dim),
            "only the first half of the " + axis + " axis of {site} is used",
            "Let the loop over the " + axis + " axis of {site} run to its end.",
        )  # fmt: skip
        yield plain(
            f"pairs-{axis}", 3,
            lambda x: _pairs_swapped(x, dim),
            "neighbours on the " + axis + " axis of {site} are swapped in pairs",
            "Read the " + axis + " axis of {site} in its own order.",
        )  # fmt: skip


def _without(x: torch.Tensor, dim: int, place: int) -> torch.Tensor:
    kept = x.clone()
    kept.narrow(dim, place, 1).zero_()
    return kept


def _first_half(x: torch.Tensor, dim: int) -> torch.Tensor:
    kept = x.clone()
    half = x.shape[dim] // 2
    kept.narrow(dim, x.shape[dim] - half, half).zero_()
    return kept


def _pairs_swapped(x: torch.Tensor, dim: int) -> torch.Tensor:
    if x.shape[dim] % 2:
        return x
    pairs: torch.Tensor = x.unflatten(dim, (-1, 2))
    return pairs.flip(dim + 1).flatten(dim, dim + 1)


def swapped(site: Site) -> Iterator[Change]:
    """Two axes taken for each other: of one size, or read in the wrong order of memory."""
    for i, one in enumerate(site.axes):
        for j in range(i + 1, len(site.axes)):
            other = site.axes[j]
            if "batch" in (one, other) or min(site.shape[i], site.shape[j]) < 2:
                continue
            words = "the " + one + " and " + other + " axes of {site} are swapped"
            fix = "Transpose the " + one + " and " + other + " axes of {site} back."
            rank = 2 if {one, other} <= {"key", "value", "head", "token"} else 3

            def apply(seen: Visit, _memory: Memory, i: int = i, j: int = j) -> torch.Tensor:
                turned = seen.value.transpose(i, j)
                if turned.shape == seen.value.shape:
                    return turned
                return turned.reshape(seen.value.shape)

            local = "token" not in (one, other)
            yield Change(f"swapped-{one}-{other}", apply, words, fix, rank, local=local)


def triangles(site: Site) -> Iterator[Change]:
    """A square matrix of places: strict, with the diagonal, full, its other half."""
    if site.axes[-2:] not in (("token", "source"), ("query", "key")):
        return
    yield plain("strict", 2, lambda x: x.tril(-1), "the diagonal of {site} is left out",
                "Keep the diagonal of {site}.")  # fmt: skip
    yield plain("transposed-matrix", 3, lambda x: x.mT, "{site} is transposed",
                "Transpose {site} back.")  # fmt: skip
    yield plain("diagonal-only", 4, lambda x: x.tril().triu(),
                "only the diagonal of {site} is used", "Use the whole of {site}.")  # fmt: skip


def from_source(site: Site, other: Site) -> Iterator[Change]:
    """Another site's value taken instead, multiplied in, added or taken off."""

    def made(slug: str, how: str, words: str, fix: str, rank: int) -> Change:
        def apply(seen: Visit, memory: Memory) -> torch.Tensor:
            theirs = aligned(memory.sources[other.name], seen)
            if how == "instead":
                return theirs.expand_as(seen.value)
            if how == "times":
                return seen.value * theirs
            if how == "over":
                return seen.value / theirs
            return seen.value + theirs if how == "plus" else seen.value - theirs

        return Change(f"{slug}-{other.name.replace(' ', '-')}", apply, words, fix, rank, other.name)

    name = other.name
    same = set(site.axes) - {"token"} == set(other.axes) - {"token"}
    if same:
        yield made("is", "instead", f"{name} is used in place of {{site}}",
                   f"Use {{site}} there, not {name}.", 2)  # fmt: skip
        yield made("plus", "plus", f"{name} is added to {{site}}",
                   f"Use {{site}} without adding {name}.", 3)  # fmt: skip
    if other.looped or (len(other.axes) >= len(site.axes) and not same):
        return
    yield made("times", "times", f"{{site}} is multiplied by {name} once too often",
               f"Use {{site}} without multiplying it by {name}.", 2)  # fmt: skip
    if len(other.axes) < len(site.axes):
        yield made("over", "over", f"{name} is missing from {{site}} (or divided out)",
                   f"Multiply {{site}} by {name}.", 3)  # fmt: skip


def aligned(source: Visit, seen: Visit) -> torch.Tensor:
    """A source's value in the axes of another site, to broadcast."""
    x, axes = source.value, list(source.site.axes)
    if "token" in axes and "token" not in seen.site.axes and seen.site.looped:
        dim = axes.index("token")
        x = x.select(dim, seen.start - source.start)
        axes.pop(dim)
    wanted = [name for name in seen.site.axes if name in axes]
    if len(wanted) != len(axes):
        raise ValueError("the source has axes that are not there")
    x = x.permute([axes.index(name) for name in wanted])
    for dim, name in enumerate(seen.site.axes):
        if name not in axes:
            x = x.unsqueeze(dim)
    return x.to(seen.value.dtype)
