"""The numbers of tokens of a case, and the same case with others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from k3check.model import Text

if TYPE_CHECKING:
    from k3check.nouns.case import Case


def lengths_of(case: Case) -> tuple[int, ...]:
    """The numbers of tokens of a case's sequences; nothing where it has no tokens."""
    lengths = tuple(getattr(case.spec, "lengths", ()))
    tokens = getattr(case.spec, "tokens", None)
    return lengths or (() if tokens is None else (tokens,))


def of_lengths(case: Case, lengths: tuple[int, ...]) -> Case:
    """The case with other numbers of tokens, one for each sequence."""
    packed = bool(getattr(case.spec, "lengths", ()))
    changed = {"lengths": lengths} if packed else {"tokens": lengths[0]}
    return replace(case, spec=replace(case.spec, **changed))


def in_multiples(case: Case, interface: Any) -> Case | str:
    """The case with lengths that an interface takes, which its title then says.

    Where it is there for a single token, it is no case with more of them: that one is left out.
    """
    m = getattr(interface, "multiple_of", 1)
    found = lengths_of(case)
    if all(n % m == 0 for n in found):
        return case
    if found == (1,):
        return Text("this case is about a single token, and only multiples of {m} are taken", m=m)
    longer = of_lengths(case, tuple(-(-n // m) * m for n in found))
    return replace(longer, why=Text("in multiples of {m}: {title}", m=m, title=case.why))


def fits(case: Case, multiple: int) -> bool:
    """Whether every sequence of a case has a multiple of some number of tokens."""
    return all(n % multiple == 0 for n in lengths_of(case))
