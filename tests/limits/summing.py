"""Every sum of a callable in another order, as other threads, vector widths or kernels add.

While one of these is on, sums, means, products and softmaxes are added up term by term in the
order that it names, each partial sum rounded to the tensor's own precision.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

LANES = 7
#: name -> the order in which n terms are added: a list of lists whose sums are added at the end
ORDERS = {
    "one after the other": lambda n: [list(range(n))],
    "the last one first": lambda n: [list(range(n))[::-1]],
    "seven lanes": lambda n: [list(range(lane, n, LANES)) for lane in range(min(LANES, n))],
    "shuffled blocks": lambda n: [
        torch.randperm(n, generator=torch.Generator().manual_seed(n)).tolist()[i : i + 32]
        for i in range(0, n, 32)
    ],
}


class Summing(TorchDispatchMode):
    """Adds in an order of ``ORDERS``; what is longer than ``most`` terms is left to torch."""

    def __init__(self, order: str, most: int = 8192) -> None:
        super().__init__()
        self.order = ORDERS[order]
        self.most = most
        self.sums = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func._schema.name.removeprefix("aten::")
        floating = isinstance(result, torch.Tensor) and result.dtype in (
            torch.float32,
            torch.float64,
        )
        if not floating or not (args and isinstance(args[0], torch.Tensor)):
            return result
        other = self._other(name, args, dict(kwargs or {}), result)
        if other is None:
            return result
        self.sums += 1
        assert other.shape == result.shape
        return other

    def _other(self, name: str, args: Any, given: Any, result: torch.Tensor) -> Any:
        x = args[0]
        if not x.is_floating_point() or x.dtype != result.dtype:
            return None
        if name in ("sum", "mean"):
            dims = args[1] if len(args) > 1 and args[1] is not None else list(range(x.dim()))
            dims = [d % x.dim() for d in ([dims] if isinstance(dims, int) else dims)]
            dims = dims or list(range(x.dim()))
            kept = [d for d in range(x.dim()) if d not in dims]
            terms = x.permute(*dims, *kept).reshape(-1, *[x.shape[d] for d in kept])
            if not 1 < len(terms) <= self.most:
                return None
            total = self._add(terms)
            if name == "mean":
                total = total / len(terms)
            return total.reshape(result.shape)
        if name in ("mm", "bmm"):
            n = x.shape[-1]
            if not 1 < n <= self.most or result.numel() * n > 3e8:
                return None
            y = args[1]
            return self._add_up(n, lambda i: x[..., :, i : i + 1] * y[..., i : i + 1, :])
        if name == "_softmax":
            dim = args[1]
            raised = (x - x.amax(dim, keepdim=True)).exp()
            if x.shape[dim] > self.most:
                return None
            return raised / self._add(raised.movedim(dim, 0)).unsqueeze(dim)
        return None

    def _add(self, terms: torch.Tensor) -> torch.Tensor:
        return self._add_up(len(terms), lambda i: terms[i])

    def _add_up(self, n: int, term: Any) -> torch.Tensor:
        parts = []
        for lane in self.order(n):
            total = term(lane[0])
            for i in lane[1:]:
                total = total + term(i)
            parts.append(total)
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total


def summed(target: Any, order: str) -> Any:
    """A callable whose sums are added in another order."""

    @functools.wraps(target)
    def call(*given: Any, **named: Any) -> Any:
        with Summing(order):
            return target(*given, **named)

    return call
