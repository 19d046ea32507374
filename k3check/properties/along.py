"""Where the things lie that an operator works on, and what a check of them calls it with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from k3check.nouns.tensors import generator

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.nouns.tensors import Tensors

#: Elements around a view: whole 16 bytes in every dtype, so that a row stays aligned.
ROOM = 16
#: What stands around a view of bytes.
OTHER_BYTES = 0x5A


@dataclass(frozen=True)
class Along:
    """Where things of one kind lie in an operator's tensors.

    Attributes:
        spec: the family's description of the inputs that a check is made on.
        inputs: dimension by input; an interface need not have all of them.
        outputs: dimension by output; others do not change with the order.
        count: the input that says how many there are, where a dimension holds several entries of
            each; None where it holds one.
        labels: inputs whose values are numbers of these things.
    """

    spec: Any
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    count: str | None = None
    labels: tuple[str, ...] = ()

    def number(self, inputs: Tensors) -> int:
        """How many things there are."""
        if self.count is not None:
            return int(inputs[self.count])
        return next(int(inputs[n].shape[dim]) for n, dim in self.inputs.items() if n in inputs)

    def in_order(self, inputs: Tensors, order: torch.Tensor) -> Tensors:
        """The inputs of the things in another order."""
        moved = taken(inputs, self.inputs, order)
        return moved | {n: order.argsort()[inputs[n]] for n in self.labels if n in inputs}

    def results(self, order: torch.Tensor) -> Callable[[Tensors], Tensors]:
        """The outputs of the things in another order."""
        return partial(taken, dims=self.outputs, order=order)

    def part(self, inputs: Tensors, start: int, length: int) -> Tensors:
        """The inputs of some of the things."""
        dims = {n: dim for n, dim in self.inputs.items() if n in inputs}
        return inputs | {n: inputs[n].narrow(dim, start, length) for n, dim in dims.items()}


def taken(tensors: Tensors, dims: Mapping[str, int], order: torch.Tensor) -> Tensors:
    """Tensors with the things along some dimensions in another order, whole blocks of them."""
    moved = dict(tensors)
    for name, dim in dims.items():
        x = tensors.get(name)
        if isinstance(x, torch.Tensor):
            blocks = x.unflatten(dim, (-1, x.shape[dim] // int(order.max() + 1)))
            moved[name] = blocks.index_select(dim, order).flatten(dim, dim + 1)
    return moved


def shuffled(count: int, seed: int) -> torch.Tensor:
    """An order in which neither the first nor the last stays where it was.

    Of four or more it is none that a mistake would follow: no shift, and nothing that comes to the
    same if all is turned round before or after.
    """
    if count < 4:
        return torch.arange(count).roll(1)
    draw = generator(seed, "order")
    while True:
        order = torch.randperm(count, generator=draw)
        stays = order[0] == 0 or order[-1] == count - 1
        shift = len({int(step) % count for step in order.diff()}) == 1
        if not (stays or shift or torch.equal(order.flip(0), count - 1 - order)):
            return order


def view(x: torch.Tensor) -> torch.Tensor:
    """The same values as a slice of larger memory, NaN (or other bytes) before and behind a row."""
    fill = float("nan") if x.is_floating_point() else OTHER_BYTES
    room = x.new_full((*x.shape[:-1], x.shape[-1] + 2 * ROOM), fill)
    inside = room[..., ROOM : ROOM + x.shape[-1]]
    inside.copy_(x)
    return inside
