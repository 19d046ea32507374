"""One public mistake."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from k3check.nouns.tensors import Tensors


@dataclass(frozen=True)
class Fault:
    """One public mistake: other semantics, or a transformation of what the operator returns.

    Attributes:
        code, slug: identify its texts in :mod:`k3check.hints`.
        changes: fields of the semantics that it gets wrong, with the wrong values.
        transform: applied to the outputs, ``transform(outputs, inputs) -> outputs``.
        values: fill the placeholders of its texts (the chunk size ...).
        during: the reference is evaluated in this context: a change of one of its values that no
            field of the semantics has (see :mod:`k3check.mutate`).
        only: outputs that it shows in, where it does not show in all.
    """

    code: str
    slug: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    transform: Callable[[Tensors, Tensors], Tensors] | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    during: Callable[[], AbstractContextManager[None]] | None = None
    only: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What tells it from others: the code of a listed mistake, a mutant's slug."""
        return self.code if self.during is None else self.slug

    def applied(self, semantics: Any) -> Any:
        """The semantics with this mistake in it."""
        return replace(semantics, **self.changes) if self.changes else semantics


def with_changes(semantics: Any, **changes: Any) -> Any:
    """Another value of a semantics."""
    return replace(semantics, **changes)
