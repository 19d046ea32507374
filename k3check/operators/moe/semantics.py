"""Which router, activation and expert layer exactly: every choice a port can get wrong, as data.

The defaults are the released K3 operators. Sources: the released ``modeling_kimi_linear.py``
(``KimiMoEGate``, ``SituAndMul``, the latent sparse MoE block), NVIDIA-NeMo/Automodel
``nemo_automodel/components/models/kimi_k3``, vLLM ``vllm/models/kimi_k3``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from k3check.released import EPS


@dataclass(frozen=True)
class RouterSemantics:
    """Which experts a token goes to, and with which weights.

    The defaults are::

        s = sigmoid(x W^T)                 float32
        ids = top_k(s + bias)              the bias selects and does nothing else
        w = s[ids] / (sum s[ids] + 1e-20) * scaling
    """

    logit_rounding: Literal["none", "bfloat16"] = "none"
    score: Literal["sigmoid", "softmax", "logit", "sigmoid_twice"] = "sigmoid"
    bias: Literal["choice", "dropped", "subtracted", "before_sigmoid", "multiplied"] = "choice"
    bias_rounding: Literal["none", "bfloat16"] = "none"
    bias_expert: Literal["own", "reversed", "rolled"] = "own"
    direction: Literal["largest", "smallest"] = "largest"
    #: how many ids; ``with_shared``: the shared experts appended as ids E and E + 1
    count: Literal["top_k", "with_shared", "one_less", "all"] = "top_k"
    #: experts that can be chosen at all
    experts: Literal["all", "first_512", "modulo_512"] = "all"
    #: groups of experts of which only the best take part; 1 is no grouping
    groups: int = 1
    #: what an unused place of the running top-k holds: a choice below it is never taken
    empty: Literal["minus_infinity", "minus_one", "zero"] = "minus_infinity"
    id_base: int = 0
    token: Literal["own", "previous"] = "own"
    weights_from: Literal["scores", "choice", "logits", "ones"] = "scores"
    weight_order: Literal["own", "sorted", "rolled"] = "own"
    renormalise: Literal["sum", "none", "over_all", "softmax", "biased_sum", "largest"] = "sum"
    #: whether ``renormalize = False`` is obeyed
    switch: Literal["obeyed", "ignored"] = "obeyed"
    scaling: Literal["once", "none", "twice", "before_sum"] = "once"


@dataclass(frozen=True)
class RouterInterface:
    """What a router takes.

    Attributes:
        logits: the logits, computed by the caller, instead of hidden states and weight.
        multiple_of: the number of tokens must be a multiple of it.
        supports: ``renormalize``: it can be told not to; ``scaling``: it takes the factor.
    """

    logits: bool = False
    supports: frozenset[str] = frozenset({"renormalize", "scaling"})
    multiple_of: int = 1


@dataclass(frozen=True)
class SituSemantics:
    """The activation of every feed-forward part.

    The defaults are::

        out = beta tanh(g / beta) sigmoid(g) * linear_beta tanh(u / linear_beta)

    in float32; ``linear_beta = None`` leaves u as it is.
    """

    gate: Literal[
        "situ",
        "silu",
        "clamped",
        "capped_sigmoid",
        "no_sigmoid",
        "gelu",
        "unscaled",
        "no_division",
        "tanh_of_silu",
        "relu",
    ] = "situ"
    sigmoid_gain: float = 1.0
    up: Literal[
        "situ", "uncapped", "clamped", "gate_beta", "unscaled", "no_division", "plus_one", "dropped"
    ] = "situ"
    halves: Literal["own", "swapped", "interleaved"] = "own"
    #: where the bounds come from: the arguments, the released constants, or defaults of a reader
    #: that did not find its keys
    betas: Literal["given", "released", "swapped", "one_uncapped", "swiglu_clamped"] = "given"
    no_linear_beta: Literal["untouched", "released"] = "untouched"
    tanh: Literal["safe", "exp_ratio"] = "safe"
    half_rounding: Literal["none", "bfloat16"] = "none"


@dataclass(frozen=True)
class SituInterface:
    """How the two halves come.

    Attributes:
        packed: as one tensor [gate | up].
        multiple_of: the number of tokens must be a multiple of it.
        supports: ``betas``: it takes other bounds; ``uncapped``: linear_beta may be None.
    """

    packed: bool = True
    supports: frozenset[str] = frozenset({"betas", "uncapped"})
    multiple_of: int = 1


@dataclass(frozen=True)
class LatentSemantics:
    """The whole expert layer, its routing given.

    The defaults are::

        z   = x W_down^T                                      [T, L]
        y_e = SiTU(z w1_e^T, z w3_e^T) w2_e^T                 per routed expert
        out = RMSNorm(sum_e weight_e y_e) W_up^T + shared(x)  shared: one SiTU MLP on x
    """

    norm: Literal["after_sum", "per_expert", "before_experts", "dropped"] = "after_sum"
    norm_gain: Literal["once", "dropped"] = "once"
    norm_eps: float = EPS
    weight_place: Literal["after_down", "before_experts"] = "after_down"
    weights: Literal["given", "ones", "rolled"] = "given"
    expert: Literal["own", "next"] = "own"
    dropped: Literal["none", "last_slot", "overflow"] = "none"
    #: precision of the running sum over a token's experts
    combine: Literal["wide", "bfloat16"] = "wide"
    activation: Literal["situ", "silu", "swapped_halves"] = "situ"
    shared_activation: Literal["situ", "silu", "swapped_halves"] = "situ"
    shared: Literal["once", "left_out", "twice", "weighted", "into_norm", "half"] = "once"
    routed: Literal["once", "left_out", "twice"] = "once"
    #: two ranks that hold half of the experts each: when their partial sums meet
    ranks: Literal["before_norm", "after_norm", "never"] = "before_norm"


@dataclass(frozen=True)
class LatentInterface:
    """Which part of the layer a callable does.

    Attributes:
        core: the experts alone: the latent in, their weighted sum out; projections, norm and
            shared experts are the caller's.
        multiple_of: the number of tokens must be a multiple of it.
        supports: ``layer`` for the whole layer.
    """

    core: bool = False
    supports: frozenset[str] = frozenset({"layer"})
    multiple_of: int = 1


ROUTER = RouterSemantics()
SITU = SituSemantics()
LATENT = LatentSemantics()
