"""Stateful operators in a row, each with the piece of a snapshot that it saves and reads.

A layer's inputs are drawn as for its own cases; where it stands behind another one, that one's
output is added to some of them, so that what is wrong in front shows behind.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from k3check.compare.twice import of_shape
from k3check.model import Text
from k3check.nouns.abilities import why_not
from k3check.nouns.call import baseline_of
from k3check.nouns.case import Case
from k3check.nouns.recipe import EXACT, Arithmetic, rounding
from k3check.nouns.tensors import generator, to_device
from k3check.operators.conv.cases import ConvSpec
from k3check.operators.kda.cases import KdaSpec
from k3check.operators.mla.cases import MlaSpec
from k3check.threads import users_number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from k3check.nouns.operator import Candidate
    from k3check.nouns.tensors import Tensors

    Shape = tuple[int, ...]

#: Size of what a layer adds to the next one's inputs, next to their own of about one.
FED_SIZE = 2.0
BATCH = 2


@dataclass(frozen=True)
class Kind:
    """What the stateful operators differ in.

    Attributes:
        piece: its part of a snapshot, ``title`` as it is called in messages.
        given, returned: the piece's names among inputs and outputs.
        per_token: inputs with a token axis.
        fed: those that the output of the layer before is added to.
        needs: what an interface must support.
        spec: of the inputs, by the number of tokens.
    """

    piece: str
    title: str
    given: str
    returned: str
    per_token: tuple[str, ...]
    fed: tuple[str, ...]
    needs: tuple[str, ...]
    spec: Callable[[int], Any]


KDA = Kind(
    "kda_state", "KDA state", "initial_state", "final_state",
    ("q", "k", "v", "gate", "beta"), ("q", "v"), ("initial_state", "final_state"),
    lambda T: KdaSpec(tokens=T, batch=BATCH, gate="medium", state="zero"),
)  # fmt: skip
CONV = Kind(
    "conv_state", "convolution state", "initial_state", "final_state",
    ("x",), ("x",), ("initial_state", "final_state"),
    lambda T: ConvSpec(tokens=T, batch=BATCH, state=False),
)  # fmt: skip
MLA = Kind(
    "mla_cache", "MLA cache", "past", "cache",
    ("x", "q", "rows"), ("x", "q", "rows"), ("past",),
    lambda T: MlaSpec(tokens=T, batch=BATCH),
)  # fmt: skip
KINDS = {
    "kda_recurrent": KDA,
    "kda_chunk": KDA,
    "kda_step": KDA,
    "short_conv": CONV,
    "gated_mla": MLA,
}


@dataclass(frozen=True)
class Layer:
    """A stateful operator at its place in a row.

    Attributes:
        saver: computes the prefix, and with it the piece to be saved.
        reader: continues from the piece; the same candidate, or the one that takes over.
        raw: inputs of all tokens in float64.
        weights: [features of the layer before, features], by input that it is added to.
    """

    kind: Kind
    saver: Candidate
    reader: Candidate
    raw: Tensors
    weights: Mapping[str, torch.Tensor] = field(default_factory=dict)

    def columns(self, piece: torch.Tensor) -> torch.Tensor:
        """What of a piece the next tokens depend on: an oldest fourth column is never read."""
        extra = self.kind is CONV and self.saver.interface.extra_column
        return piece[..., 1:] if extra else piece


@dataclass(frozen=True)
class Runner:
    """Who computes a layer: ``call(candidate, inputs) -> outputs``."""

    call: Callable[[Candidate, Tensors], Tensors]
    exact: bool = False


def by_candidate(candidate: Candidate, inputs: Tensors) -> Tensors:
    """The candidate itself; what it returns is not copied, as a cache may not copy it either.

    Raises:
        ConventionBroken: an output is missing or has another shape.
    """
    given = to_device(inputs, candidate.home)
    with nullcontext() if candidate.builtin else users_number():
        outputs = candidate.call(given, live=True)
    if candidate.home.type == "cuda":
        torch.cuda.synchronize(candidate.home)
    for name, shape in shapes(candidate, inputs).items():
        of_shape(name, outputs.get(name), shape, "K3O-002")
    return outputs


def by_reference(candidate: Candidate, inputs: Tensors) -> Tensors:
    """The declared semantics in float64."""
    return candidate.operator.evaluate(candidate.semantics, candidate.interface, inputs, EXACT)


def by_baseline(candidate: Candidate, inputs: Tensors) -> Tensors:
    """The declared semantics in the candidate's recipe."""
    low = rounding(candidate.recipe, block_operands=candidate.operator.block_operands)
    return baseline_of(candidate, inputs, low)


def by_arithmetic(arithmetics: Mapping[str, Arithmetic]) -> Runner:
    """The declared semantics in another arithmetic, by operator."""

    def call(candidate: Candidate, inputs: Tensors) -> Tensors:
        arithmetic = arithmetics.get(candidate.operator.name)
        if arithmetic is None:
            return by_baseline(candidate, inputs)
        return baseline_of(candidate, inputs, arithmetic)

    return Runner(call)


CANDIDATE, REFERENCE, BASELINE = (
    Runner(by_candidate),
    Runner(by_reference, exact=True),
    Runner(by_baseline),
)


def shapes(candidate: Candidate, inputs: Tensors) -> dict[str, Shape]:
    """What a candidate must return for some inputs."""
    kind, interface = KINDS[candidate.operator.name], candidate.interface
    if kind is KDA:
        B, T, HV, V = inputs["v"].shape
        found: dict[str, Shape] = {"final_state": (B, HV, inputs["k"].shape[-1], V)}
        return found | ({"output": (B, T, HV, V)} if interface.readout else {})
    if kind is CONV:
        x, (C, W) = inputs["x"], inputs["weight"].shape
        kept = W if interface.extra_column else W - 1
        return {"output": tuple(x.shape), "final_state": (x.shape[0], C, kept)}
    if interface.part == "core":
        return {"output": (*inputs["q"].shape[:3], inputs["value"])}
    x, width = inputs["x"], inputs["latent"] + inputs["pe"]
    rows = {"cache": (*x.shape[:2], width)} if "cache" in interface.supports else {}
    return {"output": tuple(x.shape), **rows}


def missing_ability(candidate: Candidate) -> str | None:
    """Why a candidate cannot resume; None if it can."""
    missing = why_not(candidate, KINDS[candidate.operator.name].needs)
    if missing is not None:
        return Text("{name}: {reason}", name=candidate.operator.name, reason=missing)
    if candidate.interface.supports >= {"past", "layer"} and "cache" not in (
        candidate.interface.supports
    ):
        return Text(
            "{name}: {reason}",
            name=candidate.operator.name,
            reason=Text("the convention {name} returns no cache", name=candidate.convention),
        )
    return None


def make_layers(
    candidates: Sequence[tuple[Candidate, Candidate]], tokens: int, seed: int
) -> tuple[Layer, ...]:
    """Layers in a row from (saver, reader) of each."""
    layers: list[Layer] = []
    for saver, reader in candidates:
        operator, kind = saver.operator, KINDS[saver.operator.name]
        case = Case("cache", "", spec=kind.spec(tokens))
        for one in (saver, reader):
            fitted = one.operator.fit(case, one.interface)
            assert isinstance(fitted, Case), fitted
            case = fitted
        raw = operator.raw(case, saver.semantics, seed)
        weights = {}
        if layers:
            front = layers[-1]
            width = front.raw["v" if front.kind is KDA else "x"].flatten(2).shape[-1]
            for name in kind.fed:
                shape = (width, raw[name].flatten(2).shape[-1])
                draw = generator(seed, "cache", operator.name, name)
                matrix = torch.randn(*shape, generator=draw, dtype=torch.float64)
                weights[name] = FED_SIZE * matrix / width**0.5
        layers.append(Layer(kind, saver, reader, raw, weights))
    return tuple(layers)


def forward(
    layer: Layer,
    tokens: tuple[int, int],
    piece: torch.Tensor | None,
    before: torch.Tensor | None,
    runner: Runner,
) -> tuple[torch.Tensor | None, torch.Tensor]:
    """A stretch of tokens through one layer.

    Args:
        layer: which.
        tokens: first and end.
        piece: what it continues from; None for a sequence's beginning.
        before: [B, tokens, features], the output of the layer before.
        runner: who computes it.

    Returns:
        (output [B, tokens, features] in float64, None without readout; the piece afterwards).
    """
    candidate = layer.saver if piece is None else layer.reader
    start, end = tokens
    if candidate.operator.name == "kda_step" and end - start > 1:
        outputs = []
        for t in range(start, end):
            one = None if before is None else before[:, t - start : t - start + 1]
            output, piece = forward(layer, (t, t + 1), piece, one, runner)
            outputs.append(output)
        assert piece is not None
        told = [output for output in outputs if output is not None]
        return torch.cat(told, dim=1) if told else None, piece
    inputs = present(layer, candidate, (start, end), before)
    if piece is not None:
        state = candidate.recipe.state if layer.kind is KDA else candidate.recipe.io
        inputs[layer.kind.given] = piece if runner.exact else piece.to(state)
    outputs_ = runner.call(candidate, inputs)
    after = outputs_.get(layer.kind.returned)
    if layer.kind is MLA:  # whose piece grows; the attention alone leaves the rows to its caller
        rows = inputs["rows"] if after is None else after
        after = rows if piece is None else torch.cat([piece.to(rows), rows], dim=1)
    assert after is not None
    output = outputs_.get("output")
    return None if output is None else output.detach().cpu().double().flatten(2), after.detach()


def present(
    layer: Layer, candidate: Candidate, tokens: tuple[int, int], before: torch.Tensor | None
) -> Tensors:
    """The inputs of a stretch of tokens, with what the layer before adds to them."""
    start, end = tokens
    raw = {
        name: x[:, start:end] if name in layer.kind.per_token else x
        for name, x in layer.raw.items()
    }
    if before is not None:
        unit = before / (before.square().mean(-1, keepdim=True) + 1e-6).sqrt()
        for name, weight in layer.weights.items():
            raw[name] = raw[name] + (unit @ weight).view(raw[name].shape)
    return candidate.operator.present(
        raw, candidate.semantics, candidate.interface, candidate.recipe
    )


@dataclass(frozen=True)
class Walked:
    """What a row of layers gave: the last output (None without readout), every layer's piece."""

    output: torch.Tensor | None
    pieces: tuple[torch.Tensor, ...]

    def saved(self) -> Walked:
        """The same in memory of its own, on the CPU."""
        return Walked(self.output, tuple(p.to("cpu", copy=True) for p in self.pieces))


def walk(
    layers: Sequence[Layer],
    runners: Sequence[Runner],
    tokens: tuple[int, int],
    pieces: Sequence[torch.Tensor] | None = None,
) -> Walked:
    """A stretch of tokens through all layers; the pieces are those that were returned, live."""
    output, after = None, []
    for i, (layer, runner) in enumerate(zip(layers, runners, strict=True)):
        piece = None if pieces is None else pieces[i]
        output, piece = forward(layer, tokens, piece, output, runner)
        after.append(piece)
    return Walked(output, tuple(after))
