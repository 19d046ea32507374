"""The operators of the mixture of experts, put together."""

from __future__ import annotations

from k3check.nouns.check import Family
from k3check.nouns.operator import Operator, Output
from k3check.operators.moe import (
    article,
    candidate,
    conventions,
    faults,
    latent,
    latent_cases,
    properties,
    router,
    router_cases,
    situ,
    situ_cases,
)
from k3check.operators.moe.semantics import LATENT, ROUTER, SITU

MOE_ROUTER = Operator(
    name="moe_router",
    suite="moe",
    title="choice and weights of the experts",
    semantics={"k3": ROUTER, "kimi-linear": ROUTER},
    outputs=(
        Output("ids", ("token", "slot"), dtype="any", compare="set"),
        Output("weights", ("token", "expert"), dtype="any"),
    ),
    cases=router_cases.CASES,
    conventions=conventions.ROUTER,
    raw=router_cases.raw,
    present=router_cases.present,
    evaluate=router.evaluate,
    builtin=candidate.router_builtin,
    faults=faults.router_faults,
    baseline=router.baseline,
    properties=properties.ROUTER,
)

SITU_GLU = Operator(
    name="situ_glu",
    suite="moe",
    title="SiTU-GLU",
    semantics={"k3": SITU},
    outputs=(Output("output", ("token", "feature")),),
    cases=situ_cases.CASES,
    conventions=conventions.SITU,
    raw=situ_cases.raw,
    present=situ_cases.present,
    evaluate=situ.evaluate,
    builtin=candidate.situ_builtin,
    faults=faults.situ_faults,
    properties=properties.SITU,
)

LATENT_MOE = Operator(
    name="latent_moe",
    suite="moe",
    title="the latent expert layer",
    semantics={"k3": LATENT},
    outputs=(Output("output", ("token", "feature")),),
    cases=latent_cases.CASES,
    conventions=conventions.LATENT,
    raw=latent_cases.raw,
    present=latent_cases.present,
    evaluate=latent.evaluate,
    builtin=candidate.latent_builtin,
    faults=faults.latent_faults,
    fit=latent_cases.fit,
    baseline=latent.baseline,
    block_operands=True,
    properties=properties.LATENT,
)

FAMILY = Family("moe", (MOE_ROUTER, SITU_GLU, LATENT_MOE), article.checks)
