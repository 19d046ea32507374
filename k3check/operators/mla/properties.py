"""Checks of gated MLA that need no reference."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import torch

from k3check.compare.twice import Same, inputs_of, outputs_of
from k3check.operators.mla.cases import MlaSpec
from k3check.properties import common
from k3check.properties.along import Along

if TYPE_CHECKING:
    from k3check.nouns.operator import Candidate
    from k3check.nouns.tensors import Tensors
    from k3check.operators.mla.semantics import MlaInterface

SPEC = MlaSpec()
#: what a call of some tokens has of them
PER_TOKEN = {"x": 1, "q": 1, "rows": 1}
TOKENS = Along(SPEC, PER_TOKEN, {"output": 1, "cache": 1})
BATCH = Along(MlaSpec(batch=4), dict.fromkeys(PER_TOKEN, 0), {"output": 0, "cache": 0})
HEADS = {"w_qb": 0, "w_kvb": 0, "w_g": 0, "w_o": 1, "q": 2}


def heads(interface: MlaInterface) -> Along:
    """The layer adds its heads up, so their order is nowhere in its output."""
    outputs = {"output": 2} if interface.part == "core" else {}
    return Along(MlaSpec(heads=4), HEADS, outputs, count="heads")


def split(candidate: Candidate, seed: int) -> Same | str:
    """A sequence in one call, and in three over the rows of the earlier ones."""
    m = candidate.interface.multiple_of
    spec = SPEC if m == 1 else MlaSpec(tokens=2 * m)
    whole = inputs_of(candidate, spec, "split", seed)
    if isinstance(whole, str):
        return whole
    ends = (0, 6, 7, SPEC.tokens) if m == 1 else (0, m, 2 * m)
    outputs, rows = [], []
    past: Tensors = {}
    for start, end in pairwise(ends):
        given = TOKENS.part(whole, start, end - start)
        found = outputs_of(candidate, {**given, **past})
        outputs.append(found["output"])
        # A callable of the attention alone is handed every row by its caller.
        rows.append(found["cache"] if "cache" in found else given["rows"])
        past = {"past": torch.cat(rows, dim=1)}
    at_once = outputs_of(candidate, whole)
    joined = {"output": torch.cat(outputs, dim=1), "cache": past["past"]}
    return Same({name: joined[name] for name in at_once}, at_once, whole)


PROPERTIES = (
    common.made("split", "one call equals several over cached rows", "K3O-727", split, ("past",)),
    common.causal(TOKENS, ("x", "rows")),
    common.order("head-order", heads),
    common.order("batch-order", BATCH),
    common.repeat(SPEC),
    common.strided(SPEC, tuple(PER_TOKEN)),
)
