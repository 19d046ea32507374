"""A mutation: a change of the value at a site, in a scope."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from k3check.mutate.scope import EVERYWHERE, Scope
from k3check.mutate.site import Visit, probed

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from k3check.mutate.site import Site


@dataclass(frozen=True)
class Change:
    """A mutation operator, ready for a site.

    Attributes:
        slug: stable.
        apply: ``apply(visit, memory) -> value``; the memory lasts as long as one evaluation.
        words: the sentence, with ``{site}``.
        fix: the imperative sentence, with ``{site}``.
        plain: how plain the words are; the lower, the sooner it is told.
        needs: another site whose value it uses.
        local: a few tokens show it as all of them do.
    """

    slug: str
    apply: Callable[[Visit, Memory], torch.Tensor]
    words: str
    fix: str
    plain: int = 0
    needs: str | None = None
    local: bool = True


@dataclass(frozen=True)
class Mutation:
    """A wrong operator: a change at a site in a scope."""

    site: Site
    change: Change
    scope: Scope = EVERYWHERE

    @property
    def slug(self) -> str:
        """``mutant.SITE.OPERATOR[.SCOPE]``."""
        name = f"mutant.{self.site.name.replace(' ', '-')}.{self.change.slug}"
        return f"{name}.{self.scope.slug}" if self.scope.slug else name

    @property
    def plain(self) -> tuple[int, int, int]:
        """What orders mutations by how plain their words are."""
        return (self.scope.plain, self.change.plain, len(self.site.name.split()))

    def during(self) -> AbstractContextManager[None]:
        """Evaluations in this context have the mutation in them."""
        return probed(Mutating(self))

    def said(self) -> dict[str, str]:
        """The words: ``mistake``, ``where``, ``repair`` and ``slug``."""
        return {
            "mistake": self.change.words.format(site=self.site.name),
            "where": f", {self.scope.words}" if self.scope.words else "",
            "repair": self.change.fix.format(site=self.site.name),
            "slug": self.slug,
        }


@dataclass
class Memory:
    """What a mutation remembers during one evaluation.

    Attributes:
        facts: what the reference told about the call.
        last: the value at the site one token before, in a token loop.
        sources: the latest visit of every other site that the mutation uses.
    """

    facts: dict[str, Any] = field(default_factory=dict)
    last: torch.Tensor | None = None
    sources: dict[str, Visit] = field(default_factory=dict)


class Mutating:
    """The probe that puts a mutation into an evaluation."""

    def __init__(self, mutation: Mutation) -> None:
        self.mutation = mutation
        needed = (mutation.site.name, mutation.change.needs)
        self.names: frozenset[str] | None = frozenset(name for name in needed if name)
        self.memory = Memory()

    def visit(self, seen: Visit) -> torch.Tensor:
        """The value, changed where the mutation holds."""
        mutation = self.mutation
        name = seen.site.name
        if name == mutation.change.needs:
            self.memory.sources[name] = seen
        if name != mutation.site.name:
            return seen.value
        if not mutation.scope.holds(self.memory.facts):
            return seen.value
        mask = mutation.scope.mask(seen, self.memory.facts)
        if mask is False:
            self.memory.last = seen.value
            return seen.value
        wrong = mutation.change.apply(seen, self.memory)
        self.memory.last = seen.value
        if isinstance(mask, bool):
            return wrong
        return torch.where(mask, wrong, seen.value)

    def note(self, facts: dict[str, Any]) -> None:
        """Remember the facts; a new sequence has no token before its first."""
        if "sequence" in facts:
            self.memory.last = None
        self.memory.facts |= facts
