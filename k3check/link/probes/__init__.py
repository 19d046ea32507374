"""The probes: one file each, found here. Adding a probe is adding a file with a ``PROBE``."""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from k3check.link.request import LinkRequest
    from k3check.link.session import Session
    from k3check.model import Finding


@dataclass(frozen=True)
class Cost:
    """What a probe may cost: chargeable requests, and tokens of prompt and answer."""

    requests: int = 0
    tokens: int = 0


@dataclass(frozen=True)
class Probe:
    """One thing to check.

    Attributes:
        name: its argument on the command line; its finding is ``link/NAME``.
        title: what it checks, in a few words.
        order: when it runs.
        run: runs it.
        cost: what it may cost, by the request.
        needs: probes that must have worked before; any one of each tuple.
        wires: protocols whose profiles it is part of; empty for all.
        speaks: protocols that it can speak; empty for all. With another one it is skipped.
        default, quick: part of these profiles.
        sends: it talks to the endpoint.
        ends: a failure that lies before the answer's content ends everything that sends.
    """

    name: str
    title: str
    order: int
    run: Callable[[Session], Finding]
    cost: Callable[[LinkRequest], Cost] = lambda _: Cost()
    needs: tuple[str, ...] = ()
    wires: tuple[str, ...] = ()
    speaks: tuple[str, ...] = ()
    default: bool = False
    quick: bool = False
    sends: bool = True
    ends: bool = False

    def fits(self, protocol: str) -> bool:
        """Whether it can speak a request's protocol."""
        return not self.speaks or protocol in self.speaks


@cache
def probes() -> tuple[Probe, ...]:
    """All probes in the order in which they run."""
    found = [
        import_module(f"{__name__}.{module.name}").PROBE
        for module in pkgutil.iter_modules(__path__)
    ]
    return tuple(sorted(found, key=lambda probe: probe.order))


def names() -> tuple[str, ...]:
    """The names of all probes."""
    return tuple(probe.name for probe in probes())
