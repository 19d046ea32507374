"""KDA's cases: inputs made so that each known mistake is visible in at least one of them.

No single family of inputs can do it. Random fast gates forget within a few tokens and hide every
mistake in the delta rule; slow gates hide every mistake in the gate; a zero initial state hides
its layout; one head hides everything about heads. (Measured in ``docs/``.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

import torch

from k3check.nouns.capabilities import not_taken
from k3check.nouns.case import Case
from k3check.nouns.lengths import in_multiples
from k3check.nouns.tensors import Tensors, generator
from k3check.operators.kda.sees import SEES

if TYPE_CHECKING:
    from collections.abc import Callable

    from k3check.nouns.shapes import Shapes
    from k3check.operators.kda.semantics import KdaInterface, KdaSemantics

    NormalDraw = Callable[..., torch.Tensor]

GateFamily = Literal["fast", "slow", "saturated", "mixed", "very_fast", "medium", "bursts"]
KeyFamily = Literal["iid", "correlated", "identical", "tiny"]


@dataclass(frozen=True)
class KdaSpec:
    """How to make one case's inputs.

    Attributes:
        tokens: T; rounded up where an interface needs a multiple.
        lengths: packed sequences instead of a batch.
        heads, value_heads, key_dim, value_dim: H, HV, K, V.
        gate, keys, state, beta: families of values.
        zeros: where the state is zero, one of zeros is given.
        fixed: the sizes are what it is about.
        shared_rates: the value heads of a query head have one rate and bias, as where a callable
            reads them by query head.
    """

    tokens: int = 130
    batch: int = 1
    lengths: tuple[int, ...] = ()
    heads: int = 2
    value_heads: int = 2
    key_dim: int = 64
    value_dim: int = 64
    gate: GateFamily = "fast"
    keys: KeyFamily = "iid"
    state: Literal["zero", "random", "huge"] = "random"
    beta: Literal["normal", "high", "low"] = "normal"
    scale: float | None = None
    zeros: bool = False
    fixed: bool = False
    shared_rates: bool = False


#: raw gate (centre, spread) per family for gates that forget more the larger x is
_FORGETTING = {
    "fast": (0.0, 1.0),
    "medium": (-3.0, 1.0),
    "slow": (-7.0, 0.5),
    "saturated": (20.0, 1.0),
    "very_fast": (0.0, 1.0),
}
#: and for the article's, where alpha = sigmoid(x) grows with x
_REMEMBERING = {
    "fast": (0.0, 1.5),
    "medium": (3.0, 2.0),
    "slow": (8.0, 0.5),
    "saturated": (-6.0, 1.0),
    "very_fast": (-6.0, 1.0),
}


def raw(case: Case, semantics: KdaSemantics, seed: int) -> Tensors:
    """The raw inputs of a case in float64, gate and beta before activation."""
    spec: KdaSpec = case.spec
    draw = generator(seed, "kda", case.name)
    T = sum(spec.lengths) or spec.tokens
    B, H, HV, K, V = spec.batch, spec.heads, spec.value_heads, spec.key_dim, spec.value_dim

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=draw, dtype=torch.float64)

    inputs: Tensors = {
        "q": normal(B, T, H, K),
        "k": keys(spec, normal),
        "v": normal(B, T, HV, V),
        "gate": raw_gate(spec, semantics, normal),
        "beta": normal(B, T, HV) + {"normal": 0.0, "high": 6.0, "low": -6.0}[spec.beta],
    }
    if spec.keys == "tiny":
        inputs["q"] = inputs["q"] * 1e-4
    if semantics.gate != "floor":
        # A rate that differs between heads and a bias that differs between heads and channels:
        # constant ones hide every mistake of indexing.
        fast = 3.0 if spec.gate == "very_fast" else 0.0
        inputs["A_log"] = torch.linspace(-0.5, 0.6, HV, dtype=torch.float64) + fast
        inputs["dt_bias"] = 0.5 * normal(HV, K)
        if spec.shared_rates and HV > H:
            first = torch.arange(HV) // (HV // H) * (HV // H)
            inputs |= {name: inputs[name][first] for name in ("A_log", "dt_bias")}
    if semantics.norm == "none":
        inputs["k"] = torch.nn.functional.normalize(inputs["k"], dim=-1)
    if spec.scale is not None:
        inputs["scale"] = spec.scale
    N = len(spec.lengths) or B
    if spec.state != "zero":
        size = 1000.0 if spec.state == "huge" else 1.0
        inputs["initial_state"] = size * normal(N, HV, K, V)
    elif spec.zeros:
        inputs["initial_state"] = torch.zeros(N, HV, K, V, dtype=torch.float64)
    if spec.lengths:
        ends = [0, *accumulate(spec.lengths)]
        inputs["cu_seqlens"] = torch.tensor(ends, dtype=torch.int64)
    return inputs


def keys(spec: KdaSpec, normal: NormalDraw) -> torch.Tensor:
    """[B, T, H, K] of the spec's key family."""
    T = sum(spec.lengths) or spec.tokens
    shape = (spec.batch, T, spec.heads, spec.key_dim)
    own = normal(*shape)
    shared = normal(spec.batch, 1, spec.heads, spec.key_dim)
    if spec.keys == "correlated":
        return 0.95 * shared + (1 - 0.95**2) ** 0.5 * own
    if spec.keys == "identical":
        # Sixteen equal keys in a row: near-parallel keys break a truncated or half-precision
        # inverse. Exactly equal ones with beta below one do so without integer luck.
        block = own[:, ::16].repeat_interleave(16, dim=1)[:, :T]
        return block + 1e-3 * own
    return 1e-4 * own if spec.keys == "tiny" else own


def raw_gate(spec: KdaSpec, semantics: KdaSemantics, normal: NormalDraw) -> torch.Tensor:
    """[B, T, HV, K] of the spec's gate family, before activation."""
    T = sum(spec.lengths) or spec.tokens
    noise = normal(spec.batch, T, spec.value_heads, spec.key_dim)
    table = _REMEMBERING if semantics.gate == "floor" else _FORGETTING
    if spec.gate == "mixed":
        (centre, spread), (other, wide) = table["saturated"], table["slow"]
        half = torch.arange(spec.key_dim) % 2 == 0
        return torch.where(half, centre + spread * noise, other + wide * noise)
    if spec.gate == "bursts":
        # Thirteen tokens of sixteen forget at once, three hardly: their small decays hang on a
        # large sum. Over the article's floor sums are smaller, so more tokens have to suffer.
        (centre, spread), (other, wide) = table["saturated"], table["slow"]
        forgetting = 9 if semantics.gate == "floor" else 13
        keeps = (torch.arange(T) % 16 >= forgetting).view(1, T, 1, 1)
        return torch.where(keeps, other + wide * noise, centre + spread * noise)
    centre, spread = table[spec.gate]
    return centre + spread * noise


def fit(case: Case, interface: KdaInterface) -> Case | str:
    """The case as an interface can take it, or the reason why it cannot."""
    missing = case.needs - interface.supports
    if missing:
        return not_taken(missing)
    spec: KdaSpec = case.spec
    if "initial_state" not in interface.supports and spec.state != "zero":
        spec = replace(spec, state="zero", zeros=False)
    if interface.key_dim is not None:
        V = interface.key_dim if spec.value_dim == spec.key_dim else spec.value_dim
        spec = replace(spec, key_dim=interface.key_dim, value_dim=V)
    if interface.heads is not None:
        spec = replace(spec, heads=interface.heads, value_heads=interface.heads)
    spec = replace(spec, shared_rates=interface.rates == "query")
    return in_multiples(replace(case, spec=spec), interface)


#: Cases whose mistake needs another shape than the usual one, and why.
OTHER_SHAPES = {
    "packed": "resets between sequences exist where there are several",
    "fast-zero-state": "a kernel without an initial state is another kernel",
    "value-dim": "a transposed state shows in its shape where V is not K",
    "heads": "query heads and value heads change places together",
}


def sized(case: Case, interface: KdaInterface, shapes: Shapes) -> Case:
    """The case with the sizes that a run asks for.

    Where shapes are dear, all cases have those of the released model (K = V = 128), two value
    heads a query head if the callable takes that, and an initial state, if only of zeros.
    """
    spec: KdaSpec = case.spec
    if spec.fixed:
        return case
    usual = 128 if shapes.few else spec.key_dim
    K = shapes.key_dim or usual
    V = shapes.value_dim or (K // 2 if spec.value_dim < spec.key_dim else K)
    H, HV = spec.heads, spec.value_heads
    if shapes.heads is not None:
        grouped = HV > H and not shapes.few
        H, HV = shapes.heads, 2 * shapes.heads if grouped else shapes.heads
    elif shapes.few:
        H, HV = (4, 4) if case.name == "heads" else (2, 4)
        if "grouped" not in interface.supports:
            H = HV = 4
    zeros = spec.zeros or (shapes.few and case.name != "fast-zero-state")
    needs = case.needs if V != K else case.needs - {"value_dim"}
    # Some kernels are tuned for a batch, too: that of the cache suite's sequences.
    batch = min(spec.batch, 2) if shapes.few and case.name == "one-token" else spec.batch
    spec = replace(spec, batch=batch, heads=H, value_heads=HV, key_dim=K, value_dim=V, zeros=zeros)
    return replace(case, spec=spec, needs=needs | ({"value_dim"} if V != K else set()))


def _case(name: str, why: str, *, profile: str = "full", **spec: object) -> Case:
    made = KdaSpec(**spec)  # type: ignore[arg-type] # checked by the dataclass's users below
    needs = set()
    if made.lengths:
        needs.add("packed")
    if made.value_heads > made.heads:
        needs.add("grouped")
    if made.value_dim != made.key_dim:
        needs.add("value_dim")
    if made.scale is not None:
        needs.add("scale")
    return Case(name, why, SEES[name], profile, frozenset(needs), made)


SEQUENCES: tuple[Case, ...] = (
    _case(
        "fast-gates",
        "gates that forget quickly: gate formula, bias, rate, exponent base, channel order",
        profile="quick",
    ),
    _case(
        "slow-correlated",
        "slow gates and correlated keys: delta rule, triangular system, state hand-over",
        gate="slow",
        keys="correlated",
        profile="quick",
    ),
    _case(
        "mixed-grouped",
        "half the channels forget at once, half hardly; two value heads a query head",
        gate="mixed",
        heads=2,
        value_heads=4,
        tokens=100,
        profile="quick",
    ),
    _case(
        "tiny-norms",
        "q and k of norm 1e-3: where eps stands in the norm",
        gate="medium",
        keys="tiny",
        tokens=66,
        profile="quick",
    ),
    _case(
        "packed",
        "packed sequences of length 0, 1, 15, 16, 17, 63, 64, 65: resets and partial chunks",
        lengths=(5, 1, 17, 0, 16, 63, 15, 65),
        gate="medium",
        profile="quick",
    ),
    _case(
        "saturated",
        "every gate at its bound: range of the decay factors",
        gate="saturated",
        tokens=130,
    ),
    _case(
        "bursts",
        "gates that forget at once, then hardly: precision of the cumulative decay",
        gate="bursts",
        tokens=96,
    ),
    _case(
        "identical-keys",
        "runs of near-identical keys, beta near one, slow gates: stability of the inverse",
        gate="slow",
        keys="identical",
        beta="high",
        tokens=128,
    ),
    _case(
        "fast-zero-state",
        "no initial state: what a first prefill sees",
        state="zero",
        gate="medium",
        tokens=65,
    ),
    _case(
        "huge-state",
        "an initial state of size 1000: its layout and its decay",
        state="huge",
        gate="medium",
        tokens=64,
    ),
    _case(
        "value-dim",
        "V smaller than K: transpositions that a square state hides",
        key_dim=64,
        value_dim=32,
        gate="medium",
        tokens=70,
    ),
    _case(
        "one-token",
        "a single token with a state: decode",
        tokens=1,
        batch=3,
        gate="medium",
        profile="quick",
    ),
    _case(
        "scaled",
        "an explicit scale of 0.7 and a batch of two",
        scale=0.7,
        batch=2,
        gate="medium",
        tokens=67,
    ),
    _case(
        "head-128",
        "the released head size, K = V = 128, over several chunks",
        key_dim=128,
        value_dim=128,
        gate="slow",
        keys="correlated",
        tokens=200,
    ),
    _case(
        "very-fast",
        "rates of exp(3): the largest decays a softplus gate reaches",
        gate="very_fast",
        tokens=96,
    ),
    replace(
        _case(
            "long-1k",
            "1090 tokens: more than the threads of a block",
            gate="slow",
            tokens=1090,
            heads=1,
            value_heads=1,
        ),
        users_only=True,
    ),
    _case(
        "long-2k",
        "2048 tokens with gates near one: growth of the error over time",
        gate="slow",
        tokens=2048,
        heads=1,
        value_heads=1,
        profile="stress",
    ),
)

#: The stress profile gives it the configured context's length.
STRETCHED = _case(
    "context",
    "indices, launch limits and drift over the whole context",
    gate="slow",
    heads=1,
    value_heads=1,
    profile="stress",
)

STEPS: tuple[Case, ...] = (
    _case("step-fast", "one token, quick forgetting", tokens=1, batch=2, profile="quick"),
    _case(
        "step-slow",
        "one token, slow forgetting: correction and write",
        tokens=1,
        batch=2,
        gate="slow",
        profile="quick",
    ),
    _case(
        "step-grouped",
        "one token, two value heads a query head",
        tokens=1,
        batch=2,
        gate="mixed",
        value_heads=4,
        profile="quick",
    ),
    _case("step-tiny", "q and k of norm 1e-3", tokens=1, batch=2, gate="medium", keys="tiny"),
    _case("step-huge", "a state of size 1000", tokens=1, gate="medium", state="huge"),
    _case("step-value-dim", "V smaller than K", tokens=1, gate="medium", value_dim=32),
)
