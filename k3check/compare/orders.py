"""What rounding costs in any order of summation, not in the one that the baseline took.

A sum of n terms is rounded n - 1 times, and by how much depends on the order: of the threads, of
the vector width, of a library's blocks, of a GPU's warps. Every order is legal, so a limit has to
hold for every one of them. It follows from the length of a sum and the size of its terms:

    s_k = t_1 + ... + t_k, each rounded by at most u |s_k|, u the accumulator's half epsilon.

Roundings are as good as independent, so the error of the sum is the root of sum_k (u s_k)^2. Over
all orders of the same terms, s_k^2 is on average (k / n) Q + (k (k - 1)) / (n (n - 1)) (S^2 - Q),
with S the sum of the terms and Q that of their squares (sampling without replacement), hence

    sigma^2 = u^2 n (Q + 2 S^2) / 6.

Adding one after the other is the worst that is usual: blocks, trees and fused products stay below.
Products of two tensors round each term once more, u^2 Q. Other operations are right to a unit or
two in the last place, on every machine to another one.

How far this moves a result is not worked out operator by operator: the plainest code is evaluated
while every operation is moved by its sigma, up or down at random. That is Monte Carlo arithmetic
(D. S. Parker, "Monte Carlo arithmetic: exploiting randomness in floating-point arithmetic", 1997;
J. Vignes' CESTAC before it), with the sums' lengths in place of one rounding each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from k3check.compare.sets import SCORES
from k3check.nouns.tensors import generator

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.nouns.tensors import Tensors

#: How many evaluations are made: the root of their mean square is right to a quarter.
SAMPLES = 8

#: operations that are rounded once, by name ...
ROUNDED = frozenset(
    [
        "add",
        "sub",
        "rsub",
        "mul",
        "div",
        "reciprocal",
        "sqrt",
        "rsqrt",
        "square",
        "addcmul",
        "addcdiv",
        "lerp",
        "scatter_add",
        "index_add",
        "index_put",
    ]
)
#: ... and those that libraries get right to about a unit in the last place
NEARLY = frozenset(
    [
        "exp",
        "exp2",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "pow",
        "sigmoid",
        "silu",
        "tanh",
        "softplus",
        "log_sigmoid_forward",
        "erf",
        "gelu",
    ]
)
PRODUCTS = frozenset({"mm", "bmm", "mv", "dot"})


class AnyOrder(TorchDispatchMode):
    """While it is on, every floating-point operation is off by what another order may do.

    Args:
        dtype: of the accumulator; results of another dtype are left alone.
        draw: decides on up or down.
    """

    def __init__(self, dtype: torch.dtype, draw: torch.Generator) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # torch's own has no types
        self.dtype = dtype
        self.unit = torch.finfo(dtype).eps / 2
        self.draw = draw

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call the operation, then move its result."""
        given = dict(kwargs or {})
        result = func(*args, **given)
        if not isinstance(result, torch.Tensor) or result.dtype != self.dtype:
            return result
        name = func._schema.name.removeprefix("aten::")
        moved = self._moved(name.removesuffix("_"), func, args, given, result)
        if moved is None:
            return result
        better = torch.where(torch.isfinite(moved), moved, result)
        return result.copy_(better) if name.endswith("_") else better

    def _moved(
        self,
        name: str,
        func: Any,
        args: tuple[Any, ...],
        given: Mapping[str, Any],
        result: torch.Tensor,
    ) -> torch.Tensor | None:
        u = self.unit
        if name in ROUNDED:
            return result + self._signs(result) * (u * result)
        if name in NEARLY:
            return result + self._signs(result) * (2 * u * result)
        if name in ("sum", "mean"):
            n = args[0].numel() / max(result.numel(), 1)
            squares = func(args[0].square(), *args[1:], **given)
            share = n if name == "mean" else 1.0  # a mean is the sum over n
            sigma = u * (n * (share * squares + 2 * (share * result).square()) / 6).sqrt() / share
            return result + self._signs(result) * sigma if n > 1 else None
        if name in PRODUCTS:
            n, squares = args[0].shape[-1], func(args[0].square(), args[1].square())
            sigma = u * (squares + n * (squares + 2 * result.square()) / 6).sqrt()
            return result + self._signs(result) * sigma
        if name == "linalg_solve_triangular" and given.get("left", True):
            n, squares = args[0].shape[-1], args[0].square() @ result.square()
            sigma = u * (squares + n * (squares + 2 * result.square()) / 6).sqrt()
            return result + self._signs(result) * sigma
        if name == "cumsum":
            return result + func(self._signs(result) * (u * result), *args[1:], **given)
        if name == "cumprod":
            steps = torch.full_like(result, u) * self._signs(result)
            return result * (1 + steps.cumsum(args[1]))
        if name == "_softmax":
            return self._softmax(result, args[1])
        return None

    def _softmax(self, weights: torch.Tensor, dim: int) -> torch.Tensor:
        """The exponentials' sum has positive terms; each exponential has the argument's error."""
        n = (weights > 0).sum(dim, keepdim=True)
        whole = self.unit * (n * (weights.square().sum(dim, keepdim=True) + 2) / 6).sqrt()
        tiny = torch.finfo(self.dtype).tiny
        depth = (weights.amax(dim, keepdim=True) / weights.clamp(min=tiny)).log()
        own = self.unit * (2 + depth)
        return weights * (1 + self._signs(whole) * whole + self._signs(weights) * own)

    def _signs(self, like: torch.Tensor) -> torch.Tensor:
        """+1 or -1 for every element."""
        ups = torch.randint(0, 2, like.shape, generator=self.draw, dtype=torch.int8)
        return (2 * ups - 1).to(like)


def any_order(
    evaluate: Callable[[], Tensors],
    plain: Tensors,
    exact: Tensors,
    accumulate: torch.dtype,
    samples: int = SAMPLES,
) -> Tensors:
    """A baseline whose error is what any order of summation may make of it.

    Args:
        evaluate: the plainest code in the candidate's recipe.
        plain: what it returns in its own order; ids and scores are taken from it.
        exact: the reference's outputs.
        accumulate: the dtype of sums.
        samples: how many evaluations it rests on.

    Returns:
        Outputs as of ``plain``, in float64: every element is off by the root mean square of what
        it was off by in the evaluations.
    """
    values = [n for n, x in plain.items() if _is_value(x) and n in exact and n != SCORES]
    chosen = [n for n, x in plain.items() if isinstance(x, torch.Tensor) and not _is_value(x)]
    squares = {n: torch.zeros_like(exact[n], dtype=torch.float64) for n in values}
    for number in range(samples):
        with AnyOrder(accumulate, generator(number, "any order")):
            found = evaluate()
        other = _other_rows(found, plain, chosen)
        for n in values:
            error = found[n].double() - exact[n].double()
            if other is not None and error.dim() and len(error) == len(other):
                error[other] = 0.0  # other ids: what belongs to them cannot be compared
            squares[n] += error.square()
    spread = {n: exact[n].double() + (squares[n] / samples).sqrt() for n in values}
    return {n: torch.where(spread[n].isfinite(), spread[n], x) if n in spread else x
            for n, x in plain.items()}  # fmt: skip


def _is_value(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.is_floating_point()


def _other_rows(found: Tensors, plain: Tensors, chosen: list[str]) -> torch.Tensor | None:
    """The rows in which other ids were chosen; None where nothing is chosen."""
    rows = None
    for n in chosen:
        if found[n].dim() and found[n].shape == plain[n].shape:
            one, two = (x.reshape(len(x), -1).sort(-1).values for x in (found[n], plain[n]))
            differs = (one != two).any(-1)
            rows = differs if rows is None else rows | differs
    return rows
