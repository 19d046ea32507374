"""What providers are known to do, read from ``providers.toml``: data, and how it is compared.

A rule of a row says which words of an error mean what; a diagnosis's row asks for a meaning by its
slug. So a provider's vocabulary is one row of data, and leaving the row out leaves every rule of it
out: that is how the confidence of what remains is tested.
"""

from __future__ import annotations

import re
import tomllib
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from k3check.link.apis.errors import ErrorInfo

COMMON = "common"


class Refusal(Protocol):
    """What rules look at of an answer."""

    @property
    def status(self) -> int | None:
        """The status, None where there was none."""
        ...

    @property
    def error(self) -> ErrorInfo:
        """The error as the API's body has it."""
        ...

    @property
    def words(self) -> str:
        """All of the error's words in lower case."""
        ...


@dataclass(frozen=True)
class Rule:
    """Words of an error and what they mean; every condition that is given must hold.

    Attributes:
        means: a diagnosis's slug.
        type: the error's type or code is one of these.
        words, all: any, and all, of these are in the error (in lower case).
        pattern: is found in the error (in lower case); its groups are values.
        status: the status is one of these.
        unless: none of these is in the error.
        sure: the words leave no other cause.
    """

    means: str
    type: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    all: tuple[str, ...] = ()
    pattern: str = ""
    status: tuple[int, ...] = ()
    unless: tuple[str, ...] = ()
    sure: bool = True

    def found(self, seen: Refusal) -> dict[str, Any] | None:
        """The values of the pattern's groups if the rule fits an error; None if not."""
        error, text = seen.error, seen.words
        if self.status and seen.status not in self.status:
            return None
        if self.type and error.type not in self.type and error.code not in self.type:
            return None
        if self.words and not any(word in text for word in self.words):
            return None
        if not all(word in text for word in self.all) or any(word in text for word in self.unless):
            return None
        if not self.pattern:
            return {}
        match = re.search(self.pattern, text[:4000], re.IGNORECASE)
        return None if match is None else {k: v for k, v in match.groupdict().items() if v}


@dataclass(frozen=True)
class Signs:
    """How a row's responses are recognised; any sign is enough."""

    headers: tuple[str, ...] = ()
    server: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    owned_by: tuple[str, ...] = ()
    fingerprint: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    message: str = ""
    shape: str = ""


@dataclass(frozen=True)
class Provider:
    """One row; see the head of ``providers.toml``."""

    id: str
    name: str
    kind: str
    hosts: tuple[str, ...] = ()
    bases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    auth: str = ""
    keys: tuple[str, ...] = ()
    k3: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    console: tuple[str, ...] = ()
    public_list: bool = False
    docs: str = ""
    seen: str = ""
    signs: Signs = field(default_factory=Signs)
    says: tuple[Rule, ...] = ()


_LEFT_OUT: ContextVar[frozenset[str]] = ContextVar("left_out", default=frozenset())


@contextmanager
def without(*ids: str) -> Iterator[None]:
    """Leave rows out for a while: for the test of what the rest says then."""
    token = _LEFT_OUT.set(frozenset(ids))
    try:
        yield
    finally:
        _LEFT_OUT.reset(token)


def table() -> tuple[Provider, ...]:
    """All rows that are not left out, in the file's order."""
    left = _LEFT_OUT.get()
    return tuple(row for row in _all() if row.id not in left) if left else _all()


@cache
def _all() -> tuple[Provider, ...]:
    text = resources.files(__package__).joinpath("providers.toml").read_text("utf-8")
    return tuple(_provider(raw) for raw in tomllib.loads(text)["provider"])


def _tuples(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in raw.items()}


def _provider(raw: dict[str, Any]) -> Provider:
    """A row; an unknown key raises TypeError, which a test would see."""
    fields = _tuples(raw)
    fields["bases"] = _tuples(raw.get("bases", {}))
    fields["signs"] = Signs(**_tuples(raw.get("signs", {})))
    fields["says"] = tuple(Rule(**_tuples(rule)) for rule in raw.get("says", ()))
    fields["seen"] = str(raw["seen"])
    return Provider(**fields)


@cache
def _rules(left: frozenset[str]) -> dict[str, tuple[tuple[Provider, Rule], ...]]:
    """The rules by what they mean; what several use comes last."""
    made: dict[str, list[tuple[Provider, Rule]]] = {}
    rows = sorted((row for row in _all() if row.id not in left), key=lambda r: r.kind == COMMON)
    for row in rows:
        for rule in row.says:
            made.setdefault(rule.means, []).append((row, rule))
    return {means: tuple(rules) for means, rules in made.items()}


def meaning(seen: Refusal, slug: str) -> tuple[Provider, Rule, dict[str, Any]] | None:
    """The first rule by which an error means a slug, and the values that it found."""
    for row, rule in _rules(_LEFT_OUT.get()).get(slug, ()):
        values = rule.found(seen)
        if values is not None:
            return row, rule, values
    return None


def meanings() -> frozenset[str]:
    """Every slug that some rule means."""
    return frozenset(_rules(frozenset()))


def bases(wire: str) -> tuple[str, ...]:
    """The paths under which some provider has an API, as an SDK of that API wants them."""
    return tuple(dict.fromkeys(path for row in table() for path in row.bases.get(wire, ())))
