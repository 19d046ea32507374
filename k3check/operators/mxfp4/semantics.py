"""Which MXFP4 exactly: every choice that a reader of packed weights can get wrong, as data.

Source of the defaults: OCP Microscaling formats 1.0 (E2M1 with an E8M0 scale), the released
checkpoint's ``mxfp4-pack-quantized`` layout as compressed-tensors unpacks it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Mxfp4Semantics:
    """Dequantisation: value = E2M1(code) * 2^(scale - 127).

    A byte holds two neighbours, the even column in its low half; bit 3 of a code is the sign and
    the magnitudes are 0, 0.5, 1, 1.5, 2, 3, 4, 6.
    """

    #: ``split``: the low halves are elements 0 to 15 of a group, the high ones 16 to 31
    order: Literal["low_first", "high_first", "split"] = "low_first"
    codes: Literal["e2m1", "integer", "twos_complement", "no_subnormal"] = "e2m1"
    sign: Literal["high_bit", "low_bit", "ignored", "inverted"] = "high_bit"
    bias: int = 127
    scale: Literal["exponent", "linear", "reciprocal", "dropped"] = "exponent"
    #: which group's scale an element takes
    group: Literal["own", "previous", "of_16", "of_64", "first_of_row", "transposed"] = "own"
    #: what the scale byte 255 stands for
    no_number: Literal["nan", "zero", "exponent", "infinity"] = "nan"
    #: what the scale byte 0 stands for
    least: Literal["exponent", "zero", "one"] = "exponent"
    subnormal: Literal["kept", "flushed"] = "kept"
    rows: Literal["own", "last_missing"] = "own"


OCP = Mxfp4Semantics()
#: kimi-k3-in-c and others read 255 as zero.
ZERO = Mxfp4Semantics(no_number="zero")

SEMANTICS = {"k3": OCP, "zero-255": ZERO}


@dataclass(frozen=True)
class Mxfp4Interface:
    """How the packed weights come.

    Attributes:
        layout: two tensors with pairs of columns in a byte, or GGML's blocks of 17 bytes: a scale
            and 16 bytes in split order.
        supports: nothing that a case needs so far.
    """

    layout: Literal["pairs", "ggml"] = "pairs"
    supports: frozenset[str] = frozenset()
