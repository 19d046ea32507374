"""The states at chunk boundaries, held against what the declared recipe costs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch

from k3check.compare.agree import Compared, agree, apart, in_some_way
from k3check.compare.allowance import WHOLE, Allowance, floor
from k3check.compare.distance import relative_l2
from k3check.compare.orders import any_order
from k3check.nouns.call import baseline_of
from k3check.nouns.recipe import Arithmetic, rounding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.nouns.operator import Candidate
    from k3check.nouns.tensors import Tensors


def agreeing(
    form: Candidate,
    prefixes: Mapping[str, Tensors],
    got: Tensors,
    right: Tensors,
    granted: float,
) -> tuple[tuple[Compared, str | None] | None, Compared]:
    """Hold the states after some prefixes against what the recipe costs there.

    Args:
        form: what returned the states.
        prefixes, got, right: inputs, its states and the exact ones, by prefix.
        granted: what the article allows between two sizes of a chunk, in float32.

    Returns:
        The first legal way of rounding in which all agree (None if there is none), and what was
        found in the declared recipe.
    """
    recipe, operator = form.recipe, form.operator
    own = rounding(recipe, block_operands=operator.block_operands)
    wide = recipe.io in (torch.float32, torch.float64)
    least = max(floor(recipe.state, recipe.accumulate), granted if wide else 0.0)

    def states(arithmetic: Arithmetic) -> Tensors:
        return {
            place: baseline_of(form, prefix, arithmetic)["final_state"]
            for place, prefix in prefixes.items()
        }

    def compared(base: Tensors) -> Compared:
        costs = {
            place: Allowance({WHOLE: relative_l2(base[place], state)}, least)
            for place, state in right.items()
        }
        return agree({place: apart(got[place].double(), right[place]) for place in got}, costs)

    plain = states(own)

    def in_any_order(samples: int) -> Compared:
        return compared(any_order(lambda: states(own), plain, right, recipe.accumulate, samples))

    legal = {
        name: partial(lambda other: compared(states(other)), other)
        for name, other in operator.legal(recipe).items()
    }
    found = compared(plain)
    return in_some_way(found, lambda one: one.excess, in_any_order, legal), found
