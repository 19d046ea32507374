"""Callables on other libraries' arrays get those, and nothing is rounded on the way."""

from __future__ import annotations

import sys
import types

import pytest
import torch

from k3check.operators.kda.conventions._foreign import array_module, with_torch

np = pytest.importorskip("numpy", reason="numpy, over which arrays are passed, is not installed")
DTYPES = ("bfloat16", "float16", "float32", "int32", "int64")


class Dtype:
    """As mlx shows one: ``mlx.core.bfloat16``."""

    def __init__(self, name):
        self.name = name

    def __str__(self):
        return f"mlx.core.{self.name}"


class Array:
    """An array of a library that has bfloat16, which numpy has not."""

    def __init__(self, values, dtype):
        self.values, self.dtype = values, dtype

    def astype(self, dtype):
        values = torch.from_numpy(self.values).to(getattr(torch, dtype.name))
        kept = values.float() if dtype.name in ("bfloat16", "float16") else values
        return Array(kept.numpy(), dtype)

    def __array__(self, dtype=None, copy=None):
        assert self.dtype.name not in ("bfloat16", "float16"), "numpy has no such type"
        return np.array(self.values, dtype=dtype)


@pytest.fixture
def arrays(monkeypatch):
    """A stand-in for mlx.core."""
    module = types.ModuleType("mlx.core")
    for name in DTYPES:
        setattr(module, name, Dtype(name))
    module.array = lambda values: Array(values, getattr(module, str(values.dtype)))
    monkeypatch.setitem(sys.modules, "mlx", types.ModuleType("mlx"))
    monkeypatch.setitem(sys.modules, "mlx.core", module)
    return module


def test_tensors_become_arrays_of_the_same_dtype_and_back(arrays):
    seen = {}

    def gated_delta_update(**given):
        seen.update(given)
        return given["q"], None

    gated_delta_update.__module__ = "mlx_lm.models.gated_delta"
    for name in DTYPES:
        q = torch.arange(6).reshape(2, 3).to(getattr(torch, name)) / (1 if "int" in name else 3)
        q = q.to(getattr(torch, name))
        back, nothing = with_torch(gated_delta_update)(q=q, bound=None, scale=0.5)
        assert isinstance(seen["q"], Array)
        assert seen["q"].dtype is getattr(arrays, name)
        assert (seen["bound"], seen["scale"], nothing) == (None, 0.5, None)
        assert back.dtype == q.dtype
        assert torch.equal(back, q)


def test_a_port_to_torch_gets_tensors():
    def port(q: torch.Tensor):
        return q

    assert array_module(port) is None
    assert with_torch(port) is port


@pytest.mark.parametrize(
    ("annotation", "module"), [("mx.array", "mlx.core"), ("jax.Array", "jax.numpy")]
)
def test_annotations_tell_too(annotation, module):
    def mine(q):
        return q

    mine.__annotations__ = {"q": annotation}
    assert array_module(mine) == module
