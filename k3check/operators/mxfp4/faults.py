"""The mistakes that readers of MXFP4 are known for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from k3check.nouns.fault import Fault

if TYPE_CHECKING:
    from k3check.nouns.recipe import Recipe
    from k3check.operators.mxfp4.semantics import Mxfp4Interface, Mxfp4Semantics

_CHANGES: tuple[tuple[int, str, dict[str, Any]], ...] = (
    (451, "high-first", {"order": "high_first"}),
    (452, "split", {"order": "split"}),
    (453, "integer-codes", {"codes": "integer"}),
    (454, "twos-complement", {"codes": "twos_complement"}),
    (455, "no-subnormal-code", {"codes": "no_subnormal"}),
    (457, "sign-low-bit", {"sign": "low_bit"}),
    (458, "sign-ignored", {"sign": "ignored"}),
    (459, "sign-inverted", {"sign": "inverted"}),
    (460, "bias-125", {"bias": 125}),
    (461, "bias-126", {"bias": 126}),
    (462, "bias-128", {"bias": 128}),
    (463, "scale-linear", {"scale": "linear"}),
    (464, "scale-reciprocal", {"scale": "reciprocal"}),
    (465, "scale-dropped", {"scale": "dropped"}),
    (466, "group-previous", {"group": "previous"}),
    (467, "group-of-16", {"group": "of_16"}),
    (468, "group-of-64", {"group": "of_64"}),
    (469, "first-scale", {"group": "first_of_row"}),
    (470, "scales-transposed", {"group": "transposed"}),
    (471, "subnormal-flushed", {"subnormal": "flushed"}),
    (472, "least-zero", {"least": "zero"}),
    (473, "least-one", {"least": "one"}),
    (474, "255-is-zero", {"no_number": "zero"}),
    (475, "255-is-number", {"no_number": "exponent"}),
    (476, "last-row", {"rows": "last_missing"}),
    (477, "scale-shifted", {"least": "zero", "no_number": "infinity"}),
)


def faults(
    semantics: Mxfp4Semantics, _interface: Mxfp4Interface, _recipe: Recipe
) -> tuple[Fault, ...]:
    """Every mistake that differs from these semantics."""
    return tuple(
        Fault(f"K3O-{code}", f"mxfp4.{slug}", change)
        for code, slug, change in _CHANGES
        if replace(semantics, **change) != semantics
    )
