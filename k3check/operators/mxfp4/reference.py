"""Dequantisation by the plainest code that is right, for every value of the semantics."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from k3check.mutate.site import at, note
from k3check.nouns.recipe import EXACT, Arithmetic

if TYPE_CHECKING:
    from k3check.nouns.tensors import Tensors
    from k3check.operators.mxfp4.semantics import Mxfp4Interface, Mxfp4Semantics

GROUP = 32
PLACE = "row column"
MAGNITUDES = {
    "e2m1": (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0),
    "integer": (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0),
    "no_subnormal": (0.0, 0.0, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0),
}
#: below this, float32 and bfloat16 numbers are subnormal
LEAST_NORMAL = 2.0**-126


def evaluate(
    semantics: Mxfp4Semantics,
    interface: Mxfp4Interface,
    inputs: Tensors,
    arithmetic: Arithmetic = EXACT,
) -> Tensors:
    """Dequantise.

    Args:
        semantics: which MXFP4.
        interface: how the bytes are laid out.
        inputs: ``packed`` uint8 [R, C / 2] and ``scale`` uint8 [R, C / 32], or ``blocks`` uint8
            [R, C / 32, 17]; ``dtype`` of the result: what it rounds to is the one right answer.
        arithmetic: only its output dtype matters.

    Returns:
        ``output`` [R, C]; infinite where a value exceeds the dtype's range.
    """
    packed, scale = inputs.get("packed"), inputs.get("scale")
    if interface.layout == "ggml":
        blocks = inputs["blocks"]
        packed, scale = blocks[..., 1:].flatten(1), blocks[..., 0]
        if semantics.order == "low_first":  # what is right in two tensors is split order here
            semantics = replace(semantics, order="split")
        elif semantics.order == "split":
            semantics = replace(semantics, order="low_first")
    assert packed is not None
    assert scale is not None
    note(sizes={}, tokens=len(packed))
    code = at("code", codes(semantics, packed).double(), PLACE).long()
    scale = at("scale byte", scale.double(), "row group").to(torch.uint8)
    factor = at("scale", scales(semantics, scale), PLACE)
    values = at("product", at("code value", code_values(semantics, code), PLACE) * factor, PLACE)
    if semantics.subnormal == "flushed":
        values = torch.where(values.abs() < LEAST_NORMAL, 0.0, values)
    if semantics.rows == "last_missing":
        values[-1] = 0
    values = values.to(inputs["dtype"]).double()
    return {"output": values.to(arithmetic.output)}


def codes(semantics: Mxfp4Semantics, packed: torch.Tensor) -> torch.Tensor:
    """Codes 0 to 15 by column, int64 [R, C]."""
    low, high = (packed & 15).long(), (packed >> 4).long()
    if semantics.order == "split":
        halves = [x.view(len(packed), -1, GROUP // 2) for x in (low, high)]
        return torch.cat(halves, dim=-1).flatten(1)
    pair = (low, high) if semantics.order == "low_first" else (high, low)
    return torch.stack(pair, dim=-1).flatten(1)


def code_values(semantics: Mxfp4Semantics, code: torch.Tensor) -> torch.Tensor:
    """What codes stand for, float64."""
    if semantics.codes == "twos_complement":
        return torch.where(code > 7, code - 16, code).double()
    negative, index = code >= 8, code % 8
    if semantics.sign == "low_bit":
        negative, index = code % 2 == 1, code // 2
    magnitude = torch.tensor(MAGNITUDES[semantics.codes], dtype=torch.float64)[index]
    if semantics.sign == "ignored":
        return magnitude
    if semantics.sign == "inverted":
        negative = ~negative
    return torch.where(negative, -magnitude, magnitude)


def scales(semantics: Mxfp4Semantics, byte: torch.Tensor) -> torch.Tensor:
    """The factor of every element, float64 [R, C]."""
    exponent = byte.double() - semantics.bias
    factor = {
        "exponent": exponent.exp2(),
        "linear": byte.double(),
        "reciprocal": (-exponent).exp2(),
        "dropped": torch.ones_like(exponent),
    }[semantics.scale]
    if semantics.no_number != "exponent":
        instead = {"nan": torch.nan, "zero": 0.0, "infinity": torch.inf}[semantics.no_number]
        factor = torch.where(byte == 255, instead, factor)
    if semantics.least != "exponent":
        instead = 0.0 if semantics.least == "zero" else 1.0
        factor = torch.where(byte == 0, instead, factor)
    if semantics.group == "previous":
        factor = factor.roll(1, 1)
    elif semantics.group == "first_of_row":
        factor = factor[:, :1].expand_as(factor)
    elif semantics.group == "transposed":
        factor = factor.flatten().view(factor.shape[::-1]).T
    if semantics.group in ("of_16", "of_64"):
        width = 16 if semantics.group == "of_16" else 64
        columns = torch.arange(GROUP * factor.shape[1]) // width
        return factor[:, columns.clamp(max=factor.shape[1] - 1)]
    return factor.repeat_interleave(GROUP, dim=1)
