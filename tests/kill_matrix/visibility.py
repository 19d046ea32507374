"""How visible a mistake is in a case: what the cases' ``sees`` claims are proven with."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from k3check.compare.verdict import judge
from k3check.nouns.recipe import EXACT, rounding

if TYPE_CHECKING:
    from typing import Any

    from k3check.nouns.case import Case
    from k3check.nouns.fault import Fault
    from k3check.nouns.operator import Operator
    from k3check.nouns.recipe import Recipe
    from k3check.nouns.tensors import Tensors


def visibility(
    operator: Operator,
    case: Case,
    fault: Fault,
    semantics: Any,
    interface: Any,
    recipe: Recipe,
    seed: int = 0,
) -> float:
    """Deviation that a mistake causes in a case, in units of the limit.

    The mistake is evaluated in the recipe's own arithmetic and judged like a candidate.

    Returns:
        The largest metric over its limit; infinity where the outputs fail before any distance is
        measured (NaN, another shape, wrong ids).
    """
    fitted = operator.fit(case, interface)
    if isinstance(fitted, str):
        raise ValueError(f"{case.name} does not apply: {fitted}")  # noqa: TRY004 - not a type
    raw = operator.raw(fitted, semantics, seed)
    inputs = operator.present(raw, semantics, interface, recipe)
    low = rounding(recipe, block_operands=operator.block_operands)
    judged = judge(
        operator.outputs,
        outputs_of(operator, fault, semantics, interface, inputs, recipe),
        operator.evaluate(semantics, interface, inputs, EXACT),
        (operator.baseline or operator.evaluate)(semantics, interface, inputs, low),
        inputs,
        recipe,
    )
    if not judged.limits:
        return math.inf if judged.problem is not None else 0.0
    found = {key: (judged.metrics[key], limit) for key, limit in judged.limits.items()}
    if any(value > 0 and limit == 0 for value, limit in found.values()):
        return math.inf
    return max(value / limit for value, limit in found.values() if limit > 0)


def outputs_of(
    operator: Operator,
    fault: Fault,
    semantics: Any,
    interface: Any,
    inputs: Tensors,
    recipe: Recipe,
) -> Tensors:
    """What a callable with the mistake would return."""
    low = rounding(recipe, block_operands=operator.block_operands)
    outputs = operator.evaluate(fault.applied(semantics), interface, inputs, low)
    return outputs if fault.transform is None else fault.transform(outputs, inputs)
