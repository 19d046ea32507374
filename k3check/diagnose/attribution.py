"""Where nothing explains a failure: what separates the wrong places from the right ones.

Looked at are the facts of the calls (packed, grouped, a state, ...), ranges of every axis, the
place of the first wrong token, and the values of the reference's discrete sites (codes). What is
said is so in every failing case, and no passing case nor right place has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.diagnose import scoped
from k3check.diagnose.focus import wrong_elements
from k3check.diagnose.prediction import predict
from k3check.model import PLACES, Confidence, Diagnosis
from k3check.mutate.scope import fact_scopes
from k3check.mutate.site import probed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    import torch

    from k3check.diagnose.focus import Place
    from k3check.diagnose.record import Record
    from k3check.mutate.site import Visit
    from k3check.nouns.operator import Candidate, Output

#: A site with more values than this is no code.
VALUES = 32
#: ... and of a code's places so many are wrong if the code is.
SHARE = 0.5
#: A fact of the call -> what is said of it.
FACTS = ("packed", "grouped", "state_given", "past_given", "renormalize")


def places(candidate: Candidate, records: Sequence[Record]) -> tuple[Diagnosis, ...]:
    """The strongest thing that separates wrong from right, as a lead; empty if nothing does.

    Args:
        candidate: what was called.
        records: with their facts.
    """
    for words in separating(candidate, records):
        return (Diagnosis(PLACES, Confidence.LOW, values={"where": f", {words}"}),)
    return ()


def separating(candidate: Candidate, records: Sequence[Record]) -> Iterator[str]:
    """What separates wrong from right, in words, the surest first."""
    failed = [seen for seen in records if seen.failed]
    passed = [seen for seen in records if not seen.failed]
    yield from codes(candidate, failed)
    for name in FACTS:
        bad = {bool(seen.facts.get(name)) for seen in failed}
        good = {bool(seen.facts.get(name)) for seen in passed}
        if len(bad) == len(good) == 1 and bad != good:
            yield from (scope.words for scope in fact_scopes({name: bad.pop()}))
    for scope in scoped.ranges(candidate, failed):
        yield scope.words
    first = scoped.places(candidate, failed)
    if len(first) > 1:
        yield from sorted_by_tokens(first)


def sorted_by_tokens(first: Sequence[Place]) -> Iterator[str]:
    """Scopes of tokens that have every first wrong token in them, if the tokens differ."""
    if len({place.token for place in first}) < 2:
        return
    for scope in sorted(scoped.by_token(first), key=lambda s: s.plain):
        if scope.tokens in ("chunk_first", "chunk_last", "partial_chunk"):
            yield scope.words


class _Values:
    """A probe that keeps every value of the sites that have an output's shape."""

    names: frozenset[str] | None = None

    def __init__(self, shape: torch.Size) -> None:
        self.shape = shape
        self.found: dict[str, torch.Tensor] = {}

    def visit(self, seen: Visit) -> torch.Tensor:
        """Keep the value."""
        if seen.value.shape == self.shape:
            self.found[seen.site.name] = seen.value
        return seen.value

    def note(self, facts: dict[str, Any]) -> None:
        """Facts are looked at elsewhere."""


def codes(candidate: Candidate, failed: Sequence[Record]) -> Iterator[str]:
    """Values of a discrete site at which nearly all is wrong, while nothing is at the others."""
    counted: dict[str, dict[float, list[int]]] = {}
    for seen in failed:
        for output in candidate.operator.outputs:
            if output.name not in seen.unit:
                continue
            probe = _Values(seen.reference[output.name].shape)
            with probed(probe):
                predict(candidate, [], seen.inputs)
            bad = differs(seen, output)
            for site, value in probe.found.items():
                known = value.unique().tolist()
                if len(known) > VALUES:
                    counted.pop(site, None)
                    continue
                for one in known:
                    here = value == one
                    total = counted.setdefault(site, {}).setdefault(one, [0, 0])
                    total[0] += int((bad & here).sum())
                    total[1] += int(here.sum())
    for site, by_value in counted.items():
        values = [one for one, (bad_, all_) in by_value.items() if bad_ > SHARE * all_]
        clean = [one for one, (bad_, _) in by_value.items() if bad_ == 0]
        if values and clean and len(values) + len(clean) == len(by_value):
            numbers = ", ".join(f"{value:g}" for value in sorted(values))
            yield f"only where {site} is {numbers}"
            return


def differs(seen: Record, output: Output) -> torch.Tensor:
    """Which elements are wrong: any difference where every element must agree."""
    if output.compare != "exact":
        return wrong_elements(seen, output.name)
    x, r = seen.actual[output.name].double(), seen.reference[output.name].double()
    return (x != r) & ~(x.isnan() & r.isnan())
