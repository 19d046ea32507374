"""Which KDA exactly: every choice that a port can get wrong, as data.

The defaults are the released K3 operator. A legal variant and a mistake are both another value of
the same dataclass; which of the two it is, only :mod:`k3check.operators.kda.faults` says.

Source of the defaults: fla-org/flash-linear-attention ``fla/ops/kda``, MoonshotAI/FlashKDA,
Kimi Linear report arXiv 2510.26692; K3's lower bound from its ``linear_attn_config``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from k3check.released import LOWER_BOUND

GateForm = Literal["lower_bound", "softplus", "floor", "clamped_softplus", "upper_bound"]


@dataclass(frozen=True)
class KdaSemantics:
    """One Kimi Delta Attention out of all that can be written by choosing.

    The recurrence of the defaults, per value head, state S of shape [K, V]::

        S1 = Diag(exp(g)) S        decay
        p  = S1^T k                prediction, from the decayed state
        d  = beta (v - p)          error
        S' = S1 + k d^T            write
        o  = scale S'^T q          readout, after the write
    """

    # --- gate: raw x -> log decay g -----------------------------------------------------------
    gate: GateForm = "lower_bound"
    lower_bound: float = LOWER_BOUND
    #: alpha = sigmoid(x) * (1 - floor) + floor, for ``gate="floor"`` (the article's).
    floor: float = 0.01
    #: what follows the bottleneck of the article's gate, where a callable has that inside
    bottleneck: Literal["silu", "none", "relu", "gelu", "sigmoid"] = "silu"
    gate_sign: int = 1
    #: how A_log becomes the rate that multiplies x
    rate: Literal["exp", "plain", "double_exp", "one", "by_channel", "first_head"] = "exp"
    #: where the rate goes in the lower-bound form
    rate_place: Literal["inside", "outside"] = "inside"
    bias: Literal["before_rate", "after_rate", "dropped", "per_head", "transposed", "twice"] = (
        "before_rate"
    )
    #: multiplies g: ln 2 where exp2 was meant for exp, its inverse where a log2 gate was assumed
    decay_gain: float = 1.0
    gate_over: Literal["channel", "mean", "first_channel", "reversed", "value_head_0"] = "channel"
    gate_token: Literal["own", "previous", "next"] = "own"

    # --- beta ---------------------------------------------------------------------------------
    beta: Literal["sigmoid", "raw", "double_sigmoid", "one", "softplus"] = "sigmoid"
    beta_gain: float = 1.0
    beta_on: Literal["both", "value", "prediction", "twice"] = "both"
    beta_token: Literal["own", "previous"] = "own"
    beta_head: Literal["own", "mean", "reversed"] = "own"

    # --- norm and scale -----------------------------------------------------------------------
    norm: Literal["both", "q_only", "k_only", "none", "rms", "l1"] = "both"
    norm_eps: float = 1e-6
    eps_on: Literal["sum", "mean", "outside", "squared_sum_max"] = "sum"
    scale: Literal["key", "none", "value", "inverse", "twice"] = "key"

    # --- order and terms of the recurrence ----------------------------------------------------
    #: ``between``: after the correction, before the write
    decay: Literal["before", "after", "none", "twice", "between"] = "before"
    prediction: Literal["decayed", "undecayed", "none", "by_query", "negative"] = "decayed"
    write: Literal["outer", "by_query", "value_only", "no_decay_kept"] = "outer"
    readout: Literal["after", "before_write", "before_all", "by_key"] = "after"
    value_token: Literal["own", "previous"] = "own"
    key_token: Literal["own", "previous"] = "own"

    # --- heads --------------------------------------------------------------------------------
    #: which query head serves value head j when HV > H
    group: Literal["interleave", "tile"] = "interleave"
    head_order: Literal["own", "reversed", "rolled"] = "own"
    active_heads: Literal["all", "first_only"] = "all"

    # --- state ---------------------------------------------------------------------------------
    initial_state: Literal["read", "ignored", "transposed", "decay_skipped", "first_sequence"] = (
        "read"
    )
    final_state: Literal["last", "previous", "transposed", "decayed_again", "initial"] = "last"
    #: what a packed sequence starts from
    packing: Literal["reset", "leak"] = "reset"

    # --- chunkwise bookkeeping (needs ``chunk``) ------------------------------------------------
    #: tokens per chunk; 0 is the token recurrence
    chunk: int = 0
    handed_state: Literal[
        "exact", "reset", "loses_last", "not_decayed", "transposed_read", "stale"
    ] = "exact"
    system: Literal[
        "solve",
        "no_solve",
        "with_diagonal",
        "beta_on_columns",
        "transposed",
        "truncated",
        "no_beta",
    ] = "solve"
    intra: Literal["inclusive", "strict", "no_decay", "full"] = "inclusive"
    inter: Literal["decayed", "undecayed", "exclusive", "dropped"] = "decayed"
    tail: Literal["valid", "padded_decay", "dropped"] = "valid"

    # --- precision in places where it is lost by mistake ----------------------------------------
    #: alpha rounded to bfloat16 before it multiplies the state
    decay_rounding: Literal["none", "bfloat16"] = "none"
    #: the cumulative log decay of a chunk kept in bfloat16 or float16
    sum_rounding: Literal["none", "bfloat16", "float16"] = "none"
    #: decay between two tokens of a chunk: of their difference, or of exp(G_i) * exp(-G_j) with
    #: float32's range
    pair_form: Literal["difference", "factored"] = "difference"
    #: the chunk's system solved, or inverted by repeated squaring in half precision
    inverse: Literal["solve", "half_doubling"] = "solve"


K3 = KdaSemantics()
KIMI_LINEAR = KdaSemantics(gate="softplus")
ARTICLE = KdaSemantics(gate="floor", norm="none", scale="none")

SEMANTICS = {"k3": K3, "kimi-linear": KIMI_LINEAR, "article": ARTICLE}

GateInput = Literal["raw", "ln", "log2", "alpha", "cumulative_log2"]


@dataclass(frozen=True)
class KdaInterface:
    """Which part of KDA a callable does itself, and what it supports.

    Attributes:
        gate: what it takes as the gate: the raw projection, the log decay (natural or base 2),
            the decay itself, or the log2 decay summed within each chunk.
        beta: logits or probabilities.
        norm: whether q and k are normalised inside (``op``) or by the caller.
        scale: given as an ``argument``; ``fixed`` to K^-1/2 inside; ``folded`` into q by the
            caller; ``none`` for an operator without readout.
        readout: whether there is an output besides the state.
        query: whether it takes a query; without one the output is read with the key.
        log_dtype: dtype in which an activated gate and beta are passed (``io`` or ``float32``).
        multiple_of: the number of tokens must be a multiple of it.
        key_dim: the only K (and V) it takes, None for any.
        heads: the only number of heads it takes, None for any.
        rates: whether A_log and dt_bias are read by ``value`` head or by ``query`` head.
        state: ``required`` if there must be an initial state, if only of zeros; ``buffer`` if the
            caller also gives the memory for the final one, so that the dtype must be known.
        chunk: the chunk it works in, 0 if it is a token recurrence.
        supports: capabilities: ``packed``, ``initial_state``, ``final_state``, ``grouped``,
            ``value_dim`` (V other than K), ``scale`` (other than K^-1/2).
    """

    gate: GateInput = "raw"
    beta: Literal["logit", "prob"] = "logit"
    norm: Literal["op", "caller"] = "op"
    scale: Literal["argument", "fixed", "folded", "none"] = "argument"
    readout: bool = True
    query: bool = True
    log_dtype: Literal["io", "float32"] = "float32"
    multiple_of: int = 1
    key_dim: int | None = None
    heads: int | None = None
    rates: Literal["value", "query"] = "value"
    state: Literal["optional", "required", "buffer"] = "optional"
    chunk: int = 0
    supports: frozenset[str] = frozenset(
        {"packed", "initial_state", "final_state", "grouped", "value_dim", "scale"}
    )


@dataclass(frozen=True)
class GateInterface:
    """What a gate function returns: natural log decay, log2 decay, or the decay itself.

    Attributes:
        output: which of them.
        bottleneck: it takes the layer's input and the two weights of the article's bottleneck.
        multiple_of: the number of tokens must be a multiple of it.
        supports: ``spare_rates``: A_log may have more entries than there are heads.
    """

    output: Literal["ln", "log2", "alpha"] = "ln"
    supports: frozenset[str] = frozenset({"spare_rates"})
    bottleneck: bool = False
    multiple_of: int = 1
