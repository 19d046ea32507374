"""Which gated norm exactly: every choice that a port can get wrong, as data.

Source of the defaults: ``o_norm`` of the released KDA layer (``FusedRMSNormGated`` with sigmoid).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from k3check.released import EPS


@dataclass(frozen=True)
class NormSemantics:
    """Per head: out = x / sqrt(mean(x^2) + eps) * gain * sigmoid(gate); norm first, then gate."""

    order: Literal["norm_first", "gate_first"] = "norm_first"
    gate: Literal["sigmoid", "silu", "none", "raw", "tanh", "one_minus", "softmax"] = "sigmoid"
    gate_head: Literal["own", "reversed", "first"] = "own"
    gate_token: Literal["own", "previous"] = "own"
    norm: Literal["rms", "l2", "layer", "none"] = "rms"
    #: what the mean square is taken over
    over: Literal["head", "all_heads", "tokens"] = "head"
    eps: float = EPS
    eps_on: Literal["mean", "sum", "outside"] = "mean"
    gain: Literal["once", "dropped", "one_plus", "twice", "before_norm", "reversed"] = "once"


K3 = NormSemantics()
SEMANTICS = {"k3": K3, "kimi-linear": K3}


@dataclass(frozen=True)
class NormInterface:
    """A gated norm takes x, gate and gain in every form.

    Attributes:
        multiple_of: the number of tokens must be a multiple of it.
        supports: nothing that a case needs so far.
    """

    supports: frozenset[str] = frozenset()
    multiple_of: int = 1
