"""Which form evaluates KDA: the fast one where it is exact, the plain ones everywhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from k3check.mutate.site import watched
from k3check.nouns.recipe import EXACT, Arithmetic
from k3check.operators.kda import fast_reference as fast
from k3check.operators.kda import reference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from k3check.nouns.tensors import Tensors
    from k3check.operators.kda.semantics import KdaInterface, KdaSemantics
    from k3check.operators.kda.sequence import Sequence

#: Tokens of the longest sequence from which on chunks are faster than the token loop.
_FROM = 24

#: Elements of a prepared tensor up to which the inputs are prepared as a whole.
_WHOLE = 1 << 24

_BY_TOKEN = ("q", "k", "v", "gate", "beta")


def evaluate(
    semantics: KdaSemantics,
    interface: KdaInterface,
    inputs: Tensors,
    arithmetic: Arithmetic = EXACT,
) -> Tensors:
    """KDA of inputs given in an interface's form; see :func:`reference.evaluate`."""
    # A probe wants to see every value; the fast form has others.
    plain = watched() or arithmetic != EXACT or longest(inputs) < _FROM
    if not plain and fast.applies(semantics):
        found = evaluate_fast(semantics, interface, inputs)
        # Zeros above a diagonal do not stop a NaN as the loop over tokens does.
        if all(bool(torch.isfinite(value.sum())) for value in found.values()):
            return found
    return reference.evaluate(semantics, interface, inputs, arithmetic)


def longest(inputs: Tensors) -> int:
    """Tokens of the longest sequence."""
    batch, tokens = inputs["k"].shape[:2]
    return max(fast.lengths_of(inputs.get("cu_seqlens"), batch, tokens), default=0)


def evaluate_fast(
    semantics: KdaSemantics, interface: KdaInterface, inputs: Tensors, width: int | None = None
) -> Tensors:
    """The same by :mod:`fast_reference`, whatever the sizes; ``width`` as there."""
    states = initial_states(semantics, inputs)
    first = states.clone() if semantics.final_state == "initial" else states
    B, T, HV, V = inputs["v"].shape
    output = torch.empty(B, T, HV, V, dtype=torch.float64, device=inputs["v"].device)
    for sequence, start, piece in stretches(semantics, interface, inputs, states, width):
        row, at = (0, start) if "cu_seqlens" in inputs else (sequence, start)
        output[row, at : at + piece.shape[1]] = piece.transpose(0, 1)
    state = first if semantics.final_state == "initial" else states
    if semantics.final_state == "transposed":
        state = state.transpose(-1, -2).contiguous()
    return {"final_state": state, **({"output": output} if interface.readout else {})}


def initial_states(semantics: KdaSemantics, inputs: Tensors) -> torch.Tensor:
    """The states before the first tokens, [N, HV, K, V], float64 and nobody else's memory."""
    HV, K, V = inputs["v"].shape[2], inputs["k"].shape[3], inputs["v"].shape[3]
    lengths = inputs.get("cu_seqlens")
    N = inputs["k"].shape[0] if lengths is None else len(lengths) - 1
    given = inputs.get("initial_state")
    wide = given.double() if given is not None else None
    like = torch.empty(0, dtype=torch.float64, device=inputs["v"].device)
    made = reference.initial_state(semantics, wide, (N, HV, K, V), like)
    return made.clone(memory_format=torch.contiguous_format)


def stretches(
    semantics: KdaSemantics,
    interface: KdaInterface,
    inputs: Tensors,
    states: torch.Tensor,
    width: int | None = None,
) -> Iterator[tuple[int, int, torch.Tensor]]:
    """Outputs stretch by stretch: (sequence, first token, [HV, T, V]); states are carried on.

    Large inputs are prepared stretch by stretch too, so that little more than the inputs in their
    own precision has to be held.
    """
    cu = inputs.get("cu_seqlens")
    starts = [0] * states.shape[0] if cu is None else cu.tolist()
    lengths = fast.lengths_of(cu, *inputs["k"].shape[:2])
    small = inputs["v"].numel() * max(1, inputs["k"].shape[3] // inputs["v"].shape[3]) <= _WHOLE
    whole = (
        prepared(semantics, interface, inputs) if small or crosses(semantics, interface) else None
    )

    def tokens(sequence: int, start: int, end: int) -> fast.Tokens:
        row, offset = (sequence, 0) if cu is None else (0, starts[sequence])
        rows = slice(offset + start, offset + end)
        if whole is not None:
            part, rows_ = whole, rows
        else:
            cut = {
                name: value[row : row + 1, rows] if name in _BY_TOKEN else value
                for name, value in inputs.items()
            }
            part, rows_, row = prepared(semantics, interface, cut), slice(None), 0
        q, k, v, g, beta = (x[row, :, rows_] for x in (part.q, part.k, part.v, part.g, part.beta))
        return fast.Tokens(q, k, v, g, beta)

    for item, output in fast.run(lengths, tokens, states, width):
        offset = 0 if cu is None else starts[item.sequence]
        yield item.sequence, offset + item.start, output


def crosses(semantics: KdaSemantics, interface: KdaInterface) -> bool:
    """Whether a token's decay, beta, key or value hang on other tokens' inputs."""
    own = (
        semantics.gate_token == semantics.beta_token == semantics.value_token == "own"
        and semantics.key_token == "own"
    )
    return not own or interface.gate == "cumulative_log2"


def prepared(semantics: KdaSemantics, interface: KdaInterface, inputs: Tensors) -> Sequence:
    """What comes before the recurrence, of some tokens; their states are somewhere else."""
    plain = {n: x for n, x in inputs.items() if n not in ("initial_state", "cu_seqlens")}
    return reference.prepare(semantics, interface, plain, EXACT)
