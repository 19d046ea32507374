"""The facts of the released model, once: checks, notes, the demo and references read them here."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

CONFIG = "config.json of moonshotai/Kimi-K3, text_config"
MODELING = "modeling_kimi_linear.py of moonshotai/Kimi-K3"
API = "platform.kimi.ai, K3 quickstart"

#: tokens of prompt and answer together
CONTEXT = 1_048_576

#: what the official service fixes; another value is answered with 400
SAMPLING: Mapping[str, float] = MappingProxyType(
    {"temperature": 1.0, "top_p": 0.95, "n": 1, "presence_penalty": 0, "frequency_penalty": 0}
)

#: ``text_config`` by its own names, nested ones with a dot
TEXT: Mapping[str, Any] = MappingProxyType(
    {
        "num_hidden_layers": 93,
        "hidden_size": 7168,
        "rms_norm_eps": 1e-5,
        "attn_res_block_size": 12,
        "linear_attn_config.head_dim": 128,
        "linear_attn_config.num_heads": 96,
        "linear_attn_config.gate_lower_bound": -5.0,
        "linear_attn_config.short_conv_kernel_size": 4,
        "linear_attn_config.use_full_rank_gate": True,
        # counted from 1: every fourth layer, and the last one
        "linear_attn_config.full_attn_layers": (*range(4, 93, 4), 93),
        "num_experts": 896,
        "num_shared_experts": 2,
        "num_experts_per_token": 16,
        "routed_expert_hidden_size": 3584,
        "moe_intermediate_size": 3072,
        "moe_router_activation_func": "sigmoid",
        "moe_renormalize": True,
        "routed_scaling_factor": 1.0,
        "first_k_dense_replace": 1,
        "intermediate_size": 33792,
        "activation_situ_beta": 4.0,
        "activation_situ_linear_beta": 25.0,
        "num_attention_heads": 96,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "mla_use_output_gate": True,
        "mla_use_nope": True,
    }
)

LAYERS: int = TEXT["num_hidden_layers"]
#: layers in a block of the attention residuals, and the blocks that are kept
BLOCK: int = TEXT["attn_res_block_size"]
BLOCKS = -(-LAYERS // BLOCK)
MLA_LAYERS: tuple[int, ...] = TEXT["linear_attn_config.full_attn_layers"]
KDA_LAYERS = LAYERS - len(MLA_LAYERS)
LOWER_BOUND: float = TEXT["linear_attn_config.gate_lower_bound"]
EPS: float = TEXT["rms_norm_eps"]

_K3 = re.compile(r"(?<![a-z0-9])k3(?!\d)", re.IGNORECASE)


def is_k3(model: str | None) -> bool:
    """Whether a model's id names some Kimi K3, as its providers spell it.

    ``kimi-k3``, ``moonshotai/Kimi-K3-256k``, ``k3``; not ``kimi-k2.6``, nor a plan's own name such
    as ``kimi-for-coding``, behind which stands what the provider chooses.
    """
    return model is not None and _K3.search(model) is not None
