"""Checks of router, activation and expert layer that need no reference."""

from __future__ import annotations

from k3check.compare.sets import SCORES
from k3check.operators.moe.latent_cases import LatentSpec
from k3check.operators.moe.router_cases import RouterSpec
from k3check.operators.moe.situ_cases import SituSpec
from k3check.properties import common
from k3check.properties.along import Along

# What is compared of a choice is the weight that each expert has: ids without order say the same.
ROUTED = {"ids": 0, "weights": 0, SCORES: 0}
ROUTER_TOKENS = Along(RouterSpec(), {"hidden": 0, "logits": 0}, ROUTED)
ROUTER_EXPERTS = Along(
    RouterSpec(), {"weight": 0, "logits": 1, "bias": 0}, {"weights": 1, SCORES: 1}
)
ROUTER = (
    *common.by_token(ROUTER_TOKENS, ("hidden", "logits")),
    common.order("expert-order", ROUTER_EXPERTS),
)

SITU_TOKENS = Along(SituSpec(), {"x": 0, "gate": 0, "up": 0}, {"output": 0})
SITU = common.by_token(SITU_TOKENS, ("x", "gate", "up"))

#: half of the tokens have one expert first: a fixed capacity drops some of them, by their order
CROWDED = LatentSpec(load="crowded", tokens=32)
LATENT_TOKENS = Along(CROWDED, {"x": 0, "z": 0, "ids": 0, "weights": 0}, {"output": 0})
LATENT_EXPERTS = Along(CROWDED, {"w1": 0, "w2": 0, "w3": 0}, {}, labels=("ids",))
LATENT = (
    *common.by_token(LATENT_TOKENS, ("x", "z")),
    common.order("expert-order", LATENT_EXPERTS),
)
