"""Checks of KDA that need no reference: what holds for every correct operator.

Each compares two calls of the candidate with one another, or a call with a fact of algebra, within
what rounding costs (see :mod:`k3check.compare.twice`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from k3check.compare.agree import distances
from k3check.compare.allowance import handed_over
from k3check.compare.twice import LOUD, Same, inputs_of, judge_same
from k3check.model import Finding, Message, Outcome, Text
from k3check.nouns.candidate_error import CandidateError
from k3check.nouns.operator import Candidate, Property
from k3check.nouns.recipe import EXACT
from k3check.nouns.runner import Watched
from k3check.operators.kda.calling import outputs_of
from k3check.operators.kda.cases import KdaSpec
from k3check.properties import common
from k3check.properties.along import Along, shuffled

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from k3check.nouns.tensors import Tensors

SEQUENCE_INPUTS = ("q", "k", "v", "gate", "beta")


def spec_of(candidate: Candidate, tokens: int, **more: Any) -> KdaSpec:
    """A property's own case; of a step, it is three sequences of one token each."""
    if candidate.operator.name == "kda_step":
        return KdaSpec(tokens=1, batch=3, gate="medium", **more)
    return KdaSpec(tokens=tokens, gate="medium", **more)


def tokens(inputs: Tensors, start: int, end: int) -> Tensors:
    """A stretch of tokens of unpacked inputs."""
    return {n: x[:, start:end] if n in SEQUENCE_INPUTS else x for n, x in inputs.items()}


def split_invariance(candidate: Candidate, seed: int) -> Same | str:
    """A sequence in one call, and in two with the state carried over.

    The first part ends in the middle of a chunk unless the interface only takes multiples.
    """
    spec = KdaSpec(tokens=100, gate="medium", state="random")
    whole = inputs_of(candidate, spec, "split", seed)
    if isinstance(whole, str):
        return whole
    m = candidate.interface.multiple_of
    cut = 37 if m == 1 else m
    T = whole["k"].shape[1]
    if cut >= T:
        whole = inputs_of(candidate, KdaSpec(tokens=2 * m, gate="medium"), "split", seed)
        assert not isinstance(whole, str)
        T = whole["k"].shape[1]
    at_once = outputs_of(candidate, whole)
    first = outputs_of(candidate, tokens(whole, 0, cut))
    second = outputs_of(candidate, {**tokens(whole, cut, T), "initial_state": first["final_state"]})
    joined = {"final_state": second["final_state"]}
    if "output" in at_once:
        joined["output"] = torch.cat([first["output"], second["output"]], dim=1)
    return Same(joined, at_once, whole, more=handed_over(candidate.recipe))


def past_from_future(candidate: Candidate, seed: int) -> Same | str:
    """Other tokens at the end change no earlier output by more than their rounding."""
    spec = KdaSpec(tokens=96, gate="medium", state="random")
    inputs = inputs_of(candidate, spec, "future", seed)
    if isinstance(inputs, str):
        return inputs
    other = inputs_of(candidate, spec, "other-future", seed + 1)
    assert not isinstance(other, str)
    cut = inputs["k"].shape[1] - 5
    other["v"] = LOUD * other["v"]
    changed = {
        n: torch.cat([x[:, :cut], other[n][:, cut:]], dim=1) if n in SEQUENCE_INPUTS else x
        for n, x in inputs.items()
    }
    one, two = (outputs_of(candidate, x)["output"][:, :cut] for x in (inputs, changed))

    def past(found: Tensors) -> Tensors:
        return {"output": found["output"][:, :cut]}

    return Same({"output": one}, {"output": two}, inputs, past, times=1.0, told="K3O-710")


def packed_equals_separate(candidate: Candidate, seed: int) -> Same | str:
    """Packed sequences, and each of them alone."""
    lengths = (5, 33, 1, 64, 20)
    inputs = inputs_of(
        candidate, KdaSpec(lengths=lengths, gate="medium", state="random"), "separate", seed
    )
    if isinstance(inputs, str):
        return inputs
    together = outputs_of(candidate, inputs)
    ends = inputs["cu_seqlens"].tolist()
    parts = []
    for n in range(len(ends) - 1):
        alone = tokens(inputs, ends[n], ends[n + 1])
        alone.pop("cu_seqlens")
        alone["initial_state"] = inputs["initial_state"][n : n + 1]
        parts.append(outputs_of(candidate, alone))
    apart = {
        "output": torch.cat([part["output"] for part in parts], dim=1),
        "final_state": torch.cat([part["final_state"] for part in parts], dim=0),
    }
    return Same(together, apart, inputs)


def head_permutation(candidate: Candidate, seed: int) -> Same | str:
    """Heads in another order give the same results in that order."""
    inputs = inputs_of(candidate, spec_of(candidate, 40, heads=3, value_heads=3), "heads", seed)
    if isinstance(inputs, str):
        return inputs
    order = shuffled(inputs["v"].shape[2], seed)  # an interface may take one number alone
    axis = {"A_log": 0, "dt_bias": 0, "initial_state": 1}
    moved = {
        n: x.index_select(axis.get(n, 2), order)
        if n in SEQUENCE_INPUTS or (n in axis and isinstance(x, torch.Tensor))
        else x
        for n, x in inputs.items()
    }
    straight, permuted = outputs_of(candidate, inputs), outputs_of(candidate, moved)

    def back(found: Tensors) -> Tensors:
        return {n: x.index_select(1 if n == "final_state" else 2, order) for n, x in found.items()}

    return Same(permuted, back(straight), inputs, back)


def linearity(candidate: Candidate, seed: int) -> Same | str:
    """Output and state are linear in (v, S0): doubling both doubles both, bit by bit.

    A factor of two is exact in binary arithmetic, so rounding is no excuse.
    """
    inputs = inputs_of(candidate, spec_of(candidate, 40), "linear", seed)
    if isinstance(inputs, str):
        return inputs
    doubled = {n: 2 * x if n in ("v", "initial_state") else x for n, x in inputs.items()}
    one, two = outputs_of(candidate, inputs), outputs_of(candidate, doubled)
    return Same({n: x / 2 for n, x in two.items()}, one, inputs)


def beta_zero(candidate: Candidate, seed: int) -> Same | str:
    """With beta = 0 nothing is written: the state only decays."""
    spec = replace(spec_of(candidate, 24), gate="slow")
    inputs = inputs_of(candidate, spec, "beta-zero", seed)
    if isinstance(inputs, str):
        return inputs
    zero = -200.0 if candidate.interface.beta == "logit" else 0.0
    silent = {**inputs, "beta": torch.full_like(inputs["beta"], zero)}
    outputs = outputs_of(candidate, silent)
    operator = candidate.operator
    exact = operator.evaluate(candidate.semantics, candidate.interface, silent, EXACT)
    return Same(outputs, exact, silent)


def repeats_equal(candidate: Candidate, seed: int) -> Same | str:
    """Five calls on the same inputs agree bit by bit; the one that is furthest off counts."""
    inputs = inputs_of(candidate, spec_of(candidate, 130), "repeat", seed)
    if isinstance(inputs, str):
        return inputs
    first = outputs_of(candidate, inputs)
    calls = [outputs_of(candidate, inputs) for _ in range(4)]

    def off(again: Tensors) -> float:
        apart = distances(candidate.operator.outputs, again, first)
        return max(value for metrics in apart.values() for value in metrics.values())

    worst = max(calls, key=off)
    return Same(worst, first, inputs, times=1.0, told="K3O-711")


def strided_views(candidate: Candidate, seed: int) -> Same | str | Message:
    """Inputs that are views with other strides give the same bits as contiguous ones."""
    inputs = inputs_of(candidate, spec_of(candidate, 40), "strided", seed)
    if isinstance(inputs, str):
        return inputs
    straight = outputs_of(candidate, inputs)
    views = {n: _view(x) if n in SEQUENCE_INPUTS and x.dim() == 4 else x for n, x in inputs.items()}
    watched = Watched(candidate.target)
    try:
        viewed = replace(candidate, target=watched).call(_on_device(views, candidate))
    except CandidateError as error:
        return common.refusal("K3O-719", error)
    if watched.tensors and not watched.views:
        return Text("the convention {name} hands on contiguous copies", name=candidate.convention)
    moved = {n: viewed[n].detach().cpu() for n in straight}
    return Same(moved, straight, inputs)


def _on_device(inputs: Tensors, candidate: Candidate) -> Tensors:
    """Inputs on the candidate's device with their strides kept; copies were made before."""
    device = candidate.home
    return {
        n: x.to(device, memory_format=torch.preserve_format) if isinstance(x, torch.Tensor) else x
        for n, x in inputs.items()
    }


def _view(x: torch.Tensor) -> torch.Tensor:
    """The same values with head-first strides, surrounded by NaN."""
    B, T, H, D = x.shape
    room = x.new_full((B, H, T + 2, D), float("nan"))
    room[:, :, 1:-1] = x.transpose(1, 2)
    return room[:, :, 1:-1].transpose(1, 2)


def empty_sequence(candidate: Candidate, seed: int) -> Same | str:
    """A packed sequence of length 0 hands its state through and disturbs no neighbour."""
    inputs = inputs_of(
        candidate, KdaSpec(lengths=(7, 0, 9), gate="medium", state="random"), "empty", seed
    )
    if isinstance(inputs, str):
        return inputs
    outputs = outputs_of(candidate, inputs)
    given = inputs["initial_state"][1:2].to(outputs["final_state"].dtype)

    def part(found: Tensors) -> Tensors:
        return {"final_state": found["final_state"][1:2]}

    return Same(part(outputs), {"final_state": given}, inputs, part, times=1.0, told="K3O-712")


def chunk_edges(candidate: Candidate, seed: int) -> Same | str:
    """Prefixes of C-1, C and C+1 tokens give the outputs that the whole gives there."""
    if candidate.interface.multiple_of > 1:
        return Text(
            "the operator only takes multiples of {m} tokens",
            m=candidate.interface.multiple_of,
        )
    chunk = candidate.interface.chunk or 64
    inputs = inputs_of(
        candidate, KdaSpec(tokens=chunk + 8, gate="slow", keys="correlated"), "edges", seed
    )
    if isinstance(inputs, str):
        return inputs
    whole = outputs_of(candidate, inputs)["output"]
    ends = (1, chunk - 1, chunk, chunk + 1)
    prefixes = [outputs_of(candidate, tokens(inputs, 0, end))["output"] for end in ends]

    def starts(found: Tensors) -> Tensors:
        return {"output": torch.cat([found["output"][:, :end] for end in ends], dim=1)}

    left = {"output": torch.cat(prefixes, dim=1)}
    return Same(left, starts({"output": whole}), inputs, starts)


def _property(
    name: str,
    title: str,
    code: str,
    run: Callable[[Candidate, int], Same | str | Message],
    *needs: str,
    profile: str = "full",
) -> Property:
    def check(candidate: Candidate, seed: int) -> Finding:
        operator = candidate.operator
        blank = Finding(
            f"{operator.name}/{name}", operator.suite, operator.name, name, Outcome.PASS, title
        )
        if "output" in title and not getattr(candidate.interface, "readout", True):
            return _skip(blank, "the convention returns no output, only the state")
        same = run(candidate, seed)
        if isinstance(same, str):
            return _skip(blank, same)
        if isinstance(same, Message):
            return replace(blank, outcome=Outcome.ACCEPTABLE, notes=(same,))
        return judge_same(candidate, blank, same, code)

    return Property(name, title, check, frozenset(needs), profile)


def _skip(blank: Finding, reason: str) -> Finding:
    return replace(blank, outcome=Outcome.SKIPPED, notes=(Message("K3O-016", {"reason": reason}),))


BATCH = Along(
    KdaSpec(tokens=1, batch=4, gate="medium"),
    dict.fromkeys((*SEQUENCE_INPUTS, "initial_state"), 0),
    {"output": 0, "final_state": 0},
)

SEQUENCE_PROPERTIES = (
    _property("split", "one call equals two with the state carried over", "K3O-700",
              split_invariance, "initial_state", "final_state", profile="quick"),
    _property("causal", "no output depends on later tokens", "K3O-701", past_from_future,
              profile="quick"),
    _property("packed-separate", "packed sequences equal separate ones", "K3O-702",
              packed_equals_separate, "packed", "initial_state"),
    _property("head-order", "heads in another order, results in that order", "K3O-703",
              head_permutation),
    _property("linear", "output and state are linear in v and the initial state", "K3O-704",
              linearity, "initial_state"),
    _property("beta-zero", "beta = 0 is pure decay", "K3O-705", beta_zero, "initial_state"),
    _property("repeat", "five calls agree bit by bit", "K3O-706", repeats_equal),
    _property("strided", "views with other strides equal contiguous inputs", "K3O-707",
              strided_views),
    _property("empty", "a sequence of length 0 hands its state through", "K3O-708",
              empty_sequence, "packed", "initial_state"),
    _property("chunk-edges", "1, C-1, C and C+1 tokens give the output of the whole", "K3O-709",
              chunk_edges),
)  # fmt: skip

#: Of the others, a single token has nothing to say. Slots of a pool that no sequence owns are
#: poisoned, and compared bit by bit, at every call of a convention that has them.
STEP_PROPERTIES = (
    *(item for item in SEQUENCE_PROPERTIES
      if item.name in ("head-order", "linear", "beta-zero", "repeat", "strided")),
    common.order("batch-order", BATCH),
)  # fmt: skip
