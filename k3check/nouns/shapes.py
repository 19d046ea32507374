"""Sizes that a kernel is compiled for: which ones a run asks for, and how many different ones.

A kernel of Triton or CUDA is compiled, and often tuned, once for each shape that it meets: tens of
seconds each. Where that is so a profile has a budget of shape signatures (:data:`BUDGET`), and
cases share the usual one unless their mistake needs another. Numbers of tokens and of sequences
are no part of a signature: kernels take them as they come.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

if TYPE_CHECKING:
    from k3check.nouns.case import Case
    from k3check.nouns.tensors import Tensors

#: Signatures that one operator's checks may have where each costs a compilation, by profile.
BUDGET = {"quick": 2, "full": 5}

Signature: TypeAlias = tuple[tuple[Any, ...], ...]

#: ``sized(case, interface, shapes)``: the case with the sizes that a run asks for.
Sized: TypeAlias = Callable[["Case", Any, "Shapes"], "Case"]


@dataclass(frozen=True)
class Shapes:
    """The sizes that a run asks for.

    Attributes:
        few: every new shape is compiled for: cases share the usual ones, those of the released
            model.
        heads, key_dim, value_dim: the user's own, None for the usual ones.
    """

    few: bool = False
    heads: int | None = None
    key_dim: int | None = None
    value_dim: int | None = None

    @property
    def asked(self) -> bool:
        """Whether cases are to have other sizes than they say themselves."""
        return self.few or any((self.heads, self.key_dim, self.value_dim))


def compiles(device: torch.device) -> bool:
    """Whether kernels of a device are compiled for a shape when they first meet it."""
    return device.type != "cpu"


def signature(inputs: Tensors) -> Signature:
    """What a kernel is compiled for: which inputs there are, their dtypes and inner sizes.

    Of a tensor's sizes the last two count, if there are two more in front of them: what stands
    there is batch and tokens.
    """
    return tuple(
        (name, str(value.dtype), *(value.shape[2:] if value.dim() > 2 else value.shape[1:]))
        for name, value in sorted(inputs.items())
        if isinstance(value, torch.Tensor)
    )
