"""Tensors by name, copies of them on a device, and where their random values come from."""

from __future__ import annotations

from typing import Any

import torch

#: Named tensors and scalars, as an operator takes or returns them.
Tensors = dict[str, Any]


def to_device(inputs: Tensors, device: torch.device) -> Tensors:
    """A fresh copy of every tensor on a device; other values as they are."""
    return {
        name: value.detach().to(device, copy=True)
        if isinstance(value, torch.Tensor)
        else [item.detach().to(device, copy=True) for item in value]
        if isinstance(value, list)
        else value
        for name, value in inputs.items()
    }


def generator(seed: int, *names: str) -> torch.Generator:
    """A generator whose stream depends on the seed and on names, not on what ran before."""
    state = seed & 0xFFFFFFFF
    for name in names:
        for char in name:
            state = (state * 1000003 ^ ord(char)) & 0x7FFFFFFFFFFFFFFF
    return torch.Generator().manual_seed(state)


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether a tensor has values of its own in strided memory."""
    return tensor.layout == torch.strided and not (tensor.is_meta or tensor.is_quantized)
