"""Every mutation of the sites that an evaluation met, the plainest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.mutate import order, values
from k3check.mutate.mutation import Change, Mutation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from k3check.mutate.site import Recorder, Site


def changes(site: Site, seen: Recorder) -> Iterator[Change]:
    """The mutation operators that fit a site."""
    yield from values.ELEMENTWISE
    packed = bool(seen.facts.get("packed"))
    yield from values.constants(seen.facts.get("sizes", {}))
    yield from values.numbers(seen.facts.get("numbers", {}))
    if site.looped:
        yield order.previous_in_loop("zero")
        yield order.previous_in_loop("itself")
    for dim, (axis, size) in enumerate(zip(site.axes, site.shape, strict=True)):
        if size > 1:
            for change in order.of_axis(axis, dim, size):
                if packed or not change.slug.endswith("-across"):
                    yield change
            if axis not in ("batch", "token"):
                yield from values.along_axis(axis, dim)
    yield from order.swapped(site)
    yield from order.triangles(site)
    for other in seen.sites.values():
        if other.name == site.name:
            break  # what comes later is not there yet
        if other.axes and set(other.axes) - {"token"} <= set(site.axes) | {"token"}:
            yield from order.from_source(site, other)


def mutations(seen: Recorder, known: Sequence[str] = ()) -> list[Mutation]:
    """All mutations without a scope.

    Args:
        seen: the sites, with sizes large enough for their axes to count.
        known: sites that are left out.
    """
    found = [
        Mutation(site, change)
        for site in seen.sites.values()
        if site.name not in known
        for change in changes(site, seen)
    ]
    return sorted(found, key=lambda m: m.plain)
