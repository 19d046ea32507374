"""The released model's facts, and notes where a configuration says otherwise.

A configuration may describe another model, or the articles' form on purpose: so these are notes,
never failures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from k3check.masking.settings import shown
from k3check.model import Message
from k3check.released import (
    API,
    BLOCKS,
    CONFIG,
    CONTEXT,
    KDA_LAYERS,
    MLA_LAYERS,
    MODELING,
    SAMPLING,
    TEXT,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from k3check.config.loaded import Origin


@dataclass(frozen=True)
class Fact:
    """One value of the released model that a configuration may state.

    Attributes:
        key: our dotted key.
        right: the released model's value; None where the model has no such thing.
        code: the note's code.
        source: where the value is stated.
    """

    key: str
    right: Any
    code: str
    source: str


def _stated(key: str, name: str, code: str = "K3C-050") -> Fact:
    """A fact that ``config.json`` states under a name."""
    right = TEXT[name]
    return Fact(key, list(right) if isinstance(right, tuple) else right, code, f"{CONFIG}: {name}")


_LINEAR = "linear_attn_config"

FACTS = (
    _stated("attn_residuals.block_size", "attn_res_block_size", "K3C-035"),
    Fact("attn_residuals.num_blocks", BLOCKS, "K3C-036", MODELING),
    Fact("attn_residuals.residual_dim", None, "K3C-042", MODELING),
    Fact("kda.alpha_floor", None, "K3C-037", f"{CONFIG}: {_LINEAR}.gate_lower_bound"),
    Fact("kda.alpha_ceil", None, "K3C-037", f"{CONFIG}: {_LINEAR}.gate_lower_bound"),
    _stated("kda.d_k", f"{_LINEAR}.head_dim", "K3C-038"),
    _stated("kda.d_v", f"{_LINEAR}.head_dim", "K3C-038"),
    Fact("kda.gate_bottleneck", TEXT[f"{_LINEAR}.head_dim"], "K3C-040", MODELING),
    _stated("kda.short_conv_kernel", f"{_LINEAR}.short_conv_kernel_size"),
    Fact("model.temperature", SAMPLING["temperature"], "K3C-041", API),
    Fact("model.top_p", SAMPLING["top_p"], "K3C-041", API),
    Fact("attention.kda_layers", KDA_LAYERS, "K3C-050", f"{CONFIG}: {_LINEAR}.kda_layers"),
    Fact(
        "attention.gated_mla_layers",
        len(MLA_LAYERS),
        "K3C-050",
        f"{CONFIG}: {_LINEAR}.full_attn_layers",
    ),
    *(
        _stated(key, name)
        for key, name in (
            ("attention.full_attn_layers", f"{_LINEAR}.full_attn_layers"),
            ("model.num_layers", "num_hidden_layers"),
            ("model.norm_eps", "rms_norm_eps"),
            ("kda.num_heads", f"{_LINEAR}.num_heads"),
            ("kda.gate_lower_bound", f"{_LINEAR}.gate_lower_bound"),
            ("kda.full_rank_gate", f"{_LINEAR}.use_full_rank_gate"),
            ("moe.num_routed_experts", "num_experts"),
            ("moe.num_shared_experts", "num_shared_experts"),
            ("moe.top_k", "num_experts_per_token"),
            ("moe.situ_tanh_clip", "activation_situ_linear_beta"),
            ("moe.situ_gate_clip", "activation_situ_beta"),
            ("moe.latent_dim", "routed_expert_hidden_size"),
            ("moe.hidden_dim", "hidden_size"),
            ("moe.expert_dim", "moe_intermediate_size"),
            ("moe.router", "moe_router_activation_func"),
            ("moe.renormalize", "moe_renormalize"),
            ("moe.scaling_factor", "routed_scaling_factor"),
            ("moe.first_dense_layers", "first_k_dense_replace"),
            ("moe.dense_dim", "intermediate_size"),
            ("mla.num_heads", "num_attention_heads"),
            ("mla.q_rank", "q_lora_rank"),
            ("mla.kv_rank", "kv_lora_rank"),
            ("mla.nope_dim", "qk_nope_head_dim"),
            ("mla.rope_dim", "qk_rope_head_dim"),
            ("mla.value_dim", "v_head_dim"),
            ("mla.output_gate", "mla_use_output_gate"),
            ("mla.no_position", "mla_use_nope"),
        )
    ),
)

#: the keys that are compared with the released model, here and by the rules below
COMPARED = frozenset(
    {
        *(fact.key for fact in FACTS),
        "attn_residuals.enable_gating",
        "flashkda.chunk_size",
        "model.context_window",
        "model.max_output_tokens",
        "moe.sparsity_ratio",
        "moe.quantile_balancing",
        "moe.balancing",
        "moe.norm",
        "moe.activation",
        "attention.block_pattern",
    }
)

# What only a server can act on; through a gateway these change nothing, or are refused.
SERVER_SIDE = ("expert_parallel", "quantization", "cache_strategy", "context_length")
# Chunk lengths that the field's chunkwise kernels take (FlashKDA 16, flash-linear-attention 32/64).
CHUNKS = (16, 32, 64)


def notes(values: Mapping[str, Any], origins: Mapping[str, Origin]) -> list[Message]:
    """Notes on what a configuration says that the released model does not.

    Args:
        values: the values that are set, by dotted key; checked already.
        origins: where each came from.
    """
    found = [
        _message(fact.code, fact.key, values, origins, right=_words(fact.right), source=fact.source)
        for fact in FACTS
        if fact.key in values and (fact.right is None or values[fact.key] != fact.right)
    ]
    for rule in _RULES:
        found += rule(values, origins)
    return found


def _words(value: Any) -> str:
    return "none" if value is None else shown(value)


def _message(
    code: str,
    key: str,
    values: Mapping[str, Any],
    origins: Mapping[str, Origin],
    **more: Any,
) -> Message:
    return Message(
        code,
        {
            "key": key,
            "found": shown(values[key], key.split(".")),
            "where": str(origins[key]),
            **more,
        },
    )


def _gating(values: Mapping[str, Any], origins: Mapping[str, Origin]) -> list[Message]:
    key = "attn_residuals.enable_gating"
    if values.get(key) is not True:
        return []
    return [_message("K3C-043", key, values, origins, source=MODELING)]


def _chunk(values: Mapping[str, Any], origins: Mapping[str, Origin]) -> list[Message]:
    key = "flashkda.chunk_size"
    if values.get(key, CHUNKS[0]) in CHUNKS:
        return []
    return [_message("K3C-039", key, values, origins, right="16, 32 or 64")]


def _context(values: Mapping[str, Any], origins: Mapping[str, Origin]) -> list[Message]:
    found: list[Message] = []
    key = "model.context_window"
    window = values.get(key, CONTEXT)
    if window != CONTEXT:
        code = "K3C-044" if window < CONTEXT else "K3C-045"
        found.append(_message(code, key, values, origins, right=CONTEXT))
    output = "model.max_output_tokens"
    if values.get(output, 0) > window:
        found.append(_message("K3C-046", output, values, origins, right=window))
    return found


def _server_side(values: Mapping[str, Any], origins: Mapping[str, Origin]) -> list[Message]:
    key = "client.extra_body"
    body = values.get(key, {})
    names = [name for name in SERVER_SIDE if name in body]
    if not names:
        return []
    return [Message("K3C-047", {"key": key, "found": ", ".join(names), "where": str(origins[key])})]


def _sparsity(values: Mapping[str, Any], origins: Mapping[str, Origin]) -> list[Message]:
    key = "moe.sparsity_ratio"
    experts, top_k = (
        values.get(f"moe.{key}", TEXT[name])
        for key, name in (
            ("num_routed_experts", "num_experts"),
            ("top_k", "num_experts_per_token"),
        )
    )
    if key not in values or values[key] == experts / top_k:
        return []
    return [_message("K3C-051", key, values, origins, right=f"{experts / top_k:g}")]


_WORDING = {
    "moe.balancing": "quantile",
    "moe.norm": "rmsnorm",
    "moe.activation": "situ_glu",
    "attention.block_pattern": "3kda_1mla",
}


def _wording(values: Mapping[str, Any], origins: Mapping[str, Origin]) -> list[Message]:
    found = [
        _message("K3C-050", key, values, origins, right=right, source=MODELING)
        for key, right in _WORDING.items()
        if key in values and values[key].casefold() != right
    ]
    key = "moe.quantile_balancing"
    if values.get(key) is False:
        found.append(_message("K3C-050", key, values, origins, right="true", source=MODELING))
    return found


_RULES: Sequence[Callable[[Mapping[str, Any], Mapping[str, Origin]], list[Message]]] = (
    _gating,
    _chunk,
    _context,
    _server_side,
    _sparsity,
    _wording,
)
