"""What several conventions need: layouts, packing, and a pool of states with strangers in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from k3check.model import Message
from k3check.nouns.convention import ConventionBroken
from k3check.operators.kda.semantics import KdaInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.nouns.tensors import Tensors

    Names = frozenset[str] | None

ALL = KdaInterface().supports
#: Inputs with a token axis.
PER_TOKEN = ("q", "k", "v", "gate", "beta")
#: Slots of a pool that no sequence of a call owns.
STRANGERS = 3


def knows(names: Names) -> Callable[[str], bool]:
    """Whether a callable has a parameter; one that takes anything has them all."""
    return (lambda _name: True) if names is None else names.__contains__


def only(names: Names, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that a callable has a parameter for."""
    has = knows(names)
    return {name: value for name, value in arguments.items() if has(name)}


def flipped(state: torch.Tensor | None) -> torch.Tensor | None:
    """[..., K, V] <-> [..., V, K], contiguous, in memory of its own."""
    return None if state is None else state.transpose(-1, -2).contiguous()


def flat(bias: torch.Tensor | None) -> torch.Tensor | None:
    """[HV, K] -> [HV * K]."""
    return None if bias is None else bias.flatten()


def no_article(interface: KdaInterface) -> dict[str, str]:
    """Why the article's KDA cannot be had from an interface, if it cannot."""
    reasons = [
        why
        for why, holds in (
            (
                "its gate is K3's or Kimi Linear's, without the article's floor",
                interface.gate == "raw",
            ),
            ("it normalises q and k", interface.norm == "op"),
            ("it scales by K^-1/2", interface.scale == "fixed"),
        )
        if holds
    ]
    return {"article": ", and ".join(reasons)} if reasons else {}


def without(interface: KdaInterface, *capabilities: str) -> KdaInterface:
    """An interface that supports less."""
    return replace(interface, supports=interface.supports - {*capabilities})


def packed(inputs: Tensors, dtype: torch.dtype = torch.int32) -> Tensors:
    """A batch as packed sequences: tokens [1, B * T, ...] with offsets ``cu_seqlens`` [N + 1]."""
    v = inputs["v"]
    B, T = v.shape[:2]
    if inputs.get("cu_seqlens") is not None:
        return {**inputs, "cu_seqlens": inputs["cu_seqlens"].to(dtype)}
    joined = {n: inputs[n].reshape(1, B * T, *inputs[n].shape[2:]) for n in PER_TOKEN}
    offsets = torch.arange(B + 1, device=v.device, dtype=dtype) * T
    return {**inputs, **joined, "cu_seqlens": offsets}


def state_shape(inputs: Tensors) -> tuple[int, int, int, int]:
    """(N, HV, K, V) of canonical inputs."""
    k, v, lengths = inputs["k"], inputs["v"], inputs.get("cu_seqlens")
    count = v.shape[0] if lengths is None else len(lengths) - 1
    return count, v.shape[2], k.shape[3], v.shape[3]


@dataclass(frozen=True)
class Pool:
    """States of a call's sequences among slots of others, as a server keeps them.

    Slot 0 and the others that no sequence owns hold NaN and huge values: reading one shows in the
    outputs, writing one is found by comparing bits.

    Attributes:
        slots: [slots, ...], to be passed on.
        indices: int32 [N], the slot of each sequence: not in order, not adjacent, none of them 0.
        before: the slots as they were.
    """

    slots: torch.Tensor
    indices: torch.Tensor
    before: torch.Tensor

    @classmethod
    def of(cls, states: torch.Tensor) -> Pool:
        """A pool that holds some states [N, ...], in the layout that they have."""
        N = len(states)
        slots = states.new_full((2 * N + STRANGERS, *states.shape[1:]), float("nan"))
        slots[::2] = min(1e30, torch.finfo(states.dtype).max / 2)
        indices = torch.arange(N, 0, -1, device=states.device, dtype=torch.int32) * 2 - 1
        slots[indices.long()] = states
        return cls(slots, indices, slots.clone())

    @classmethod
    def v_first(cls, inputs: Tensors) -> Pool:
        """A pool of canonical inputs' initial states, as [slots, HV, V, K]."""
        return cls.of(inputs["initial_state"].transpose(-1, -2))

    def states(self) -> torch.Tensor:
        """[N, ...]: what now stands in the sequences' slots.

        Raises:
            ConventionBroken: another slot was written.
        """
        owned = set(self.indices.tolist())
        for slot in range(len(self.slots)):
            if slot not in owned and not same_bits(self.slots[slot], self.before[slot]):
                raise ConventionBroken(Message("K3O-651", {"slot": slot}))
        return self.slots[self.indices.long()]


def same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Equality of every bit, NaN included."""
    return torch.equal(left.contiguous().view(torch.uint8), right.contiguous().view(torch.uint8))


def with_padding(rows: torch.Tensor) -> torch.Tensor:
    """One more row, of values that would show."""
    return torch.cat([rows, torch.full_like(rows[:1], 3.0)])


def check_padding(row: torch.Tensor, index: int) -> None:
    """Raise ConventionBroken unless a padding row's output is zero."""
    if row.any():  # NaN counts as true
        raise ConventionBroken(Message("K3O-652", {"index": index}))
