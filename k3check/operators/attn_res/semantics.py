"""Which mix exactly: every choice that a port can get wrong, as data.

The defaults are the released K3 operator. A legal variant and a mistake are both another value;
which of the two it is, only :mod:`k3check.operators.attn_res.faults` says.

Source of the defaults: ``_apply_attn_res`` of the released ``modeling_kimi_linear.py``, Attention
Residuals, arXiv 2603.15031; ``fla/ops/attnres/naive.py`` of fla-org/flash-linear-attention.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from k3check.released import EPS


@dataclass(frozen=True)
class AttnResSemantics:
    """One mix of sources v_0 ... v_N, of which the last one is the running sum (the prefix).

    The defaults are::

    k_n = v_n / sqrt(mean(v_n^2) + eps)
    s_n = sum_d k_n[d] gain[d] query[d]
    out = sum_n softmax_n(s) v_n           per token; the raw v, no scale, no bias
    """

    # --- keys ----------------------------------------------------------------------------------
    norm: Literal["rms", "l2", "layer", "none"] = "rms"
    eps: float = EPS
    eps_on: Literal["mean", "sum", "outside"] = "mean"
    gain: Literal["once", "dropped", "one_plus", "twice"] = "once"
    #: which channels take part in the score; ``full_blocks``: only whole blocks of 64
    lanes: Literal["all", "full_blocks"] = "all"
    #: the dtype to which a key times its gain is rounded before the score's dot product
    key_rounding: Literal["none", "bfloat16"] = "none"
    score_rounding: Literal["none", "bfloat16"] = "none"

    # --- weights -------------------------------------------------------------------------------
    scale: Literal["one", "rsqrt", "sqrt"] = "one"
    sign: int = 1
    query: Literal["own", "zero"] = "own"
    weights: Literal["softmax", "exp2", "sigmoid", "unnormalised", "over_tokens", "hard"] = (
        "softmax"
    )
    weight_order: Literal["own", "reversed", "rolled"] = "own"
    weight_token: Literal["own", "previous", "first"] = "own"
    #: how the snapshots' part and the prefix's part are put together in the two-phase form
    merge: Literal["exact", "unweighted", "base2", "unshifted"] = "exact"

    # --- values --------------------------------------------------------------------------------
    values: Literal["raw", "keys", "gained_keys"] = "raw"
    sources: Literal[
        "all",
        "no_prefix",
        "no_newest",
        "no_oldest",
        "prefix_twice",
        "newest_twice",
        "empty_slot",
        "prefix_zeroed",
    ] = "all"
    snapshot_token: Literal["own", "previous"] = "own"
    residual: Literal["replaces", "prefix_added", "prefix_only", "sum", "mean"] = "replaces"

    # --- the norm after the mix, where an interface includes it ---------------------------------
    output_norm: Literal["rms", "none", "no_gain", "one_plus"] = "rms"
    output_eps: float = EPS


K3 = AttnResSemantics()
#: The paper's code and fla's default.
PAPER = AttnResSemantics(eps=1e-6, output_eps=1e-6)

SEMANTICS = {"k3": K3, "paper": PAPER}


@dataclass(frozen=True)
class AttnResInterface:
    """Which part of the mix a callable does, and how it takes its sources.

    Attributes:
        folded: gain and query come as one vector, their product.
        delta: the last sub-layer's output is added to the prefix inside; the sum is rounded to
            the stream's dtype.
        output_norm: the RMSNorm that follows the mix is included.
        stack: the callable is a whole stack of layers, not one mix.
        article: it is the article's own attention plus cross attention over a bank, no mix.
        multiple_of: the number of tokens must be a multiple of it.
        supports: ``mix``: one mix can be called; ``single``: a mix of the prefix alone.
    """

    folded: bool = False
    delta: bool = False
    output_norm: bool = False
    stack: bool = False
    article: bool = False
    supports: frozenset[str] = frozenset({"mix", "single"})
    multiple_of: int = 1


@dataclass(frozen=True)
class StackSemantics:
    """The walk over a stack of layers: which vectors every mix has as its sources.

    The defaults, per layer i with the running sum p and the snapshots b::

        h = mix(p, b) if b else p
        if i % block == 0: b.append(p); p = 0          the sum BEFORE the mix
        p = p + attention(norm(h))
        h = mix(p, b)
        p = p + mlp(norm(h))

    and after the last layer one more mix, before the final norm.
    """

    snapshot: Literal["before_mix", "after_mix", "after_attention"] = "before_mix"
    #: at which layers of a block
    boundary: Literal["first", "last", "second", "sublayers", "never", "not_at_zero"] = "first"
    running_sum: Literal["cleared", "kept"] = "cleared"
    #: what a sub-layer's output is added to
    added_to: Literal["sum", "mix"] = "sum"
    mixes: Literal["both", "attention_only", "mlp_only", "none"] = "both"
    output_mix: Literal["applied", "missing"] = "applied"
    #: which snapshots a mix sees
    seen: Literal["all", "newest", "without_newest"] = "all"
    prefix: Literal["included", "left_out"] = "included"
    query: Literal["own", "one_per_layer", "next", "sites_swapped"] = "own"


STACK = StackSemantics()
