"""Which short convolution exactly: every choice that a port can get wrong, as data.

Source of the defaults: ``fla/modules/convolution.py`` of flash-linear-attention and the released
``linear_attn_config`` (``short_conv_kernel_size`` 4, SiLU inside, no bias).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class ConvSemantics:
    """Depthwise and causal: y[t] = silu(sum_j weight[j] x[t - 3 + j]); weight[3] is the current.

    The state holds the last inputs, before weight and activation, oldest first.
    """

    kernel: Literal["own", "flipped"] = "own"
    taps: Literal["all", "without_oldest", "current_only"] = "all"
    activation: Literal["silu", "none", "twice", "sigmoid", "relu", "on_input"] = "silu"
    alignment: Literal["causal", "late", "early", "centred"] = "causal"
    channel: Literal["own", "first", "rolled"] = "own"
    residual: Literal["none", "added"] = "none"
    initial_state: Literal["read", "ignored", "reversed", "shifted", "first_sequence"] = "read"
    final_state: Literal[
        "inputs", "outputs", "without_last", "reversed", "short_padded", "initial", "transposed"
    ] = "inputs"
    packing: Literal["reset", "leak"] = "reset"


K3 = ConvSemantics()
SEMANTICS = {"k3": K3, "kimi-linear": K3}


@dataclass(frozen=True)
class ConvInterface:
    """How a callable keeps its state.

    Attributes:
        extra_column: the state holds as many inputs as the kernel is wide, as in
            flash-linear-attention; one less is enough.
        multiple_of: the number of tokens must be a multiple of it.
        supports: ``packed``, ``initial_state``, ``final_state``.
    """

    extra_column: bool = False
    supports: frozenset[str] = frozenset({"packed", "initial_state", "final_state"})
    multiple_of: int = 1
