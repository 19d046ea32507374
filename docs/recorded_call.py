"""What a convention passes: its own call, recorded on inputs of k3check's, with sizes as letters.

For the pages that :mod:`make_conventions` and :mod:`make_operator_conventions` write.
"""

from __future__ import annotations

import contextlib
import inspect
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch

from k3check.nouns.recipe import Recipe
from k3check.operators.attn_res.cases import MixSpec
from k3check.operators.conv.cases import ConvSpec
from k3check.operators.kda.cases import KdaSpec
from k3check.operators.kda.gate_operator import GateSpec
from k3check.operators.mla.cases import MlaSpec
from k3check.operators.moe.latent_cases import LatentSpec
from k3check.operators.moe.router_cases import RouterSpec
from k3check.operators.moe.situ_cases import SituSpec
from k3check.operators.mxfp4.cases import PackedSpec
from k3check.operators.norm.cases import NormSpec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from k3check.nouns.convention import Convention, Example
    from k3check.nouns.operator import Operator

    #: parameter -> what is passed for it
    Call = dict[str, str]

#: Each dtype stands for a part of the recipe, so that a recorded one says which part it is.
RECIPE = Recipe(io=torch.bfloat16, state=torch.float16)
DTYPES = {torch.bfloat16: "dtype", torch.float16: "state_dtype"}
#: One spec a kind of case, with sizes that differ from each other, and what they are called.
SPECS: Mapping[str, tuple[tuple[Any, Mapping[int, str]], ...]] = {
    "short_conv": (
        (ConvSpec(batch=2, tokens=37, channels=24),
         {2: "B", 37: "T", 24: "C", 4: "W", 3: "W - 1"}),
        (ConvSpec(lengths=(5, 1, 7, 8, 6), channels=24),
         {27: "T", 24: "C", 4: "W", 5: "N", 6: "N + 1", 3: "W - 1"}),
    ),
    "gated_rms_norm": (
        (NormSpec(batch=2, tokens=25, heads=3, dim=48), {2: "B", 25: "T", 3: "H", 48: "D"}),
    ),
    "gated_mla": (
        (MlaSpec(tokens=5, past=6, latent=26),
         {2: "B", 5: "T", 6: "P", 11: "P + T", 40: "D", 20: "Rq", 3: "H", 16: "nope", 8: "pe",
          12: "value", 26: "latent", 34: "latent + pe", 72: "H (nope + pe)",
          84: "H (nope + value)", 36: "H value"}),
        (MlaSpec(tokens=5, latent=26),
         {2: "B", 5: "T", 40: "D", 20: "Rq", 3: "H", 16: "nope", 8: "pe", 12: "value",
          26: "latent", 34: "latent + pe", 72: "H (nope + pe)", 84: "H (nope + value)",
          36: "H value"}),
    ),
    "mxfp4_dequant": ((PackedSpec(), {12: "R", 80: "C / 2", 5: "C / 32"}),),
    "attn_res": (
        (MixSpec(), {6: "N", 5: "N - 1", 33: "T", 128: "D", 8: "slots"}),
    ),
    "moe_router": (
        (RouterSpec(dim=40, top_k=7), {48: "T", 40: "D", 64: "E", 7: "k"}),
    ),
    "situ_glu": ((SituSpec(), {48: "T", 32: "I", 64: "2 I"}),),
    "latent_moe": (
        (LatentSpec(tokens=17),
         {17: "T", 40: "D", 24: "L", 16: "I", 32: "2 I", 20: "S", 8: "E", 3: "k"}),
    ),
    "kda_gate": (
        (GateSpec(), {2: "B", 33: "T", 3: "HV", 64: "K", 192: "HV K"}),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Argument:
    """One parameter of a recorded call: what is passed, and when."""

    name: str
    passed: str
    when: str


class _Recorded(BaseException):
    """Ends a call as soon as its arguments are known."""


class _Instance:
    """An object of a class under test: notes what it is called with."""

    def __init__(self, calls: list[tuple[tuple[Any, ...], dict[str, Any]]]) -> None:
        self.calls = calls
        self.weight = SimpleNamespace(copy_=lambda _: None)

    def to(self, *_: Any) -> _Instance:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls.append((args, kwargs))
        raise _Recorded


def parameters(signature: str) -> tuple[str, ...]:
    """The parameter names of a signature in an example, in order, ``**kwargs`` left out."""
    scope: dict[str, Any] = {"torch": torch}
    exec(f"def {signature}: ...", scope)  # noqa: S102 - from our own files, not from a user
    function = scope[signature.partition("(")[0]]
    found = inspect.signature(function).parameters.values()
    return tuple(p.name for p in found if p.kind is not inspect.Parameter.VAR_KEYWORD)


def arguments(
    operator: Operator, convention: Convention, example: Example
) -> tuple[list[Argument], list[str]]:
    """(what the function is called with, what its instance is where it is a class)."""
    order = parameters(example.signature)
    specs = SPECS.get(operator.name) or kda_specs(operator, convention, example)
    every = frozenset(order)
    recorded = [record(operator, convention, example, every, *spec) for spec in specs]
    calls = [call for call, _ in recorded if call]
    instance = recorded[0][1]
    names = dict.fromkeys(name for call in calls for name in call)
    found = []
    for name in sorted(names, key=lambda n: order.index(n) if n in order else len(order)):
        values = [call[name] for call in calls if name in call]
        passed = next((value for value in values if value != "None"), "None")
        if passed != "None" and "None" in values:
            passed += ", else None"
        found.append(Argument(name, passed, when(operator, convention, example, name, calls)))
    return found, instance


def when(
    operator: Operator, convention: Convention, example: Example, name: str, calls: list[Call]
) -> str:
    """Whether an argument is always passed, or what it depends on."""
    if name in example.options:
        return "your option"
    seldom = not all(name in call for call in calls)
    if name in convention.required:
        return "always"
    rest = frozenset(parameters(example.signature)) - {name}
    specs = SPECS.get(operator.name) or kda_specs(operator, convention, example)
    spared = not any(
        name in record(operator, convention, example, rest, *spec)[0] for spec in specs
    )
    if spared:
        return "where your function has it" + (", in some cases" if seldom else "")
    return "in some cases" if seldom else "always"


def record(
    operator: Operator,
    convention: Convention,
    example: Example,
    names: frozenset[str],
    spec: Any,
    letters: Mapping[int, str],
) -> tuple[Call, list[str]]:
    """One call of a convention: parameter -> what is passed; then the instance's arguments."""
    binding = convention.bind(names, example.options)
    semantics = next(s for n, s in operator.semantics.items() if n not in binding.excludes)
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def target(*args: Any, **kwargs: Any) -> Any:
        calls.append((args, kwargs))
        if convention.name == "module":
            return _Instance(calls)
        raise _Recorded

    named = (("packed", "lengths"), ("past", "past"), ("scale", "scale"))
    needs = {name for name, what in named if getattr(spec, what, None)}
    case = replace(operator.cases[0], spec=spec, needs=frozenset(needs))
    if operator.name == "attn_res" and binding.interface.stack:
        inputs, letters = stack_inputs(), {33: "T", 128: "D", 8: "2 L", 9: "2 L + 1"}
    else:
        if needs - binding.interface.supports:
            return {}, []
        fitted = operator.fit(case, binding.interface)
        if isinstance(fitted, str):
            return {}, []
        given = operator.raw(fitted, semantics, 0)
        inputs = operator.present(given, semantics, binding.interface, RECIPE)
        letters = {**kda_letters(inputs), **letters} if "beta" in inputs and "v" in inputs else (
            letters
        )  # fmt: skip
    with contextlib.suppress(_Recorded):
        binding.call(target, inputs)
    (args, kwargs), *later = calls
    order = parameters(example.signature)
    call = dict(zip(order, args, strict=False)) | kwargs
    described = {name: describe(value, letters) for name, value in call.items()}
    instance = [describe(x, letters) for given, _ in later for x in given]
    return described, instance


def describe(value: Any, letters: Mapping[int, str]) -> str:
    """``[B, T, C] dtype`` of a tensor, the value of a small thing, the sort of anything else."""
    if isinstance(value, torch.Tensor):
        shape = ", ".join(letters.get(n, str(n)) for n in value.shape)
        dtype = DTYPES.get(value.dtype, str(value.dtype).removeprefix("torch."))
        return f"[{shape}] {dtype}"
    if isinstance(value, list):
        sort = describe(value[0], letters) if isinstance(value[0], torch.Tensor) else "callables"
        return f"a list of {letters.get(len(value), len(value))}: {sort}"
    if isinstance(value, torch.nn.Linear):
        return f"a Linear with weight {describe(value.weight, letters)}"
    if isinstance(value, torch.nn.Module):
        return f"a module with weight {describe(value.weight, letters)} and variance_epsilon"
    if isinstance(value, SimpleNamespace):
        return f"a stand-in with {', '.join(vars(value))}"
    if isinstance(value, torch.dtype):
        return "torch's dtype, the recipe's"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, bool) or not isinstance(value, int):
        return f"{value!r}"
    return f"{letters[value]}, an int" if value in letters else f"{value}"


def stack_inputs() -> dict[str, Any]:
    """What the convention of a whole stack gets: two layers a block, four layers."""
    T, D, L = 33, 128, 4
    made = {"hidden": (T, D), "queries": (2 * L + 1, D), "gains": (2 * L + 1, D)}
    inputs: dict[str, Any] = {n: torch.zeros(s, dtype=RECIPE.io) for n, s in made.items()}
    return inputs | {"sublayers": [len] * (2 * L), "block_size": 2, "eps": 1e-5}


def kda_specs(
    operator: Operator, convention: Convention, example: Example
) -> Iterator[tuple[KdaSpec, Mapping[int, str]]]:
    """Plain and packed inputs of KDA that an interface takes; their letters are the tensors'."""
    interface = convention.bind(frozenset(parameters(example.signature)), example.options).interface
    tokens = 1 if operator.name == "kda_step" else 7 * interface.multiple_of
    grouped = "grouped" in interface.supports
    spec = KdaSpec(
        tokens=tokens,
        batch=5,
        heads=3,
        value_heads=9 if grouped else 3,
        key_dim=64,
        value_dim=32 if "value_dim" in interface.supports else 64,
    )
    yield spec, {}
    if "packed" in interface.supports and tokens > 1:
        yield replace(spec, batch=1, lengths=(4, 8, 11, 2, 16)), {}
    if "scale" in interface.supports and interface.readout:
        yield replace(spec, scale=0.7), {}
    if "initial_state" in interface.supports and tokens > 1:
        yield replace(spec, state="zero"), {}


def kda_letters(inputs: Mapping[str, Any]) -> dict[int, str]:
    """Sizes of KDA's inputs by what they are called."""
    B, T, HV, V = inputs["v"].shape
    H, K = inputs["k"].shape[2:]
    lengths = inputs.get("cu_seqlens")
    N = B if lengths is None else len(lengths) - 1
    v_heads = "H" if HV == H else "HV"
    v_width = "K" if V == K else "V"
    named = {
        H * K: "H K",
        HV * K: f"{v_heads} K",
        HV: v_heads,
        H: "H",
        V: v_width,
        K: "K",
        N + 1: "N + 1",
        2 * N + 3: "slots",
        B * T: "tokens",
        N: "N",
    }
    if lengths is None:
        named |= {B: "B", T: "T"}
        named |= {B * T: "tokens"} if T > 1 else {}
    else:
        named |= {T: "T"}
    row = 2 * H * K + HV * V
    return {n: text for n, text in {row: f"2 H K + {v_heads} {v_width}", **named}.items() if n > 1}
