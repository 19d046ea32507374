"""First calls with a shape: a kernel is compiled and tuned there, which is no time of a check."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from k3check.nouns.shapes import compiles, signature

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    import torch

    from k3check.nouns.tensors import Tensors


class Named(Protocol):
    """An operator, as far as its name goes."""

    @property
    def name(self) -> str:
        """Its name."""
        ...


class Placed(Protocol):
    """A recipe, as far as its device goes."""

    @property
    def device(self) -> torch.device:
        """Where calls run."""
        ...


class Called(Protocol):
    """A candidate, as far as its calls are told apart by it."""

    @property
    def operator(self) -> Named:
        """Which operator it is."""
        ...

    @property
    def convention(self) -> str:
        """How it is called."""
        ...

    @property
    def recipe(self) -> Placed:
        """Where it runs."""
        ...

    @property
    def builtin(self) -> bool:
        """Whether it is our own."""
        ...


@dataclass
class FirstCalls:
    """The shapes that the callables of this run have met, and what meeting them took.

    Attributes:
        begins, ended: told of every first call; whoever limits a check's time stops its clock.
        seconds: what each first call of the current check took.
    """

    begins: Callable[[], None] = lambda: None
    ended: Callable[[], None] = lambda: None
    seconds: list[float] = field(default_factory=list)
    _met: set[Hashable] = field(default_factory=set)

    def begin(self, candidate: Called, inputs: Tensors) -> Callable[[], None]:
        """A call begins; the function returned is told of its end."""
        key = (candidate.operator.name, candidate.convention, signature(inputs))
        if candidate.builtin or not compiles(candidate.recipe.device) or key in self._met:
            return lambda: None
        self._met.add(key)
        self.begins()
        began = time.perf_counter()

        def end() -> None:
            self.seconds.append(time.perf_counter() - began)
            self.ended()

        return end

    def taken(self) -> list[float]:
        """What first calls took since this was asked last."""
        taken, self.seconds = self.seconds, []
        return taken


#: Of this process; there is one run in it.
FIRST_CALLS = FirstCalls()
