"""Mistakes that hold in a part only: mutants that explain the wrong places, and their scopes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from k3check.diagnose.focus import first_wrong, window, wrong, wrong_elements
from k3check.mutate.scope import Scope, fact_scopes, of_tokens, range_scope, token_scopes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from k3check.diagnose.focus import Place
    from k3check.diagnose.record import Record
    from k3check.nouns.operator import Candidate

#: Failing records whose first wrong places are looked at.
LOOKED_AT = 2


def places(candidate: Candidate, records: Sequence[Record]) -> list[Place]:
    """The first wrong token of every failing record whose output is wrong."""
    found = (first_wrong(candidate, seen) for seen in records if seen.failed)
    return [place for place in found if place is not None]


def focused(candidate: Candidate, records: Sequence[Record]) -> list[Record]:
    """Failing records cut down to their wrong places: a window, or the wrong rows."""
    found: list[Record] = []
    for seen in records:
        if not seen.failed:
            continue
        place = first_wrong(candidate, seen)
        made = None if place is None else window(candidate, place, heads=True)
        made = made or rows(seen)
        if made is not None:
            found.append(made)
    return sorted(found, key=lambda r: r.size)[:LOOKED_AT]


def rows(seen: Record) -> Record | None:
    """A record of which the wrong elements alone are compared, or the wrong rows."""
    masks: dict[str, torch.Tensor] = {}
    for name in seen.unit:
        if seen.reference[name].dim() > 1:
            elements = wrong_elements(seen, name)
            masks[name] = elements if elements.any() else wrong(seen, name)
    masks = {name: mask for name, mask in masks.items() if mask.any()}
    if not masks:
        return None

    def shown(outputs: dict[str, Any]) -> dict[str, torch.Tensor]:
        return {name: outputs[name][mask] for name, mask in masks.items()}

    actual, right = shown(seen.actual), shown(seen.reference)
    unit = {}
    for name in masks:
        size = seen.reference[name].double().nan_to_num().square().mean().sqrt().item()
        own = right[name].double().nan_to_num().square().mean().sqrt().item()
        unit[name] = 2.0 * seen.unit[name] * max(1.0, size / max(own, 1e-300))
    return replace(seen, actual=actual, reference=right, unit=unit, shown=shown)


def scopes(candidate: Candidate, records: Sequence[Record]) -> Iterator[Scope]:
    """Scopes that the wrong places allow, the plainest first."""
    failed = [seen for seen in records if seen.failed]
    found: list[Scope] = []
    names = ("packed", "grouped", "state_given", "past_given", "renormalize")
    for name in names:
        values = {bool(seen.facts.get(name)) for seen in failed}
        every = {bool(seen.facts.get(name)) for seen in records}
        if len(values) == 1 and len(every) == 2:
            found += fact_scopes({name: values.pop()})
    first = places(candidate, failed)
    if first:
        found += by_token(first)
        if all(place.sequence > 0 for place in first if packed(place.seen)) and any(
            packed(place.seen) for place in first
        ):
            found += fact_scopes({"later_sequence": True})
    found += ranges(candidate, failed)
    found += only_outputs(records)
    yield from sorted(found, key=lambda scope: scope.plain)


def packed(seen: Record) -> bool:
    """Whether a record has packed sequences."""
    return seen.inputs.get("cu_seqlens") is not None


def by_token(first: Sequence[Place]) -> Iterator[Scope]:
    """Scopes of tokens that have every first wrong token in them."""
    token = torch.tensor([place.token for place in first])
    length = torch.tensor([place.length for place in first])
    for scope in token_scopes():
        if bool(scope.chosen(token, length).all()):
            yield scope
    n = int(token.min())
    if n > 0 and bool((token == n).all()):
        yield of_tokens("from", "only from token {n} on", 3, n)
        yield of_tokens("only", "only at token {n}", 4, n)


def ranges(candidate: Candidate, failed: Sequence[Record]) -> Iterator[Scope]:
    """Ranges of an axis beyond which nothing is wrong, the same in every failing record."""
    wrong_at: dict[str, set[tuple[int, int | None]]] = defaultdict(set)
    for seen in failed:
        for output in candidate.operator.outputs:
            if output.name not in seen.unit or seen.reference[output.name].dim() < 2:
                continue
            for axis, span in spans(seen, output.name, output.axes):
                wrong_at[axis].add(span)
    for axis, found in wrong_at.items():
        if axis == "batch":
            continue
        starts = {low for low, _ in found}
        if len(starts) != 1:
            continue
        low = starts.pop()
        ends = {high for _, high in found}
        if ends == {None} and low > 0:
            yield range_scope(axis, low, None)
        elif len(ends) == 1 and (high := ends.pop()) is not None:
            yield range_scope(axis, low, high)


def spans(
    seen: Record, name: str, axes: tuple[str, ...]
) -> Iterator[tuple[str, tuple[int, int | None]]]:
    """For every axis, from where to where an output is wrong; None for to its end."""
    bad = wrong_elements(seen, name)
    for dim, axis in enumerate(axes):
        if bad.shape[dim] < 2 or not bad.any():
            continue
        others = [d for d in range(bad.dim()) if d != dim]
        hit = bad.any(others[0]) if len(others) == 1 else bad.sum(others) > 0
        where = hit.nonzero().flatten()
        low, high = int(where[0]), int(where[-1]) + 1
        yield axis, (low, None if high == bad.shape[dim] else high)


def only_outputs(records: Sequence[Record]) -> Iterator[Scope]:
    """One output that is wrong while every other one is right in all records."""
    names = {name for seen in records for name in seen.unit}
    bad = {name for seen in records for name in seen.unit if bool(wrong(seen, name).any())}
    if len(names) > 1 and len(bad) == 1:
        (name,) = bad
        right = " and ".join(sorted(names - bad)).replace("_", " ")
        words = f"as the {name.replace('_', ' ')} shows (the {right} is right)"
        yield Scope(f"only-{name.replace('_', '-')}", words, 2, outputs=(name,))
