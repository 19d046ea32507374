"""A few tokens of a case, with the state that stands before them: what a search looks at first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.operators.kda.reference import evaluate

if TYPE_CHECKING:
    from k3check.nouns.tensors import Tensors
    from k3check.operators.kda.semantics import KdaInterface, KdaSemantics

PER_TOKEN = ("q", "k", "v", "gate", "beta")


def window(
    semantics: KdaSemantics,
    interface: KdaInterface,
    inputs: Tensors,
    place: int,
    first: int,
    last: int,
) -> Tensors | None:
    """Inputs of tokens ``first`` to before ``last`` of one sequence, as a batch of one.

    Args:
        semantics: what is right: it gives the state before ``first``.
        interface: the form of the inputs.
        inputs: a case's.
        place: the number of the packed sequence, or of the batch's entry.
        first, last: tokens within that sequence.

    Returns:
        None where tokens cannot be taken out (a gate that is summed up over chunks).
    """
    if interface.gate == "cumulative_log2":
        return None
    lengths = inputs.get("cu_seqlens")
    row, begin = (place, 0) if lengths is None else (0, int(lengths[place]))
    state = inputs.get("initial_state")

    def tokens(low: int, high: int) -> Tensors:
        found = {name: value for name, value in inputs.items() if name != "cu_seqlens"}
        for name in PER_TOKEN:
            if name in inputs:
                found[name] = inputs[name][row : row + 1, begin + low : begin + high]
        if state is not None:
            found["initial_state"] = state[place : place + 1]
        return found

    if first == 0:
        return tokens(first, last)
    before = evaluate(semantics, interface, tokens(0, first))["final_state"]
    return tokens(first, last) | {"initial_state": before}
