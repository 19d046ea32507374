"""Calling a KDA candidate where its outputs go straight into another call or a sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.compare.verdict import no_tensor
from k3check.operators.base import ConventionBroken
from k3check.operators.compare_case import call
from k3check.report.model import Message

if TYPE_CHECKING:
    from k3check.operators.base import Candidate, Tensors


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
        problem = no_tensor(name, outputs.get(name))
        if problem is not None:
            raise ConventionBroken(problem)
        value = outputs[name]
        if tuple(value.shape) != shape:
            shown = {"found": list(value.shape), "expected": list(shape)}
            raise ConventionBroken(Message("K3O-002", {"tensor": name, **shown}))
    return outputs
