"""The precisions that a candidate declares, and how an evaluation rounds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import torch

if TYPE_CHECKING:
    from k3check.nouns.activation import Form


@dataclass(frozen=True)
class Recipe:
    """The precisions and the device that a candidate declares.

    Attributes:
        io: dtype of inputs and outputs.
        state: dtype of a carried state.
        accumulate: dtype of sums and of everything in between.
    """

    io: torch.dtype = torch.float32
    state: torch.dtype = torch.float32
    accumulate: torch.dtype = torch.float32
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    def describe(self) -> str:
        """``bfloat16, state float32`` and so on, for messages."""
        text = str(self.io).removeprefix("torch.")
        if self.state != self.io:
            text += f", state {str(self.state).removeprefix('torch.')}"
        return text


@dataclass(frozen=True)
class Arithmetic:
    """How an evaluation rounds: the difference between a reference and a baseline.

    Attributes:
        compute: dtype that everything is computed in.
        operand: precision to which the operands of products of whole blocks are rounded, as a
            matrix unit does; ``tf32`` for 10 bits of mantissa; None for ``compute``.
        state: dtype to which a carried state is rounded whenever it is stored.
        output: dtype of the result.
        coarse_log: logarithms near one are only good to 2^-22 in absolute terms, as a GPU's
            instruction is (``lg2.approx.f32`` of the PTX instruction set).
        activation: how a sigmoid is computed.
        stepwise: an operator that works chunk by chunk does so token by token.
    """

    compute: torch.dtype = torch.float64
    operand: torch.dtype | Literal["tf32"] | None = None
    state: torch.dtype = torch.float64
    output: torch.dtype = torch.float64
    coarse_log: bool = False
    activation: Form = "plain"
    stepwise: bool = False

    def operands(self, x: torch.Tensor) -> torch.Tensor:
        """Round a block operand."""
        if self.operand is None:
            return x
        if self.operand == "tf32":
            bits = x.float().contiguous().view(torch.int32)
            # A matrix unit that is handed float32 reads the upper 19 bits: it cuts, not rounds.
            return (bits & ~0x1FFF).view(torch.float32).to(self.compute)
        return x.to(self.operand).to(self.compute)

    def stored(self, x: torch.Tensor) -> torch.Tensor:
        """Round a state that is stored."""
        return x if self.state == self.compute else x.to(self.state).to(self.compute)


EXACT = Arithmetic()


def rounding(recipe: Recipe, *, block_operands: bool = False) -> Arithmetic:
    """The arithmetic of a recipe; ``block_operands`` for operators that multiply blocks."""
    low = recipe.io if recipe.io in (torch.bfloat16, torch.float16) else None
    return Arithmetic(
        compute=recipe.accumulate,
        operand=low if block_operands else None,
        state=recipe.state,
        output=recipe.io,
        coarse_log=recipe.device.type == "cuda" and recipe.accumulate != torch.float64,
    )


def legal_activations(recipe: Recipe) -> dict[str, Arithmetic]:
    """Other forms of a sigmoid: the tanh of a GPU in float32, a stored argument in less."""
    usual = rounding(recipe)
    if recipe.io == torch.float32:
        return {"sigmoid by tanh": replace(usual, activation="tanh")}
    if recipe.io == torch.float64:
        return {}
    return {"argument of the activation stored": replace(usual, activation="rounded")}
