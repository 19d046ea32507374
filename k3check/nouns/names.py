"""The operators' and suites' names, for whoever must know them without importing torch."""

from __future__ import annotations

OPERATORS: dict[str, str] = {
    "kda_step": "kda",
    "kda_gate": "kda",
    "kda_recurrent": "kda",
    "kda_chunk": "flashkda",
    "short_conv": "kda",
    "gated_rms_norm": "kda",
    "attn_res": "attnres",
    "moe_router": "moe",
    "situ_glu": "moe",
    "latent_moe": "moe",
    "gated_mla": "mla",
    "mxfp4_dequant": "mxfp4",
}
"""Every operator by name, with the suite whose checks compare it."""

SUITES: tuple[str, ...] = ("kda", "flashkda", "attnres", "moe", "mla", "mxfp4", "cache", "dist")
"""What ``k3check ops`` takes as arguments; ``cache`` and ``dist`` check operators together."""
