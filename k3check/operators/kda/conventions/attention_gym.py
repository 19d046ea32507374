"""attention-gym: chunk_kda and recurrent_kda, their paged forms, and the naive ones in base 2."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from k3check.nouns.convention import Binding, Convention, Example
from k3check.nouns.returned import parts
from k3check.operators.kda.conventions._tools import (
    Pool,
    check_padding,
    flipped,
    knows,
    no_article,
    with_padding,
    without,
)
from k3check.operators.kda.semantics import KdaInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.nouns.tensors import Tensors

#: The only chunk, at whose first token a cumulative decay starts anew.
CHUNK = 64
GIVEN = KdaInterface(gate="ln", beta="prob", norm="caller")


def _tokens(inputs: Tensors, gate: str) -> dict[str, Any]:
    """q, k, v, the gate under some name, and beta."""
    tensors = {name: inputs[name] for name in ("q", "k", "v", "beta")}
    return {**tensors, gate: inputs["gate"]}


def _offsets(inputs: Tensors) -> dict[str, Any]:
    """cu_seqlens as int32, if there are packed sequences."""
    lengths = inputs.get("cu_seqlens")
    return {} if lengths is None else {"cu_seqlens": lengths.to(torch.int32)}


def _bind(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """chunk_kda and recurrent_kda: natural log decay a token; only the latter takes groups."""
    grouped = names is None or "state_indices" in names
    interface = GIVEN if grouped else without(GIVEN, "grouped")

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        arguments = {
            **_tokens(inputs, "gate"),
            **_offsets(inputs),
            "initial_state": flipped(inputs.get("initial_state")),
            "scale": inputs.get("scale"),
            "output_final_state": True,
        }
        output, state = parts(target(**{**arguments, **options}), "output", "final_state")
        return {"output": output, "final_state": flipped(state)}

    return Binding(interface, call, excludes=no_article(interface))


def _bind_naive(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """naive_recurrent_kda and naive_chunk_kda: the decay of each token in base 2."""
    has = knows(names)
    interface = without(replace(GIVEN, gate="log2"), "grouped")
    if not has("cu_seqlens"):
        interface = without(interface, "packed")
    if has("chunk_size") and names is not None:
        interface = replace(interface, multiple_of=int(options.get("chunk_size", CHUNK)))
    return Binding(interface, _naive_call("g", options), excludes=no_article(interface))


def _bind_cumulative(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """The decay in base 2, summed from the first token of each chunk of 64."""
    chunk = int(options.get("chunk_size", CHUNK))
    interface = without(
        replace(GIVEN, gate="cumulative_log2", chunk=chunk, multiple_of=chunk), "grouped", "packed"
    )
    gate = next((n for n in ("cumulative_g", "gate") if names is not None and n in names), "g")
    return Binding(interface, _naive_call(gate, options), excludes=no_article(interface))


def _naive_call(
    gate: str, options: Mapping[str, Any]
) -> Callable[[Callable[..., Any], Tensors], Tensors]:
    """The call of the naive functions, with the gate under some name."""

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        arguments = {
            **_tokens(inputs, gate),
            **_offsets(inputs),
            "scale": inputs.get("scale"),
            "initial_state": flipped(inputs.get("initial_state")),
            "output_final_state": True,
        }
        output, state = parts(target(**{**arguments, **options}), "output", "final_state")
        return {"output": output, "final_state": flipped(state)}

    return call


def _bind_paged(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """paged_chunk_kda: a pool of states, updated in place; the scale is fixed."""
    interface = without(replace(GIVEN, scale="fixed", state="required"), "grouped", "scale")

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        pool = Pool.v_first(inputs)
        arguments = {
            **_tokens(inputs, "gate"),
            **_offsets(inputs),
            "state_cache": pool.slots,
            "state_indices": pool.indices,
        }
        result = target(**{**arguments, **options})
        output = result[0] if isinstance(result, tuple | list) else result
        return {"output": output, "final_state": flipped(pool.states())}

    return Binding(
        interface, call, mutates=frozenset({"initial_state"}), excludes=no_article(interface)
    )


def _bind_packed(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """recurrent_kda_decode: one token, q, k and v in one row, everything activated inside."""
    interface = without(KdaInterface(state="required"), "packed", "grouped")

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        B, bound = inputs["v"].shape[0], inputs["lower_bound"]
        pool = Pool.v_first(inputs)
        row = torch.cat([inputs[n].reshape(B, -1) for n in ("q", "k", "v")], dim=1)
        arguments: dict[str, Any] = {
            "packed_qkv": with_padding(row),
            "raw_gate": with_padding(inputs["gate"][:, 0])[None],
            "raw_beta": with_padding(inputs["beta"][:, 0])[None],
            "A_log": inputs["A_log"],
            "dt_bias": inputs["dt_bias"],
            "state_cache": pool.slots,
            "state_indices": torch.cat([pool.indices, pool.indices.new_zeros(1)]),
            "gate_transform": "softplus" if bound is None else "bounded",
            "scale": inputs.get("scale"),
        }
        if bound is not None:
            arguments["lower_bound"] = bound
        output = target(**{**arguments, **options})[0]
        state = pool.states()
        check_padding(output[B:], 0)
        return {"output": output[:B, None], "final_state": flipped(state)}

    return Binding(
        interface, call, mutates=frozenset({"initial_state"}), excludes=no_article(interface)
    )


CONVENTIONS = (
    Convention(
        "attention-gym",
        "attention-gym's chunk_kda and recurrent_kda: natural log decay, state V-first",
        ("q", "k", "v", "gate", "beta", "initial_state", "output_final_state"),
        _bind,
        typical=("cu_seqlens", "scale", "autotune", "impl", "fastmath", "state_indices"),
        unlike=("A_log", "dt_bias", "lower_bound"),
        library="attn_gym",
        example=Example(
            "kda_chunk",
            "attn_gym.linear.kda:chunk_kda",
            "chunk_kda(q, k, v, gate, beta, initial_state=None, *, cu_seqlens=None, scale=None, "
            "output_final_state=False, fastmath=True, autotune=True, impl='fused', "
            "kernel_options=None)",
            "(o [B, T, H, V], final_state)",
            state="[N, H, V, K] float32, returned",
        ),
    ),
    Convention(
        "attention-gym-naive",
        "attention-gym's naive functions: the decay of each token in base 2, state V-first",
        ("q", "k", "v", "g", "beta"),
        _bind_naive,
        typical=("scale", "initial_state", "output_final_state", "cu_seqlens", "chunk_size"),
        abilities={"packed": ("cu_seqlens",)},
        library="attn_gym",
        recognisable=False,
        example=Example(
            "kda_recurrent",
            "attn_gym.linear.kda.naive:naive_recurrent_kda",
            "naive_recurrent_kda(q, k, v, g, beta, scale=None, initial_state=None, "
            "output_final_state=False, cu_seqlens=None)",
            "(o [B, T, H, V], final_state)",
            state="[N, H, V, K], returned",
        ),
    ),
    Convention(
        "attention-gym-paged",
        "attention-gym's paged_chunk_kda: natural log decay, a pool of states in place",
        ("q", "k", "v", "gate", "beta", "state_cache", "state_indices"),
        _bind_paged,
        typical=("cu_seqlens", "has_initial_state", "autotune"),
        library="attn_gym",
        example=Example(
            "kda_chunk",
            "attn_gym.linear.kda:paged_chunk_kda",
            "paged_chunk_kda(q, k, v, gate, beta, state_cache, state_indices, *, cu_seqlens=None, "
            "has_initial_state=None, autotune=True, kernel_options=None, replay_state=None)",
            "o [B, T, H, V]",
            state="[slots, H, V, K], updated in place by slot",
        ),
    ),
)
SEQUENCES_ONLY = (
    Convention(
        "attention-gym-cumulative",
        "decay in base 2, summed within each chunk of 64: attention-gym's inner form",
        ("q", "k", "v", "cumulative_g", "beta"),
        _bind_cumulative,
        typical=("scale", "initial_state", "output_final_state", "chunk_size"),
        library="attn_gym",
        example=Example(
            "kda_chunk",
            "kernels/kda.py:chunk_kda_from_cumulative",
            "chunk_kda_from_cumulative(q, k, v, cumulative_g, beta, scale=None, "
            "initial_state=None, output_final_state=False, chunk_size=64)",
            "(o [B, T, H, V], final_state)",
            state="[N, H, V, K], returned",
        ),
    ),
)
STEPS_ONLY = (
    Convention(
        "attention-gym-packed",
        "attention-gym's recurrent_kda_decode: one token, q, k, v in one row, all raw",
        ("packed_qkv", "raw_gate", "raw_beta", "A_log", "dt_bias", "state_cache", "state_indices"),
        _bind_packed,
        typical=("has_initial_state", "gate_transform", "lower_bound", "scale"),
        library="attn_gym",
        example=Example(
            "kda_step",
            "attn_gym.linear.kda:recurrent_kda_decode",
            "recurrent_kda_decode(packed_qkv, raw_gate, raw_beta, A_log, dt_bias, state_cache, "
            "state_indices, *, has_initial_state=None, gate_transform='bounded', "
            "lower_bound=-5.0, scale=None, out=None)",
            "o [1, B, H, V]",
            state="[slots, H, V, K], updated in place by slot; slot 0 is for padding rows",
        ),
    ),
)
