"""Checks of one mix that need no reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.operators.attn_res.cases import MixSpec
from k3check.properties import common
from k3check.properties.along import Along

if TYPE_CHECKING:
    from k3check.operators.attn_res.semantics import AttnResInterface

SPEC = MixSpec(sizes="spread")
TOKENS = Along(SPEC, {"sources": 1, "delta": 0}, {"output": 0})
SOURCES = Along(SPEC, {"sources": 0}, {})


def sources(interface: AttnResInterface) -> Along | str:
    """All sources are alike, unless something is added to the last one."""
    if interface.delta:
        return "the callable adds to the last source, so the order is part of the mix"
    return SOURCES


PROPERTIES = (
    *common.by_token(TOKENS, ("sources", "delta"), "mix"),
    common.order("source-order", sources, "mix"),
)
