"""What no KDA can be faster than on a device: its measured rates, and the least there is to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from k3check.checking.bench.timing import timed
from k3check.report.bench import Floor

if TYPE_CHECKING:
    from k3check.nouns.tensors import Tensors

#: Elements copied, and rows of the matrices multiplied, by device.
_COPY = {"cpu": 1 << 25, "cuda": 1 << 29}
_ROWS = {"cpu": 1024, "cuda": 8192}

#: A call below this part of the floor was no call: rates are measured to a few per cent, and
#: inputs that fit a cache need no memory.
IMPOSSIBLE = 0.5

_LIMIT_S = 1.0


def floor_of(inputs: Tensors, outputs: Tensors, device: torch.device, dtype: torch.dtype) -> Floor:
    """The floor of these inputs and outputs, from rates measured now."""
    copy_rate, product_rate = rates(device, dtype)
    moved = sum(
        x.nbytes for part in (inputs, outputs) for x in part.values() if isinstance(x, torch.Tensor)
    )
    bytes_s, products_s = moved / copy_rate, operations(inputs) / product_rate
    return Floor(max(bytes_s, products_s), bytes_s, products_s, copy_rate, product_rate)


def operations(inputs: Tensors) -> float:
    """The fewest operations: prediction, write and readout are a product of K and V a token each.

    A chunkwise form does more of them (6 K V + 3 C d + C^2 per token of a chunk of C; Kimi Linear
    report, arXiv 2510.26692, equation 13).
    """
    B, T, HV, V = inputs["v"].shape
    return 6.0 * B * T * HV * V * inputs["k"].shape[-1]


def rates(device: torch.device, dtype: torch.dtype) -> tuple[float, float]:
    """(bytes per second of a copy, operations per second of a matrix product)."""
    x = torch.ones(_COPY.get(device.type, 1 << 28), dtype=torch.int8, device=device)
    y = torch.empty_like(x)
    copy = timed(lambda: y.copy_(x), device, _LIMIT_S)
    N = _ROWS.get(device.type, 2048)
    a, b = (torch.randn(N, N, device=device).to(dtype) for _ in range(2))
    torch.mm(a, b)
    product = timed(lambda: torch.mm(a, b), device, _LIMIT_S)
    return 2 * x.nbytes / copy.median, 2.0 * N**3 / product.median
