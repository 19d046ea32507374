"""FlashKDA: ``flash_kda.fwd`` writes into buffers that the caller gives and returns nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from k3check.nouns.convention import Binding, Convention, Example
from k3check.operators.kda.conventions._tools import flipped, no_article, state_shape, without
from k3check.operators.kda.semantics import KdaInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.nouns.tensors import Tensors

#: The only head size, and the tokens after which the state is rounded and stored.
DIM, CHUNK = 128, 16


def _bind(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """Raw gate and logits, norms inside, always; both buffers hold NaN before the call."""
    interface = without(
        KdaInterface(gate="raw", key_dim=DIM, chunk=CHUNK, state="buffer"), "grouped", "value_dim"
    )

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        v, initial = inputs["v"].contiguous(), inputs.get("initial_state")
        N, H, K, V = state_shape(inputs)
        dtype = inputs["state_dtype"] if initial is None else initial.dtype
        out = torch.full_like(v, float("nan"))
        final = torch.full((N, H, V, K), float("nan"), dtype=dtype, device=v.device)
        scale = inputs.get("scale")
        arguments: dict[str, Any] = {
            "q": inputs["q"].contiguous(),
            "k": inputs["k"].contiguous(),
            "v": v,
            "g": inputs["gate"].contiguous(),
            "beta": inputs["beta"].contiguous(),
            "scale": K**-0.5 if scale is None else scale,
            "out": out,
            "A_log": inputs["A_log"],
            "dt_bias": inputs["dt_bias"],
            "lower_bound": inputs["lower_bound"],
            "initial_state": flipped(initial),
            "final_state": final,
            "cu_seqlens": inputs.get("cu_seqlens"),
        }
        target(**{**arguments, **options})
        return {"output": out, "final_state": flipped(final)}

    return Binding(
        interface,
        call,
        excludes={
            **no_article(interface),
            "kimi-linear": "it only has the gate with a lower bound",
        },
    )


CONVENTIONS = (
    Convention(
        "flash_kda",
        "FlashKDA: destination passing, state V-first, K = V = 128, raw gate and beta",
        ("q", "k", "v", "g", "beta", "scale", "out", "A_log", "dt_bias", "lower_bound"),
        _bind,
        typical=("initial_state", "final_state", "cu_seqlens"),
        library="flash_kda",
        dtype="bfloat16",
        state_dtype="bfloat16",
        example=Example(
            "kda_chunk",
            "flash_kda:fwd",
            "fwd(q, k, v, g, beta, scale, out, A_log, dt_bias, lower_bound, initial_state=None, "
            "final_state=None, cu_seqlens=None)",
            "nothing: out [B, T, H, 128] and final_state are written",
            state="[N, H, V, K], written to a buffer",
        ),
    ),
)
