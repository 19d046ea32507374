"""How callables of the field take and return the activation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from k3check.nouns.convention import Binding, Convention, Example
from k3check.operators.moe.semantics import SituInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.nouns.tensors import Tensors

BOUNDS = dict.fromkeys(("betas", "uncapped"), ("beta", "linear_beta"))


def _bind_packed(first: str) -> Callable[[frozenset[str] | None, Mapping[str, Any]], Binding]:
    """x [..., 2 I] with beta and linear_beta where the callable takes them."""

    def bind(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
        betas = names is None or {"beta", "linear_beta"} <= names

        def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
            x = inputs["x"]
            if first == "up":
                x = torch.cat(x.chunk(2, dim=-1)[::-1], dim=-1)
            given = {"beta": inputs["beta"], "linear_beta": inputs["linear_beta"]} if betas else {}
            return {"output": target(x, **{**given, **options})}

        return Binding(SituInterface(supports=_supports(betas)), call)

    return bind


def _supports(betas: bool) -> frozenset[str]:
    return frozenset({"betas", "uncapped"} if betas else ())


def _bind_pair(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """gate and up as two tensors."""
    betas = names is None or {"beta", "linear_beta"} <= names

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        given = {"beta": inputs["beta"], "linear_beta": inputs["linear_beta"]} if betas else {}
        return {"output": target(inputs["gate"], inputs["up"], **{**given, **options})}

    return Binding(SituInterface(packed=False, supports=_supports(betas)), call)


def _bind_module(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """A class: SituAndMul(beta, linear_beta)(x), as in vLLM and TensorRT-LLM."""

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        bounds = {"beta": inputs["beta"], "linear_beta": inputs["linear_beta"]}
        return {"output": target(**{**bounds, **options})(inputs["x"])}

    return Binding(SituInterface(), call)


def _bind_out(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """k3_situ_glu(y, x [2 n], n, b1, b2) of kimi-k3-in-c: one token a call, y written."""

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        x = inputs["x"]
        n = x.shape[-1] // 2
        y = torch.full((len(x), n), float("nan"), dtype=x.dtype, device=x.device)
        for t in range(len(x)):
            target(y[t], x[t], n, inputs["beta"], inputs["linear_beta"], **options)
        return {"output": y}

    return Binding(SituInterface(supports=frozenset({"betas"})), call)


def _situ(signature: str, returns: str = "output [T, I]") -> Example:
    name = signature.partition("(")[0]
    return Example("situ_glu", f"kernels/situ.py:{name}", signature, returns)


SITU = (
    Convention(
        "k3check",
        "x [..., 2 I], gate first, beta, linear_beta",
        ("x",),
        _bind_packed("gate"),
        typical=("beta", "linear_beta"),
        positional=True,
        abilities=BOUNDS,
        example=_situ("situ_glu(x, beta=4.0, linear_beta=25.0)"),
    ),
    Convention(
        "megatron",
        "situ_and_mul(inputs [..., 2 I], beta, linear_beta), gate first",
        ("inputs",),
        _bind_packed("gate"),
        typical=("beta", "linear_beta"),
        positional=True,
        abilities=BOUNDS,
        example=_situ("situ_and_mul(inputs, beta=4.0, linear_beta=25.0)"),
    ),
    Convention(
        "up-first",
        "x [..., 2 I] with the up branch in the first half",
        ("up_gate",),
        _bind_packed("up"),
        typical=("beta", "linear_beta"),
        positional=True,
        abilities=BOUNDS,
        example=_situ("situ_up_first(up_gate, beta=4.0, linear_beta=25.0)"),
    ),
    Convention(
        "pair",
        "gate and up as two tensors",
        ("gate", "up"),
        _bind_pair,
        typical=("beta", "linear_beta"),
        positional=True,
        abilities=BOUNDS,
        example=_situ("situ_pair(gate, up, beta=4.0, linear_beta=25.0)"),
    ),
    Convention(
        "module",
        "a class SituAndMul(beta, linear_beta) whose instances take x [..., 2 I]",
        ("beta", "linear_beta"),
        _bind_module,
        # a function that also takes its input is no class of this form
        unlike=("x", "inputs", "input", "gate", "up", "up_gate", "gate_up", "y", "out"),
        example=_situ(
            "SituAndMul(beta=4.0, linear_beta=None)",
            "an object that returns output [T, I] when called with x [T, 2 I]",
        ),
    ),
    Convention(
        "out",
        "kimi-k3-in-c: (y, x [2 n], n, b1, b2), one token, y written",
        ("y", "x", "n", "b1", "b2"),
        _bind_out,
        positional=True,
        example=_situ(
            "k3_situ_glu(y, x, n, b1, b2)", "nothing: y [I] is written; called once a token"
        ),
    ),
)
