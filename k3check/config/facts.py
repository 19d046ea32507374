"""The released model's facts, and notes where a configuration says otherwise.

A configuration may describe another model, or the articles' form on purpose: so these are notes,
never failures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from k3check.masking.settings import shown
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from k3check.config.load import Origin

_CONFIG = "config.json of moonshotai/Kimi-K3, text_config"
_MODELING = "modeling_kimi_linear.py of moonshotai/Kimi-K3"
_API = "platform.kimi.ai, K3 quickstart"
CONTEXT = 1_048_576


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


FACTS = (
    Fact("attn_residuals.block_size", 12, "K3C-035", f"{_CONFIG}: attn_res_block_size"),
    Fact("attn_residuals.num_blocks", 8, "K3C-036", _MODELING),
    Fact("attn_residuals.residual_dim", None, "K3C-042", _MODELING),
    Fact("kda.alpha_floor", None, "K3C-037", f"{_CONFIG}: linear_attn_config.gate_lower_bound"),
    Fact("kda.alpha_ceil", None, "K3C-037", f"{_CONFIG}: linear_attn_config.gate_lower_bound"),
    Fact("kda.d_k", 128, "K3C-038", f"{_CONFIG}: linear_attn_config.head_dim"),
    Fact("kda.d_v", 128, "K3C-038", f"{_CONFIG}: linear_attn_config.head_dim"),
    Fact("kda.gate_bottleneck", 128, "K3C-040", _MODELING),
    Fact(
        "kda.short_conv_kernel",
        4,
        "K3C-050",
        f"{_CONFIG}: linear_attn_config.short_conv_kernel_size",
    ),
    Fact("model.temperature", 1.0, "K3C-041", _API),
    Fact("model.top_p", 0.95, "K3C-041", _API),
    Fact("moe.num_routed_experts", 896, "K3C-050", f"{_CONFIG}: num_experts"),
    Fact("moe.num_shared_experts", 2, "K3C-050", f"{_CONFIG}: num_shared_experts"),
    Fact("moe.top_k", 16, "K3C-050", f"{_CONFIG}: num_experts_per_token"),
    Fact("moe.situ_tanh_clip", 25.0, "K3C-050", f"{_CONFIG}: activation_situ_linear_beta"),
    Fact("moe.latent_dim", 3584, "K3C-050", f"{_CONFIG}: routed_expert_hidden_size"),
    Fact("moe.hidden_dim", 7168, "K3C-050", f"{_CONFIG}: hidden_size"),
    Fact("attention.kda_layers", 69, "K3C-050", f"{_CONFIG}: linear_attn_config.kda_layers"),
    Fact(
        "attention.gated_mla_layers",
        24,
        "K3C-050",
        f"{_CONFIG}: linear_attn_config.full_attn_layers",
    ),
    Fact(
        "attention.full_attn_layers",
        [*range(4, 93, 4), 93],
        "K3C-050",
        f"{_CONFIG}: linear_attn_config.full_attn_layers",
    ),
    *(
        Fact(key, right, "K3C-050", f"{_CONFIG}: {name}")
        for key, right, name in (
            ("model.num_layers", 93, "num_hidden_layers"),
            ("model.norm_eps", 1e-5, "rms_norm_eps"),
            ("kda.num_heads", 96, "linear_attn_config.num_heads"),
            ("kda.gate_lower_bound", -5.0, "linear_attn_config.gate_lower_bound"),
            ("kda.full_rank_gate", True, "linear_attn_config.use_full_rank_gate"),
            ("moe.situ_gate_clip", 4.0, "activation_situ_beta"),
            ("moe.expert_dim", 3072, "moe_intermediate_size"),
            ("moe.router", "sigmoid", "moe_router_activation_func"),
            ("moe.renormalize", True, "moe_renormalize"),
            ("moe.scaling_factor", 1.0, "routed_scaling_factor"),
            ("moe.first_dense_layers", 1, "first_k_dense_replace"),
            ("moe.dense_dim", 33792, "intermediate_size"),
            ("mla.num_heads", 96, "num_attention_heads"),
            ("mla.q_rank", 1536, "q_lora_rank"),
            ("mla.kv_rank", 512, "kv_lora_rank"),
            ("mla.nope_dim", 128, "qk_nope_head_dim"),
            ("mla.rope_dim", 64, "qk_rope_head_dim"),
            ("mla.value_dim", 128, "v_head_dim"),
            ("mla.output_gate", True, "mla_use_output_gate"),
            ("mla.no_position", True, "mla_use_nope"),
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
    return [_message("K3C-043", key, values, origins, source=_MODELING)]


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
    experts, top_k = values.get("moe.num_routed_experts", 896), values.get("moe.top_k", 16)
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
        _message("K3C-050", key, values, origins, right=right, source=_MODELING)
        for key, right in _WORDING.items()
        if key in values and values[key].casefold() != right
    ]
    key = "moe.quantile_balancing"
    if values.get(key) is False:
        found.append(_message("K3C-050", key, values, origins, right="true", source=_MODELING))
    return found


_RULES: Sequence[Callable[[Mapping[str, Any], Mapping[str, Origin]], list[Message]]] = (
    _gating,
    _chunk,
    _context,
    _server_side,
    _sparsity,
    _wording,
)
