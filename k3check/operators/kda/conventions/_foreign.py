"""Callables of other array libraries: torch tensors in, torch tensors out.

A port that takes torch tensors is called with them. A function of mlx-lm or of tokamax itself, or
one whose annotations name their arrays, is given those: every value passes unchanged, because
float32 holds every bfloat16 and float16 exactly.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

_BY_MODULE = {"mlx_lm": "mlx.core", "mlx": "mlx.core", "tokamax": "jax.numpy", "jax": "jax.numpy"}
_BY_ANNOTATION = {"mlx": "mlx.core", "mx.": "mlx.core", "jax": "jax.numpy"}


def with_torch(target: Callable[..., Any]) -> Callable[..., Any]:
    """The callable, or one that converts its arguments and results if it works on other arrays."""
    name = array_module(target)
    if name is None:
        return target
    library = importlib.import_module(name)

    def call(**arguments: Any) -> Any:
        given = {n: _to(library, x) for n, x in arguments.items()}
        result = target(**given)
        if isinstance(result, tuple | list):
            return tuple(_back(library, x) for x in result)
        return _back(library, result)

    return call


def array_module(target: Callable[..., Any]) -> str | None:
    """The module of the arrays that a callable works on, None for torch's tensors."""
    root = (getattr(target, "__module__", None) or "").partition(".")[0]
    if root in _BY_MODULE:
        return _BY_MODULE[root]
    text = str(getattr(target, "__annotations__", {}))
    return next((module for mark, module in _BY_ANNOTATION.items() if mark in text), None)


def _to(library: Any, x: Any) -> Any:
    """A tensor as an array of the same dtype; anything else as it is."""
    if not isinstance(x, torch.Tensor):
        return x
    x = x.detach().cpu()
    plain = x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
    made = library.array(plain.numpy())
    dtype = getattr(library, str(x.dtype).removeprefix("torch."))
    return made if made.dtype == dtype else made.astype(dtype)


def _back(library: Any, x: Any) -> Any:
    """An array as a tensor of the same dtype; None as it is."""
    if x is None or isinstance(x, torch.Tensor):
        return x
    dtype = getattr(torch, str(x.dtype).rpartition(".")[2])
    wide = x.astype(library.float32) if dtype in (torch.bfloat16, torch.float16) else x
    numpy = importlib.import_module("numpy")
    return torch.from_numpy(numpy.array(wide)).to(dtype)
