"""``kda_gate``: the raw projection to the log decay, as an operator of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from k3check.model import Message
from k3check.mutate.site import at, note
from k3check.nouns.arguments import taken
from k3check.nouns.case import Case
from k3check.nouns.convention import Binding, Convention, Example
from k3check.nouns.operator import Operator, Output
from k3check.nouns.recipe import EXACT, Arithmetic, Recipe
from k3check.nouns.tensors import Tensors, generator
from k3check.operators.kda import candidate, gate_faults
from k3check.operators.kda import gate as front
from k3check.operators.kda.sees import GATE_SEES
from k3check.operators.kda.semantics import SEMANTICS, GateInterface, KdaSemantics
from k3check.properties import common
from k3check.properties.along import Along

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


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
    if semantics.gate != "floor":
        low, high = spec.rate
        rates = torch.linspace(low, high, spec.heads + spec.spare_rates, dtype=torch.float64)
        inputs["A_log"] = rates
        inputs["dt_bias"] = 0.5 * torch.randn(
            spec.heads, spec.key_dim, generator=draw, dtype=torch.float64
        )
    return inputs


def present(
    raw_inputs: Tensors, semantics: KdaSemantics, _interface: GateInterface, recipe: Recipe
) -> Tensors:
    """Round to the recipe: the projection in io precision, the parameters in float32."""
    parameters = torch.float64 if recipe.io == torch.float64 else torch.float32
    inputs: Tensors = {"gate": raw_inputs["gate"].to(recipe.io)}
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
        wide["gate"],
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


def _bind_k3check(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        tensors = {n: v for n, v in inputs.items() if n != "floor" or v is not None}
        if inputs["lower_bound"] is None:  # a softplus gate may do without the parameter
            tensors = taken(names, tensors, "lower_bound")
        return {"decay": target(**{**tensors, **options})}

    return Binding(GateInterface(), call)


def _bind_fla(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """naive_kda_gate, naive_kda_lowerbound_gate and fused_kda_gate of fla.

    A function without a ``lower_bound`` parameter is the softplus gate, whatever the model is.
    """

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        bias = inputs.get("dt_bias")
        arguments: dict[str, Any] = {
            "g": inputs["gate"],
            "A_log": inputs.get("A_log"),
            "dt_bias": None if bias is None else bias.flatten(),
        }
        if names is None or "lower_bound" in names:
            arguments["lower_bound"] = inputs["lower_bound"]
        return {"decay": target(**{**arguments, **options})}

    return Binding(GateInterface(supports=frozenset()), call)


def _bind_article(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        return {"decay": target(inputs["gate"], **options)}

    return Binding(GateInterface(output="alpha"), call)


CONVENTIONS = {
    c.name: c
    for c in (
        Convention(
            "k3check",
            "gate, A_log, dt_bias, lower_bound -> log decay",
            ("gate", "A_log", "dt_bias"),
            _bind_k3check,
            typical=("lower_bound", "floor"),
            example=Example(
                "kda_gate",
                "kernels/gate.py:kda_gate",
                "kda_gate(gate, A_log, dt_bias, lower_bound=-5.0)",
                "the log decay [B, T, HV, K], natural logarithm; A_log may have more entries "
                "than there are heads (K3's checkpoint stores 128 for 96): read A_log[:HV]",
            ),
        ),
        Convention(
            "fla",
            "flash-linear-attention: naive_kda_gate, naive_kda_lowerbound_gate, fused_kda_gate",
            ("g", "A_log", "dt_bias"),
            _bind_fla,
            typical=("lower_bound",),
            library="fla",
            example=Example(
                "kda_gate",
                "fla.ops.kda.gate:fused_kda_gate",
                "fused_kda_gate(g, A_log, dt_bias=None, lower_bound=None, "
                "output_dtype=torch.float32)",
                "the log decay [B, T, HV, K], natural logarithm",
            ),
        ),
        Convention(
            "article",
            "alpha of the logits: logits -> sigmoid -> [floor, 1]",
            ("logits",),
            _bind_article,
            positional=True,
            unlike=("A_log", "dt_bias", "lower_bound"),
            example=Example(
                "kda_gate",
                "kernels/gate.py:alpha_of",
                "alpha_of(logits)",
                "the decay itself, alpha [B, T, HV, K]",
            ),
        ),
    )
}


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
TOKENS = Along(USUAL, {"gate": 1}, {"decay": 1})
HEADS = Along(GateSpec(spread=2.0, heads=4), {"gate": 2, "A_log": 0, "dt_bias": 0}, {"decay": 2})
PROPERTIES = (*common.by_token(TOKENS, ("gate",)), common.order("head-order", HEADS))

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
