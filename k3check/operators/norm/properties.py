"""Checks of the gated norm that need no reference."""

from __future__ import annotations

from k3check.operators.norm.cases import NormSpec
from k3check.properties import common
from k3check.properties.along import Along

SPEC = NormSpec()
TOKENS = Along(SPEC, {"x": 1, "gate": 1}, {"output": 1})
HEADS = Along(NormSpec(heads=4), {"x": 2, "gate": 2}, {"output": 2})

PROPERTIES = (*common.by_token(TOKENS, ("x", "gate")), common.order("head-order", HEADS))
