"""Calling a KDA candidate where its outputs go straight into another call or a sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.compare.twice import of_shape
from k3check.nouns.call import call

if TYPE_CHECKING:
    from k3check.nouns.operator import Candidate
    from k3check.nouns.tensors import Tensors


def outputs_of(candidate: Candidate, inputs: Tensors) -> Tensors:
    """The candidate's outputs on copies of the inputs, with the shapes that they must have.

    Raises:
        ConventionBroken: an output is missing or has another shape.
    """
    outputs, _ = call(candidate, inputs)
    B, T, HV, V = inputs["v"].shape
    lengths = inputs.get("cu_seqlens")
    N = B if lengths is None else len(lengths) - 1
    shapes = {"final_state": (N, HV, inputs["k"].shape[-1], V)}
    if candidate.interface.readout:
        shapes["output"] = (B, T, HV, V)
    for name, shape in shapes.items():
        of_shape(name, outputs.get(name), shape, "K3O-002")
    return outputs
