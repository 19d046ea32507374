"""Checks of the short convolution that need no reference."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import torch

from k3check.compare.twice import Same, inputs_of, outputs_of
from k3check.operators.conv.cases import ConvSpec
from k3check.properties import common
from k3check.properties.along import Along

if TYPE_CHECKING:
    from k3check.nouns.operator import Candidate
    from k3check.nouns.tensors import Tensors

SPEC = ConvSpec(batch=2)
LENGTHS = (3, 1, 17, 2, 4)
TOKENS = Along(SPEC, {"x": 1}, {"output": 1})
BATCH = Along(ConvSpec(batch=4), {"x": 0, "initial_state": 0}, {"output": 0, "final_state": 0})
CHANNELS = Along(SPEC, {"x": 2, "weight": 0, "initial_state": 1}, {"output": 2, "final_state": 1})


def split(candidate: Candidate, seed: int) -> Same | str:
    """A sequence in one call, and in three with the state carried over, one of a single token."""
    m = candidate.interface.multiple_of
    spec = SPEC if m == 1 else ConvSpec(batch=2, tokens=2 * m)
    whole = inputs_of(candidate, spec, "split", seed)
    if isinstance(whole, str):
        return whole
    ends = (0, 17, 18, 37) if m == 1 else (0, m, 2 * m)
    outputs, given = [], dict(whole)
    for start, end in pairwise(ends):
        found = outputs_of(candidate, {**given, "x": whole["x"][:, start:end]})
        given["initial_state"] = found["final_state"]
        outputs.append(found["output"])
    joined = {"output": torch.cat(outputs, dim=1), "final_state": given["initial_state"]}
    return Same(joined, outputs_of(candidate, whole), whole)


def packed_equals_separate(candidate: Candidate, seed: int) -> Same | str:
    """Packed sequences, and each of them alone."""
    inputs = inputs_of(candidate, ConvSpec(lengths=LENGTHS), "separate", seed)
    if isinstance(inputs, str):
        return inputs
    together = outputs_of(candidate, inputs)
    parts: list[Tensors] = []
    for n, (start, end) in enumerate(pairwise(inputs["cu_seqlens"].tolist())):
        alone = {**inputs, "x": inputs["x"][:, start:end]}
        alone.pop("cu_seqlens")
        if "initial_state" in inputs:
            alone["initial_state"] = inputs["initial_state"][n : n + 1]
        parts.append(outputs_of(candidate, alone))
    apart = {
        name: torch.cat([part[name] for part in parts], dim=1 if name == "output" else 0)
        for name in together
    }
    return Same(together, apart, inputs)


PROPERTIES = (
    common.made("split", "one call equals several with the state carried over", "K3O-700",
                split, ("initial_state", "final_state")),
    common.causal(TOKENS, ("x",)),
    common.made("packed-separate", "packed sequences equal separate ones", "K3O-702",
                packed_equals_separate, ("packed",)),
    common.order("batch-order", BATCH),
    common.order("channel-order", CHANNELS),
    common.repeat(SPEC),
    common.strided(SPEC, ("x",)),
    common.no_tokens(TOKENS, carried={"final_state": "initial_state"}),
)  # fmt: skip
