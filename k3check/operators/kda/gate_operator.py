"""``kda_gate``: the raw projection to the log decay, as an operator of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from k3check.model import Message
from k3check.mutate.site import at, note
from k3check.nouns.case import Case
from k3check.nouns.operator import Operator, Output
from k3check.nouns.recipe import EXACT, Arithmetic, Recipe
from k3check.nouns.tensors import Tensors, generator
from k3check.operators.kda import candidate, gate_faults
from k3check.operators.kda import gate as front
from k3check.operators.kda.gate_conventions import CONVENTIONS
from k3check.operators.kda.sees import GATE_SEES
from k3check.operators.kda.semantics import SEMANTICS, GateInterface, KdaSemantics
from k3check.properties import common
from k3check.properties.along import Along

if TYPE_CHECKING:
    from collections.abc import Callable

#: The article's bottleneck, made small: width of x, units, what the constant unit is fed.
WIDTH, UNITS, CONSTANT = 32, 16, 2.0
#: Mean of silu(z)^2 for a standard normal z.
SILU_SQUARED = 0.355


@dataclass(frozen=True)
class GateSpec:
    """One case: centre and spread of the raw values, heads, and extra entries of A_log."""

    centre: float = 0.0
    spread: float = 1.0
    tokens: int = 33
    heads: int = 3
    key_dim: int = 64
    spare_rates: int = 0
    rate: tuple[float, float] = (-0.5, 0.6)


def raw(case: Case, semantics: KdaSemantics, seed: int) -> Tensors:
    """Raw gate [B, T, HV, K], A_log [HV + spare], dt_bias [HV, K], in float64."""
    spec: GateSpec = case.spec
    draw = generator(seed, "kda_gate", case.name)
    shape = (2, spec.tokens, spec.heads, spec.key_dim)
    noise = torch.randn(*shape, generator=draw, dtype=torch.float64)
    inputs: Tensors = {"gate": spec.centre + spec.spread * noise}
    if semantics.gate == "floor":
        inputs |= bottleneck(spec, draw)
    else:
        low, high = spec.rate
        rates = torch.linspace(low, high, spec.heads + spec.spare_rates, dtype=torch.float64)
        inputs["A_log"] = rates
        inputs["dt_bias"] = 0.5 * torch.randn(
            spec.heads, spec.key_dim, generator=draw, dtype=torch.float64
        )
    return inputs


def bottleneck(spec: GateSpec, draw: torch.Generator) -> Tensors:
    """x [B, T, HV, D], W_alpha [D_gate, D], W_alpha_down [K, D_gate] of logits as in the spec.

    The last entry of x is one and only the last unit of the bottleneck sees it: it carries the
    centre of the logits.
    """

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=draw, dtype=torch.float64)

    x = normal(2, spec.tokens, spec.heads, WIDTH)
    x[..., -1] = 1
    first = normal(UNITS, WIDTH) / WIDTH**0.5
    first[:, -1] = 0
    first[-1] = 0
    first[-1, -1] = CONSTANT
    second = normal(spec.key_dim, UNITS)
    second *= spec.spread / (UNITS * SILU_SQUARED) ** 0.5
    second[:, -1] = spec.centre / torch.nn.functional.silu(torch.tensor(CONSTANT)).item()
    return {"x": x, "W_alpha": first, "W_alpha_down": second}


_ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "silu": torch.nn.functional.silu,
    "none": torch.clone,
    "relu": torch.relu,
    "gelu": torch.nn.functional.gelu,
    "sigmoid": torch.sigmoid,
}


def logits(semantics: KdaSemantics, wide: Tensors) -> torch.Tensor:
    """The logits of the article's gate: W_alpha_down act(W_alpha x), [B, T, HV, K]."""
    hidden = wide["x"] @ wide["W_alpha"].T
    act = _ACTIVATIONS[semantics.bottleneck]
    return act(hidden) @ wide["W_alpha_down"].T


def present(
    raw_inputs: Tensors, semantics: KdaSemantics, interface: GateInterface, recipe: Recipe
) -> Tensors:
    """Round to the recipe: the projection in io precision, the parameters in float32."""
    parameters = torch.float64 if recipe.io == torch.float64 else torch.float32
    given = ("x", "W_alpha", "W_alpha_down") if interface.bottleneck else ("gate",)
    inputs: Tensors = {name: raw_inputs[name].to(recipe.io) for name in given}
    for name in ("A_log", "dt_bias"):
        if name in raw_inputs:
            inputs[name] = raw_inputs[name].to(parameters)
    inputs["lower_bound"] = semantics.lower_bound if semantics.gate == "lower_bound" else None
    inputs["floor"] = semantics.floor if semantics.gate == "floor" else None
    return inputs


def evaluate(
    semantics: KdaSemantics,
    interface: GateInterface,
    inputs: Tensors,
    arithmetic: Arithmetic = EXACT,
) -> Tensors:
    """The decay in the interface's form, [B, T, HV, K]."""
    wide = {
        name: value.to(arithmetic.compute)
        for name, value in inputs.items()
        if isinstance(value, torch.Tensor)
    }
    g = front.log_decay(
        semantics,
        logits(semantics, wide) if interface.bottleneck else wide["gate"],
        wide.get("A_log"),
        wide.get("dt_bias"),
        coarse_log=arithmetic.coarse_log,
    )
    note(sizes={"K": g.shape[-1]}, tokens=g.shape[1])
    g = at("log decay", front.choose_gate(semantics, g), front.GATE)
    if interface.output == "alpha":
        g = g.exp()
    elif interface.output == "log2":
        g = g / front.LN2
    kept = arithmetic.compute if arithmetic.output == torch.float64 else torch.float32
    return {"decay": g.to(kept)}


def _case(name: str, why: str, profile: str = "full", **spec: Any) -> Case:
    made = GateSpec(**spec)
    spare = made.spare_rates > 0
    needs = frozenset({"spare_rates"} if spare else ())
    entries = {"entries": made.heads + made.spare_rates, "heads": made.heads}
    said = Message("K3O-034", entries) if spare else None
    return Case(name, why, GATE_SEES[name], profile, needs, made, on_crash=said)


CASES = (
    _case("spread", "raw values around zero: formula, rate, bias, sign", "quick", spread=2.0),
    _case("low", "raw values around -7: where the decay is next to none", "quick", centre=-7.0),
    _case("high", "raw values around 20: saturation at the bound", centre=20.0),
    _case("huge", "raw values around +-100: overflow of a branch-free softplus", spread=100.0),
    _case(
        "spare-rates",
        "A_log longer than the heads (K3 stores 128 for 96): the first count",
        spare_rates=2,
    ),
    _case("fast-rates", "rates up to exp(4)", rate=(1.0, 4.0)),
)

USUAL = GateSpec(spread=2.0)
TOKENS = Along(USUAL, {"gate": 1, "x": 1}, {"decay": 1})
BY_HEAD = {"gate": 2, "x": 2, "A_log": 0, "dt_bias": 0}
HEADS = Along(GateSpec(spread=2.0, heads=4), BY_HEAD, {"decay": 2})
PROPERTIES = (*common.by_token(TOKENS, ("gate", "x")), common.order("head-order", HEADS))

OPERATOR = Operator(
    name="kda_gate",
    suite="kda",
    title="KDA gate",
    semantics=SEMANTICS,
    outputs=(Output("decay", ("batch", "token", "head", "channel"), dtype="any"),),
    cases=CASES,
    conventions=CONVENTIONS,
    raw=raw,
    present=present,
    evaluate=evaluate,
    builtin=candidate.builtin("kda_gate"),
    faults=gate_faults.faults,
    properties=PROPERTIES,
)
