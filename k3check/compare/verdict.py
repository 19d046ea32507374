"""From outputs to an outcome, in a fixed order: present, shape, dtype, finite, degenerate, values.

The limit of a metric is ``FACTOR x baseline + floor``. The baseline is the same mathematics in the
candidate's recipe by the plainest code, so it is what rounding alone costs on these very inputs;
the floor is what no code in this precision can be held to, and keeps the rule meaningful where the
baseline happens to be exact. Output and state are judged apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch

from k3check.compare import exact, sets
from k3check.compare.agree import share
from k3check.compare.allowance import Allowance, floor
from k3check.compare.distance import Measurement, all_finite, measure, same
from k3check.compare.standard import LEVELS, ratios
from k3check.model import Message, Outcome
from k3check.nouns.runner import Foreign
from k3check.nouns.tensors import is_plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from k3check.nouns.operator import Output
    from k3check.nouns.recipe import Recipe
    from k3check.nouns.tensors import Tensors


@dataclass(frozen=True)
class Judgement:
    """A verdict with what it rests on.

    Attributes:
        problem: what failed, as a coded message; None when nothing did.
        metrics, limits: ``output.relative_l2`` and so on.
        location: where the worst deviation is.
        measured, allowed: the same per output, for the diagnosis.
    """

    outcome: Outcome
    problem: Message | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)
    location: Mapping[str, Any] = field(default_factory=dict)
    evidence: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[Message] = ()
    measured: Mapping[str, Measurement] = field(default_factory=dict)
    allowed: Mapping[str, Measurement] = field(default_factory=dict)

    @property
    def excess(self) -> float:
        """The worst metric in units of its limit; infinite for what is no matter of rounding."""
        if self.outcome is not Outcome.FAIL:
            return 0.0
        worst = [share(self.metrics[key], limit) for key, limit in self.limits.items()]
        return max(worst, default=math.inf)


def output_dtype(output: Output, recipe: Recipe) -> torch.dtype | None:
    """The dtype that an output must have, None if any will do."""
    return {"io": recipe.io, "state": recipe.state}.get(output.dtype)


def judge(
    outputs: Sequence[Output],
    actual: Tensors,
    reference: Tensors,
    baseline: Tensors,
    inputs: Tensors,
    recipe: Recipe,
    tolerance: float | None = None,
    standard: str | None = None,
) -> Judgement:
    """Judge everything that a candidate returned.

    Args:
        outputs: what it should return.
        actual: what it returned, on any device.
        reference: in float64; an output that it lacks is not judged.
        baseline: in the recipe's dtypes.
        inputs: what the candidate was given, to recognise a copied input.
        recipe: the declared precisions.
        tolerance: caps every limit as relative L2, None for the derived limits alone.
        standard: judge values by a level of the dual-benchmark rule instead (see
            :mod:`k3check.compare.standard`).
    """
    wanted = [output for output in outputs if output.name in reference]
    for output in wanted:
        if output.compare == "set":
            problem = sets.form_problem(output, actual.get(output.name), reference)
        else:
            # A callable that gets no state is not told the state's dtype.
            free = output.dtype == "state" and "initial_state" not in inputs
            problem = form_problem(
                output, actual.get(output.name), reference[output.name], recipe, untold=free
            )
        if problem is not None:
            return Judgement(Outcome.FAIL, problem, location={"tensor": output.name})
    on_cpu = {output.name: actual[output.name].detach().cpu() for output in wanted}
    valued = [output for output in wanted if output.compare != "set"]
    for output in valued:
        problem, location = content_problem(
            output, on_cpu[output.name], reference[output.name], inputs
        )
        if problem is not None:
            return Judgement(Outcome.FAIL, problem, location=location)
    agreement = sets.agree(wanted, on_cpu, reference, baseline)
    on_cpu, reference, baseline = (
        agreement.judged(valued, tensors) for tensors in (on_cpu, reference, baseline)
    )
    judgement = judge_values(valued, on_cpu, reference, baseline, recipe, tolerance, standard)
    for output in valued:
        if output.compare == "exact":
            found = exact.exactness(output, on_cpu[output.name], reference[output.name])
            judgement = joined(judgement, found)
    return joined(judgement, agreement)


def joined(judgement: Judgement, agreement: sets.Agreement | exact.Exactness) -> Judgement:
    """The verdict on values with a stricter one: wrong ids, too, explain other values."""
    wrong = agreement.problem is not None
    return replace(
        judgement,
        outcome=Outcome.FAIL if wrong else judgement.outcome,
        problem=agreement.problem or judgement.problem,
        metrics={**agreement.metrics, **judgement.metrics},
        limits={**agreement.limits, **judgement.limits},
        location=agreement.location if wrong else judgement.location,
        notes=[*agreement.notes, *judgement.notes],
    )


def form_problem(
    output: Output, actual: Any, expected: torch.Tensor, recipe: Recipe, *, untold: bool = False
) -> Message | None:
    """Missing, not a tensor, wrong shape, wrong dtype.

    Args:
        output, actual, expected: what it is, what came, what should have.
        recipe: the declared precisions.
        untold: the callable could not know the declared dtype: the accumulator's will do, too.
    """
    name = output.name
    problem = no_tensor(name, actual)
    if problem is not None:
        return problem
    if actual.shape != expected.shape:
        shapes = {"found": list(actual.shape), "expected": list(expected.shape)}
        return Message("K3O-002", {"tensor": name, **shapes})
    dtype = output_dtype(output, recipe)
    if (
        dtype is not None
        and actual.dtype != dtype
        and not (untold and actual.dtype == recipe.accumulate)
    ):
        found, wanted = (str(d).removeprefix("torch.") for d in (actual.dtype, dtype))
        return Message("K3O-003", {"tensor": name, "found": found, "expected": wanted})
    return None


def no_tensor(name: str, actual: Any) -> Message | None:
    """What is wrong with an output that is no tensor, or one without values of its own."""
    if isinstance(actual, Foreign):  # it was looked at where it is
        if actual.is_tensor:
            return Message("K3O-018", {"tensor": name, "kind": actual.kind})
        return Message("K3O-001", {"tensor": name, "got": actual.kind})
    if not isinstance(actual, torch.Tensor):
        got = "nothing" if actual is None else type(actual).__name__
        return Message("K3O-001", {"tensor": name, "got": got})
    if not is_plain(actual):
        kind = "meta" if actual.is_meta else str(actual.layout).removeprefix("torch.")
        return Message("K3O-018", {"tensor": name, "kind": kind})
    return None


def content_problem(
    output: Output, actual: torch.Tensor, expected: torch.Tensor, inputs: Tensors
) -> tuple[Message | None, dict[str, Any]]:
    """Not finite where the reference is (or the reverse), zero, constant, a copy of an input."""
    name = output.name
    where: dict[str, Any] = {"tensor": name}
    plain = all_finite(actual) and all_finite(expected)
    if not plain:
        problem, place = not_finite_problem(output, actual, expected)
        if problem is not None:
            return problem, where | place
    if expected.numel() < 2 or not plain or expected.min() == expected.max():
        return None, where
    if not actual.any():
        return Message("K3O-005", {"tensor": name}), where
    if actual.min() == actual.max():
        value = actual.flatten()[0].item()
        return Message("K3O-006", {"tensor": name, "value": f"{value:.4g}"}), where
    for given, tensor in inputs.items():
        if not isinstance(tensor, torch.Tensor) or tensor.shape != actual.shape:
            continue
        copied = same(tensor.cpu(), actual, actual.dtype)
        # Here and there an input is the answer.
        if copied and not same(tensor.cpu(), expected, expected.dtype):
            return Message("K3O-007", {"tensor": name, "input": given}), where
    return None, where


def not_finite_problem(
    output: Output, actual: torch.Tensor, expected: torch.Tensor
) -> tuple[Message | None, dict[str, Any]]:
    """Not finite where the reference is, or the reverse."""
    name = output.name
    where: dict[str, Any] = {}
    wrong = ~torch.isfinite(actual) & torch.isfinite(expected)
    if wrong.any():
        index = [int(i) for i in wrong.nonzero()[0]]
        where |= dict(zip(output.axes, index, strict=False))
        share = f"{wrong.double().mean().item():.1%}"
        kind = "NaN" if torch.isnan(actual[wrong]).any() else "infinity"
        values = {"tensor": name, "share": share, "kind": kind, "index": index}
        return Message("K3O-004", values), where
    missed = ~same_not_finite(actual, expected) & ~torch.isfinite(expected)
    if missed.any():
        index = [int(i) for i in missed.nonzero()[0]]
        where |= dict(zip(output.axes, index, strict=False))
        found, right = (str(x[missed][0].item()) for x in (actual, expected))
        values = {"tensor": name, "found": found, "expected": right, "index": index}
        return Message("K3O-013", values), where
    return None, where


def same_not_finite(actual: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """Where both are NaN, or both the same infinity."""
    wide = actual.double()
    return (wide.isnan() & expected.isnan()) | (wide.isinf() & (wide == expected))


def judge_values(
    outputs: Sequence[Output],
    actual: Tensors,
    reference: Tensors,
    baseline: Tensors,
    recipe: Recipe,
    tolerance: float | None,
    standard: str | None = None,
) -> Judgement:
    """Measure against the reference and hold it against the baseline's own error."""
    metrics: dict[str, float] = {}
    limits: dict[str, float] = {}
    measured: dict[str, Measurement] = {}
    allowed: dict[str, Measurement] = {}
    notes: list[Message] = []
    for output in outputs:
        name, expected = output.name, reference[output.name]
        got, base = actual[name], baseline[name]
        if not all_finite(expected):
            finite = torch.isfinite(expected)
            # The same places are not finite: they are right, and measured as 0.
            notes.append(Message("K3O-014", {"tensor": name, "count": int((~finite).sum())}))
            got, base, expected = (torch.where(finite, x, 0) for x in (got, base, expected))
        measured[name] = measure(got, expected, output.axes)
        allowed[name] = measure(base, expected, output.axes)
        if standard is None:
            least = floor(got.dtype if got.is_floating_point() else recipe.io, recipe.accumulate)
            values = measured[name].values()
            allowance = Allowance(allowed[name].values(), least, cap=tolerance)
            granted = allowance.limits()
            notes += capped(name, allowance)
        else:
            values = ratios(got, base, expected)
            granted = dict(zip(values, LEVELS[standard], strict=True))
        metrics |= {f"{name}.{metric}": value for metric, value in values.items()}
        limits |= {f"{name}.{metric}": limit for metric, limit in granted.items()}
    failed = [key for key, value in metrics.items() if not value <= limits[key]]
    worst = max(metrics, key=lambda key: share(metrics[key], limits[key]), default=None)
    location = {} if worst is None else locate(outputs, measured, worst.split(".")[0])
    if standard is None:
        # The smallest relative-L2 tolerance that would have passed: the worst of what is judged.
        metrics["smallest_passing_tolerance"] = max(metrics.values(), default=0.0)
    problem = None
    if failed and worst is not None:
        tensor, metric = worst.split(".")
        times = share(metrics[worst], limits[worst])
        named = {"tensor": tensor, "metric": metric.replace("_", " "), "times": times}
        problem = Message("K3O-009", named)
    return Judgement(
        Outcome.FAIL if failed else Outcome.PASS,
        problem,
        metrics,
        limits,
        location,
        notes=_unique(notes),
        measured=measured,
        allowed=allowed,
    )


def capped(name: str, allowance: Allowance) -> list[Message]:
    """What to say of a tolerance that is less than rounding costs."""
    cap = allowance.cap
    return [
        Message("K3O-012", {"tolerance": cap, "baseline": base, "tensor": name})
        for base in allowance.baseline.values()
        if cap is not None and cap < base
    ]


def _unique(notes: Sequence[Message]) -> tuple[Message, ...]:
    """One note a code and tensor."""
    return tuple({(n.code, n.values.get("tensor")): n for n in notes}.values())


def locate(
    outputs: Sequence[Output], measured: Mapping[str, Measurement], name: str
) -> dict[str, Any]:
    """Where the largest deviation of a tensor is, by axis name."""
    axes = next(output.axes for output in outputs if output.name == name)
    found = measured[name]
    place: dict[str, Any] = {"tensor": name}
    place |= dict(zip(axes, found.max_index, strict=False))
    return place
