"""What runs the user's operator for the judge, and what comes back from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from k3check.nouns.tensors import Tensors


@dataclass(frozen=True)
class Handed:
    """What the callable itself was handed in a call of the candidate.

    Attributes:
        calls: how often it was called; a convention may do so once a token, or never.
        tensors: how many tensors it got in all.
        views: how many of these were not contiguous.
    """

    calls: int = 0
    tensors: int = 0
    views: int = 0


@dataclass(frozen=True)
class Foreign:
    """What a callable returned in a tensor's place, as far as it can be said in plain words.

    Attributes:
        kind: the class's name; of a tensor without values of its own its kind (``meta``,
            ``sparse_coo``, ``FakeTensor``).
        is_tensor: whether torch calls it a tensor.
    """

    kind: str
    is_tensor: bool = False


@dataclass(frozen=True)
class Returned:
    """What a call gave.

    Attributes:
        outputs: by canonical name, on the CPU; ``Foreign`` for what is no tensor with values.
        inputs: the inputs as they were after the call, on the CPU.
        handed: what the callable itself got.
        seconds: how long the call took.
    """

    outputs: Tensors
    inputs: Tensors
    handed: Handed = field(default_factory=Handed)
    seconds: float = 0.0


class Runner(ABC):
    """A callable that lives elsewhere; it takes and returns canonical tensors on the CPU.

    A base class, no protocol: what a user's callable calls its methods makes no runner of it.
    """

    def stored(self, case: str) -> Tensors | None:
        """The inputs of a case where a runner brings its own, None where the judge makes them."""
        del case
        return None

    @property
    def cases(self) -> frozenset[str] | None:
        """The only cases that it has outputs for; None where it takes any inputs."""
        return None

    @abstractmethod
    def start(
        self, inputs: Tensors, device: torch.device, *, live: bool = False
    ) -> Callable[[], Returned]:
        """Begin a call on a device, and return what waits for its result.

        Args:
            inputs: on the CPU; the callable gets them with the very strides and surroundings
                that they have here.
            device: where it gets them.
            live: outputs that a later such call overwrites change here as well.

        The returned function raises:
            CandidateError: the callable raised, hung, or took its process along.
            ConventionBroken: what it returned does not have the convention's form.
        """


@dataclass
class Watched:
    """A target whose calls are counted: whether there was one, and with views."""

    target: Callable[..., Any]
    calls: int = 0
    tensors: int = 0
    views: int = 0

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Call the target."""
        self.calls += 1
        for x in _tensors([given, named]):
            self.tensors += 1
            self.views += not x.is_contiguous()
        return self.target(*given, **named)

    def add(self, handed: Handed) -> None:
        """Count what a target elsewhere was handed."""
        self.calls += handed.calls
        self.tensors += handed.tensors
        self.views += handed.views


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        yield from _tensors(list(value.values()))
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        for item in value:
            yield from _tensors(item)


class Sublayers(Sequence[Any]):
    """A network's sub-layers as callables: each notes what it is handed, and returns its update.

    Attributes:
        updates: [count, T, D].
        handed: (number, what that sub-layer got) of every call so far, on the CPU.
    """

    def __init__(self, updates: torch.Tensor) -> None:
        self.updates = updates
        self.handed: list[tuple[int, torch.Tensor]] = []

    def __len__(self) -> int:
        """How many there are."""
        return len(self.updates)

    def __getitem__(self, number: Any) -> Any:
        """One of them, or several."""
        if isinstance(number, slice):
            return [self[n] for n in range(*number.indices(len(self)))]
        if not -len(self) <= number < len(self):
            raise IndexError(number)
        place = number % len(self)

        def sublayer(value: torch.Tensor) -> torch.Tensor:
            self.handed.append((place, value.detach().cpu().clone()))
            return self.updates[place].clone()

        return sublayer
