"""Sites: named intermediate values of a reference, and what may look at them or change them.

A reference hands every named value through :func:`at`. Without a probe that is one look at a
variable, and the value comes back as it is.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

Value = TypeVar("Value", torch.Tensor, float)


@dataclass(frozen=True)
class Site:
    """A named value as it was seen.

    Attributes:
        axes: the name of every dimension; a token loop's value has no token axis.
        shape: the sizes of these.
        looped: the reference passes here once a token.
    """

    name: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    looped: bool = False

    @property
    def sizes(self) -> dict[str, int]:
        """Axis name -> size."""
        return dict(zip(self.axes, self.shape, strict=True))


@dataclass(frozen=True)
class Visit:
    """A value on its way through a site.

    Attributes:
        site: the site as it is here.
        value: the value itself.
        start: the token that the token axis begins with; in a token loop, the token.
    """

    site: Site
    value: torch.Tensor
    start: int


class Probe(Protocol):
    """What looks at sites.

    Attributes:
        names: the sites that it looks at; None for all.
    """

    names: frozenset[str] | None

    def visit(self, seen: Visit) -> torch.Tensor:
        """The value that the reference goes on with."""
        ...

    def note(self, facts: dict[str, Any]) -> None:
        """Facts about the call that no value shows (see :func:`note`)."""
        ...


@dataclass(frozen=True)
class _Watch:
    """The probes that look on, and the sites that any of them looks at (None for all)."""

    probes: tuple[Probe, ...]
    names: frozenset[str] | None


_WATCH: ContextVar[_Watch | None] = ContextVar("watch", default=None)


@cache
def _names(axes: str) -> tuple[str, ...]:
    return tuple(axes.split())


def at(name: str, value: Value, axes: str = "", *, start: int = 0, looped: bool = False) -> Value:
    """Pass a value through a site.

    Args:
        name: the site's, unique in the operator.
        value: a tensor, or one number.
        axes: the tensor's dimensions by name, with blanks between.
        start: the token that its token axis begins with; in a token loop, the token itself.
        looped: the value is one token's of a loop over tokens.
    """
    watch = _WATCH.get()
    if watch is None or (watch.names is not None and name not in watch.names):
        return value
    number = isinstance(value, float)
    x = torch.tensor(value, dtype=torch.float64) if isinstance(value, float) else value
    for probe in watch.probes:
        if probe.names is not None and name not in probe.names:
            continue
        site = Site(name, _names(axes), tuple(x.shape), looped)
        x = probe.visit(Visit(site, x, start))
    return cast("Value", float(x) if number else x)


def watched() -> bool:
    """Whether a probe is there, so that an evaluation may be another one than usual."""
    return _WATCH.get() is not None


def note(**facts: Any) -> None:
    """Tell the probes what no value shows: ``packed``, ``ends``, ``sequence``, ``tokens`` ...

    Args:
        facts: by name; ``ends`` are the borders of packed sequences on the token axis,
            ``tokens`` the length of the present sequence and ``sequence`` its number.
    """
    watch = _WATCH.get()
    for probe in watch.probes if watch is not None else ():
        probe.note(facts)


@contextmanager
def probed(probe: Probe) -> Iterator[None]:
    """Evaluate with one more probe."""
    before = _WATCH.get()
    probes = (*(before.probes if before is not None else ()), probe)
    named = [p.names for p in probes if p.names is not None]
    names = frozenset().union(*named) if len(named) == len(probes) else None
    token = _WATCH.set(_Watch(probes, names))
    try:
        yield
    finally:
        _WATCH.reset(token)


class Recorder:
    """A probe that only remembers the sites that it met, in their largest sizes, and the facts.

    What was so once counts as so (packed sequences).
    """

    names: frozenset[str] | None = None

    def __init__(self) -> None:
        self.visits = 0
        self.sites: dict[str, Site] = {}
        self.facts: dict[str, Any] = {}

    def visit(self, seen: Visit) -> torch.Tensor:
        """Remember the site."""
        self.visits += 1
        known = self.sites.setdefault(seen.site.name, seen.site)
        if known.shape != seen.site.shape and len(known.shape) == len(seen.site.shape):
            sizes = tuple(max(pair) for pair in zip(known.shape, seen.site.shape, strict=True))
            self.sites[known.name] = replace(known, shape=sizes)
        return seen.value

    def note(self, facts: dict[str, Any]) -> None:
        """Remember the facts."""
        flags = {name: True for name, value in facts.items() if value is True}
        kept = {name for name, value in self.facts.items() if value is True}
        self.facts |= {n: v for n, v in facts.items() if n not in kept} | flags
