"""Cases of dequantisation: there is one right answer for every byte, so all of them are tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from k3check.nouns.case import Case
from k3check.nouns.tensors import Tensors, generator

if TYPE_CHECKING:
    from k3check.nouns.recipe import Recipe
    from k3check.operators.mxfp4.semantics import Mxfp4Interface, Mxfp4Semantics


@dataclass(frozen=True)
class PackedSpec:
    """How to make one case's inputs.

    Attributes:
        rows, groups: R and C / 32.
        low, high: scale bytes are drawn from this range, both ends included.
        exhaustive: every scale byte of the range once, each with every code in either half.
    """

    rows: int = 12
    groups: int = 5
    low: int = 120
    high: int = 132
    exhaustive: bool = False


def raw(case: Case, _semantics: Mxfp4Semantics, seed: int) -> Tensors:
    """Codes by column, [R, C], and scale bytes, [R, C / 32]."""
    spec: PackedSpec = case.spec
    draw = generator(seed, "mxfp4", case.name)
    if spec.exhaustive:
        # One group a scale byte: its 16 bytes have every code in the low half, and every code in
        # the high half in another order.
        scale = torch.arange(spec.low, spec.high + 1).view(spec.rows, spec.groups)
        low = torch.arange(16)
        group = torch.stack([low, (5 * low + 3) % 16], dim=-1).flatten()
        return {"codes": group.repeat(spec.rows, spec.groups), "scale": scale}
    codes = torch.randint(0, 16, (spec.rows, spec.groups * 32), generator=draw)
    size = (spec.rows, spec.groups)
    return {"codes": codes, "scale": torch.randint(spec.low, spec.high + 1, size, generator=draw)}


def present(
    given: Tensors, _semantics: Mxfp4Semantics, interface: Mxfp4Interface, recipe: Recipe
) -> Tensors:
    """The bytes in the interface's layout."""
    codes, scale = given["codes"], given["scale"].to(torch.uint8)
    if interface.layout == "ggml":
        grouped = codes.view(len(codes), -1, 32)
        data = (grouped[..., :16] | grouped[..., 16:] << 4).to(torch.uint8)
        return {"blocks": torch.cat([scale.unsqueeze(-1), data], dim=-1), "dtype": recipe.io}
    packed = (codes[:, 0::2] | codes[:, 1::2] << 4).to(torch.uint8)
    return {"packed": packed, "scale": scale, "dtype": recipe.io}


def _case(
    name: str, why: str, sees: str, profile: str = "full", spec: PackedSpec | None = None
) -> Case:
    slugs = tuple(f"mxfp4.{slug}" for slug in sees.split())
    return Case(name, why, slugs, profile, frozenset(), spec or PackedSpec())


CASES: tuple[Case, ...] = (
    _case(
        "ordinary",
        "random codes, scales around one: order of the halves, code table, sign, groups",
        "high-first split integer-codes twos-complement no-subnormal-code "
        "sign-low-bit sign-ignored sign-inverted bias-125 bias-126 bias-128 scale-linear "
        "scale-reciprocal scale-dropped group-previous group-of-16 group-of-64 first-scale "
        "scales-transposed last-row",
        "quick",
    ),
    _case(
        "exhaustive",
        "all codes in both halves of a byte, under every scale byte from 0 to 254",
        "subnormal-flushed least-zero high-first integer-codes",
        "quick",
        PackedSpec(rows=17, groups=15, low=0, high=254, exhaustive=True),
    ),
    _case(
        "least-scales",
        "scale bytes 0 to 3: where values are subnormal",
        "subnormal-flushed least-zero least-one scale-shifted",
        "full",
        PackedSpec(low=0, high=3),
    ),
    _case(
        "no-number",
        "scale bytes 253 to 255, of which 255 is NaN",
        "255-is-zero 255-is-number scale-shifted",
        "full",
        PackedSpec(low=253, high=255),
    ),
    _case(
        "one-group",
        "one row of one group: split order",
        "split high-first",
        "full",
        PackedSpec(rows=1, groups=1),
    ),
    _case(
        "four-rows",
        "four rows: kernels that take rows in eights",
        "last-row",
        "full",
        PackedSpec(rows=4, groups=3),
    ),
    _case(
        "one-projection",
        "a whole projection of one expert, 3072 x 3584",
        "high-first",
        "stress",
        PackedSpec(rows=3072, groups=112),
    ),
)
