"""Which gated MLA exactly: every choice that a port can get wrong, as data.

Source of the defaults: ``KimiMLAAttention`` of the released modelling file with ``mla_use_nope``
and ``mla_use_output_gate``; DeepSeek-V2 (arXiv 2405.04434) for latent and absorbed forms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from k3check.released import EPS


@dataclass(frozen=True)
class MlaSemantics:
    """The defaults are, with x the normed layer input.

    ::

        q          = W_qb RMSNorm(W_qa x)                per head [nope | pe]
        c, k_pe    = split(W_kva x)                      one k_pe for all heads, before the norm
        k, v       = split(W_kvb RMSNorm(c))             per head [nope | value]
        o          = softmax(q [k | k_pe]^T / sqrt(nope + pe), causal) v
        out        = W_o (o * sigmoid(W_g x))
    """

    scale: Literal["full", "nope", "value", "none", "twice"] = "full"
    causal: Literal["causal", "none", "strict", "one_ahead", "past_hidden"] = "causal"
    rope: Literal["none", "applied"] = "none"
    q_norm: Literal["rms", "none"] = "rms"
    kv_norm: Literal["rms", "none", "with_pe", "twice"] = "rms"
    norm_gain: Literal["once", "dropped", "one_plus"] = "once"
    norm_eps: float = 1e-6
    pe: Literal["shared", "dropped", "normed_scale"] = "shared"
    q_split: Literal["nope_first", "pe_first"] = "nope_first"
    kv_split: Literal["key_first", "value_first", "all_keys_first"] = "key_first"
    latent_split: Literal["latent_first", "pe_first"] = "latent_first"
    head: Literal["own", "value_reversed", "first_key", "gate_reversed"] = "own"
    gate: Literal["sigmoid", "none", "silu", "raw", "on_values", "after_norm"] = "sigmoid"
    #: what is done with the part of a sequence that is in the cache
    past: Literal["joined", "ignored", "raw_latent", "normed_twice"] = "joined"
    #: how partial results over past and present are put together
    merge: Literal["exact", "mean", "unweighted"] = "exact"


K3 = MlaSemantics()
#: vLLM passes the model's eps to both latent norms.
VLLM = MlaSemantics(norm_eps=EPS)

SEMANTICS = {"k3": K3, "vllm": VLLM}


@dataclass(frozen=True)
class MlaInterface:
    """Which part of the layer a callable does.

    Attributes:
        part: the whole ``layer``; or ``core``: the attention of projected queries over a cache of
            latents, absorbed or not, without gate and output projection.
        multiple_of: the number of tokens must be a multiple of it.
        supports: ``layer``: the whole layer; ``past``: earlier tokens come as cached rows
            [normed latent | k_pe]; ``cache``: it returns this call's rows.
    """

    part: Literal["layer", "core"] = "layer"
    supports: frozenset[str] = frozenset({"past", "layer", "cache"})
    multiple_of: int = 1
