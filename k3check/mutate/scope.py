"""Scopes: where a mutation holds, as a mask over the named axes of a value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.mutate.site import Site, Visit

#: where on the token axis, within its own sequence
Where = Literal[
    "from",
    "chunk_first",
    "chunk_last",
    "chunk_but_first",
    "partial_chunk",
    "whole_chunks",
    "first",
    "last",
    "but_first",
    "but_last",
    "only",
]


@dataclass(frozen=True)
class Scope:
    """Where a mutation holds; all that is given must be so.

    Attributes:
        slug: stable, empty for everywhere.
        words: what is said after the sentence, e.g. ``only when packed``.
        plain: how plain these words are; the lower, the sooner it is told.
        facts: facts about the call that must hold, e.g. ``{"packed": True}``.
        tokens: which tokens of a sequence.
        number: the chunk size or the token that ``tokens`` speaks of.
        axis: an axis of which only a range is meant ...
        low, high: ... from here, to before there (None for its end).
        outputs: the outputs that it shows in; all if empty.
    """

    slug: str = ""
    words: str = ""
    plain: int = 0
    facts: Mapping[str, Any] = field(default_factory=dict)
    tokens: Where | None = None
    number: int = 0
    axis: str | None = None
    low: int = 0
    high: int | None = None
    outputs: tuple[str, ...] = ()

    def fits(self, site: Site) -> bool:
        """Whether a value has the axes that are spoken of."""
        if self.tokens is not None and not (site.looped or "token" in site.axes):
            return False
        if self.axis == "token" and site.looped:
            return True
        return self.axis is None or site.sizes.get(self.axis, 0) > self.low

    def holds(self, facts: Mapping[str, Any]) -> bool:
        """Whether the facts of the call are those that are meant."""
        return all(facts.get(name, False) == wanted for name, wanted in self.facts.items())

    def mask(self, seen: Visit, facts: Mapping[str, Any]) -> torch.Tensor | bool:
        """True where the mutation holds; broadcasts against the value."""
        found: torch.Tensor | bool = True
        if self.tokens is not None:
            found = self._token_mask(seen, facts)
        if self.axis is not None:
            found = _and(found, self._range(seen))
        return found

    def _range(self, seen: Visit) -> torch.Tensor | bool:
        axis = str(self.axis)
        if axis == "token" and seen.site.looped:
            return self.low <= seen.start and (self.high is None or seen.start < self.high)
        start = seen.start if axis == "token" else 0
        place = torch.arange(seen.site.sizes[axis]) + start
        inside = place >= self.low
        if self.high is not None:
            inside &= place < self.high
        return along(inside, axis, seen.site.axes)

    def _token_mask(self, seen: Visit, facts: Mapping[str, Any]) -> torch.Tensor | bool:
        if seen.site.looped:
            place, length = torch.tensor([seen.start]), torch.tensor([int(facts["tokens"])])
            return bool(self.chosen(place, length)[0])
        size = seen.site.sizes["token"]
        place = torch.arange(size) + seen.start
        ends = facts.get("ends")
        if ends is not None and facts.get("whole", False):  # not yet split into sequences
            borders = torch.tensor(ends)
            which = torch.searchsorted(borders, place, right=True) - 1
            length = (borders[1:] - borders[:-1])[which]
            place = place - borders[which]
        else:
            length = torch.full_like(place, int(facts.get("tokens", size)))
        return along(self.chosen(place, length), "token", seen.site.axes)

    def chosen(self, place: torch.Tensor, length: torch.Tensor) -> torch.Tensor:
        """Which tokens are meant, of places within sequences of some lengths."""
        n = max(self.number, 1)
        whole = length // n * n
        return {
            "from": place >= self.number,
            "only": place == self.number,
            "chunk_first": place % n == 0,
            "chunk_last": place % n == n - 1,
            "chunk_but_first": place % n != 0,
            "partial_chunk": place >= whole,
            "whole_chunks": place < whole,
            "first": place == 0,
            "last": place == length - 1,
            "but_first": place > 0,
            "but_last": place < length - 1,
        }[self.tokens or "first"]


EVERYWHERE = Scope()
CHUNKS = (64, 16, 32, 128)


def along(x: torch.Tensor, axis: str, axes: tuple[str, ...]) -> torch.Tensor:
    """A vector along one of several axes, to broadcast."""
    return x.view([-1 if name == axis else 1 for name in axes])


def _and(one: torch.Tensor | bool, other: torch.Tensor | bool) -> torch.Tensor | bool:
    if isinstance(one, bool):
        return other if one else False
    if isinstance(other, bool):
        return one if other else False
    return one & other


def of_tokens(where: Where, words: str, plain: int, number: int = 0) -> Scope:
    """A scope of tokens."""
    slug = where.replace("_", "-") + (f"-{number}" if number else "")
    return Scope(slug, words.format(n=number), plain, tokens=where, number=number)


def token_scopes() -> list[Scope]:
    """Scopes that speak of a token's place in its sequence."""
    found = [
        of_tokens("first", "only at the first token", 3),
        of_tokens("last", "only at the last token", 3),
        of_tokens("but_first", "at every token but the first", 3),
        of_tokens("but_last", "at every token but the last", 3),
    ]
    for n in CHUNKS:
        found += [
            of_tokens("chunk_first", "only at the first token of each chunk of {n}", 4, n),
            of_tokens("chunk_last", "only at the last token of each chunk of {n}", 4, n),
            of_tokens("chunk_but_first", "at all tokens but the first of a chunk of {n}", 5, n),
            of_tokens("partial_chunk", "only in a partial last chunk of {n}", 4, n),
            of_tokens("whole_chunks", "only in whole chunks of {n}", 5, n),
        ]
    return found


def fact_scopes(facts: Mapping[str, bool]) -> list[Scope]:
    """One scope for each fact that is so in some calls and not in others.

    Args:
        facts: name of a fact -> the value under which the mutation holds.
    """
    said = {
        ("packed", True): ("packed", "only with packed sequences"),
        ("packed", False): ("not-packed", "only without packed sequences"),
        ("grouped", True): ("grouped", "only where several heads of v share a head of q"),
        ("grouped", False): ("not-grouped", "only where heads are not grouped"),
        ("state_given", True): ("with-state", "only with an initial state"),
        ("state_given", False): ("without-state", "only without an initial state"),
        ("past_given", True): ("with-past", "only with cached tokens"),
        ("past_given", False): ("without-past", "only without cached tokens"),
        ("later_sequence", True): ("later-sequences", "only in sequences after the first"),
        ("renormalize", True): ("renormalize", "only where weights are renormalised"),
        ("renormalize", False): ("not-renormalize", "only where weights are not renormalised"),
    }
    return [
        Scope(*said[name, value], plain=2, facts={name: value})
        for name, value in facts.items()
        if (name, value) in said
    ]


def range_scope(axis: str, low: int, high: int | None) -> Scope:
    """Indices from ``low`` to before ``high`` on an axis."""
    noun = {"token": "row"}.get(axis, axis).replace("_", " ")
    if high is None:
        return Scope(f"{axis}-from-{low}", f"only from {noun} {low} on", 3, axis=axis, low=low)
    if high == low + 1:
        words = f"only at {noun} {low}"
        return Scope(f"{axis}-{low}", words, 4, axis=axis, low=low, high=high)
    words = f"only at {noun} {low} to {high - 1}"
    return Scope(f"{axis}-{low}-{high - 1}", words, 5, axis=axis, low=low, high=high)
