"""The articles' serving configuration: ``[server]``, ``[model]``, ``[attention]``, ``[cache]``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.config.dialects import ours
from k3check.config.dialects.base import table, table_dialect

if TYPE_CHECKING:
    from collections.abc import Mapping

FIELDS = {
    "server.host": "serving.host",
    "server.port": "serving.port",
    "model.path": "model.path",
    "model.name": "model.name",
    "model.base_url": "api.base_url",
    "model.api_key": "api.api_key",
    "model.context_length": "model.context_window",
    "model.max_tokens": "model.max_output_tokens",
    "attention.type": "attention.type",
    "attention.kda_layers": "attention.kda_layers",
    "attention.gated_mla_layers": "attention.gated_mla_layers",
    "attention.block_pattern": "attention.block_pattern",
    "attention.attn_residuals": "attn_residuals.enabled",
    "attention.block_size": "attn_residuals.block_size",
    "moe.num_experts": "moe.num_routed_experts",
    "moe.top_k": "moe.top_k",
    "moe.shared_experts": "moe.num_shared_experts",
    "moe.latent_dim": "moe.latent_dim",
    "moe.hidden_dim": "moe.hidden_dim",
    "moe.balancing": "moe.balancing",
    "moe.norm": "moe.norm",
    "moe.activation": "moe.activation",
    "cache.strategy": "cache.strategy",
    "cache.checkpoint_interval": "cache.checkpoint_interval",
    "cache.affinity_scheduling": "cache.affinity_scheduling",
}


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data have a ``[server]`` table, or the endpoint in ``[model]``.

    The latter beside a table of ours is our own dialect with a key in the wrong table.
    """
    model = table(data, "model")
    endpoint = "base_url" in model or "api_key" in model
    return bool(table(data, "server")) or (endpoint and not ours.recognise(data))


DIALECT = table_dialect(
    name="serving-toml",
    title="the articles' serving configuration",
    looks_for="tables [server], [model] with base_url and api_key, [attention], [cache]",
    fields=FIELDS,
    recognise=recognise,
)
