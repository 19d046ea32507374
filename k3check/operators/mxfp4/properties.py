"""Checks of dequantisation that need no reference."""

from __future__ import annotations

from k3check.operators.mxfp4.cases import PackedSpec
from k3check.properties import common
from k3check.properties.along import Along

SPEC = PackedSpec()
ROWS = Along(SPEC, {"packed": 0, "scale": 0, "blocks": 0}, {"output": 0})

PROPERTIES = (
    common.order("row-order", ROWS),
    common.alone(ROWS, things="row"),
    common.repeat(SPEC),
    common.strided(SPEC, ("packed", "scale", "blocks")),
)
