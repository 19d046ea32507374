"""tokamax: kimi_delta_attention, heads first, packed sequences as segment ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from k3check.nouns.convention import Binding, Convention, Example
from k3check.nouns.returned import parts
from k3check.operators.kda.conventions._foreign import with_torch
from k3check.operators.kda.conventions._tools import flat, no_article, without
from k3check.operators.kda.semantics import KdaInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.nouns.tensors import Tensors


def _bind(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """[H, B, T, K] and states [B, segments, H, K, V]; beta is a probability in either mode."""
    raw = bool(options.get("use_gate_in_kernel", False))
    interface = without(
        KdaInterface(
            gate="raw" if raw else "ln",
            beta="prob",
            norm="op" if options.get("use_qk_l2norm") else "caller",
        ),
        "grouped",
    )

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        lengths, initial = inputs.get("cu_seqlens"), inputs.get("initial_state")
        joined = 1 if lengths is None else 0  # the axis of the states that is added here
        arguments: dict[str, Any] = {
            "query": _heads_first(inputs["q"]),
            "key": _heads_first(inputs["k"]),
            "value": _heads_first(inputs["v"]),
            "gate": _heads_first(inputs["gate"]),
            "beta": _heads_first(inputs["beta"]),
            "scale": inputs.get("scale"),
            "initial_state": None if initial is None else initial.unsqueeze(joined),
            "output_final_state": True,
        }
        if lengths is not None:
            arguments["segment_ids"] = _segments(lengths)
            arguments["max_num_segments"] = len(lengths) - 1
        if raw:
            arguments["a_log"] = inputs["A_log"]
            arguments["delta_time_bias"] = flat(inputs["dt_bias"])
            arguments["lower_bound"] = inputs["lower_bound"]
        result = with_torch(target)(**{**arguments, **options})
        output, state = parts(result, "output", "final_state")
        return {
            "output": output.movedim(0, 2).contiguous(),
            "final_state": state.squeeze(joined).contiguous(),
        }

    return Binding(interface, call, excludes=no_article(interface))


def _heads_first(x: torch.Tensor) -> torch.Tensor:
    """[B, T, H, ...] -> [H, B, T, ...]."""
    return x.movedim(2, 0).contiguous()


def _segments(lengths: torch.Tensor) -> torch.Tensor:
    """Offsets [N + 1] -> ids [1, T] that count from 1; an empty sequence has no token."""
    counts = lengths.diff()
    ids = torch.arange(1, len(counts) + 1, device=lengths.device, dtype=torch.int32)
    return ids.repeat_interleave(counts)[None]


CONVENTIONS = (
    Convention(
        "tokamax",
        "tokamax's kimi_delta_attention: heads first, segment ids, states [B, N, H, K, V]",
        ("query", "key", "value", "gate", "beta", "initial_state", "segment_ids"),
        _bind,
        typical=(
            "a_log",
            "delta_time_bias",
            "scale",
            "output_final_state",
            "use_qk_l2norm",
            "use_gate_in_kernel",
            "lower_bound",
            "max_num_segments",
        ),
        library="tokamax",
        example=Example(
            "kda_chunk",
            "tokamax._src.ops.kda.api:kimi_delta_attention",
            "kimi_delta_attention(query, key, value, gate, beta, *, a_log=None, "
            "delta_time_bias=None, scale=None, initial_state=None, output_final_state=False, "
            "use_qk_l2norm=False, use_gate_in_kernel=False, segment_ids=None, lower_bound=None, "
            "context_parallel_metadata=None, max_num_segments=None, implementation=None)",
            "(output [H, B, T, V], final_state)",
            {"use_gate_in_kernel": True, "use_qk_l2norm": True},
            state="[B, N, H, K, V], returned",
        ),
    ),
)
