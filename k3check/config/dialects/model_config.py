"""A released model's own ``config.json``: Kimi K3's (nested) and Kimi-Linear's (flat).

It describes the model, not an endpoint: dimensions, gate, layers, experts. The gate's lower bound
decides the semantics that operators are checked with: present K3's, absent Kimi-Linear's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.config import model_map
from k3check.config.dialects.base import Dialect, Reading, Value, table
from k3check.config.pick import picked
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Document, Path_

# Of the language model's part; where two names mean one thing, the code's own spelling is later.
FIELDS = (
    ("num_hidden_layers", "model.num_layers"),
    ("model_max_length", "model.context_window"),
    ("max_position_embeddings", "model.context_window"),
    ("rms_norm_eps", "model.norm_eps"),
    ("hidden_size", "moe.hidden_dim"),
    ("intermediate_size", "moe.dense_dim"),
    ("first_k_dense_replace", "moe.first_dense_layers"),
    ("num_experts", "moe.num_routed_experts"),
    ("num_shared_experts", "moe.num_shared_experts"),
    ("num_experts_per_tok", "moe.top_k"),
    ("num_experts_per_token", "moe.top_k"),
    ("moe_intermediate_size", "moe.expert_dim"),
    ("routed_expert_hidden_size", "moe.latent_dim"),
    ("moe_router_activation_func", "moe.router"),
    ("moe_renormalize", "moe.renormalize"),
    ("routed_scaling_factor", "moe.scaling_factor"),
    ("activation_situ_beta", "moe.situ_gate_clip"),
    ("activation_situ_linear_beta", "moe.situ_tanh_clip"),
    ("attn_res_block_size", "attn_residuals.block_size"),
    ("num_attention_heads", "mla.num_heads"),
    ("q_lora_rank", "mla.q_rank"),
    ("kv_lora_rank", "mla.kv_rank"),
    ("qk_nope_head_dim", "mla.nope_dim"),
    ("qk_rope_head_dim", "mla.rope_dim"),
    ("v_head_dim", "mla.value_dim"),
    ("mla_use_output_gate", "mla.output_gate"),
    ("mla_use_nope", "mla.no_position"),
)
LINEAR = (
    ("num_heads", "kda.num_heads"),
    ("head_dim", "kda.d_k"),
    ("head_dim", "kda.d_v"),
    ("short_conv_kernel_size", "kda.short_conv_kernel"),
    ("gate_lower_bound", "kda.gate_lower_bound"),
    ("use_full_rank_gate", "kda.full_rank_gate"),
    ("full_attn_layers", "attention.full_attn_layers"),
)
_ACTIVATIONS = {"situ": "situ_glu"}


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data have the linear attention's table, at the top or in ``text_config``."""
    return bool(table(data, "linear_attn_config")) or bool(
        table(table(data, "text_config"), "linear_attn_config")
    )


def read(document: Document) -> Reading:
    """The model's numbers, its semantics, and what is wrong with its lists."""
    part, root = model_map.text_part(document.data)
    linear = model_map.linear_part(document.data)
    at: Path_ = (*root, "linear_attn_config")
    values = picked(part, root, FIELDS) + picked(linear, at, LINEAR)
    for name, key in (("kda_layers", "kda_layers"), ("full_attn_layers", "gated_mla_layers")):
        if isinstance(linear.get(name), list):
            values.append(Value(f"attention.{key}", len(linear[name]), (*at, name)))
    activation = part.get("hidden_act")
    if isinstance(activation, str):
        path = (*root, "hidden_act")
        values.append(Value("moe.activation", _ACTIVATIONS.get(activation, activation), path))
    chosen = model_map.semantics(document.data)
    decides = (*at, "gate_lower_bound") if chosen == "k3" else at
    values.append(Value("model.semantics", chosen, decides))
    notes = list(model_map.problems(document.data, document.where))
    if chosen == "kimi-linear":
        values.append(Value("attn_residuals.enabled", "attn_res_block_size" in part, at))
        notes.append(Message("K3C-135", {"where": document.where(at)}))
    return Reading(tuple(values), notes=tuple(notes), released=chosen == "k3")


DIALECT = Dialect(
    name="model-config",
    title="a released model's config.json",
    looks_for="linear_attn_config, at the top or in text_config",
    recognise=recognise,
    read=read,
    evidence=lambda data: [k for k in data if k in ("text_config", "linear_attn_config")],
    syntaxes=("JSON",),
    speaks="none: it describes the model",
)
