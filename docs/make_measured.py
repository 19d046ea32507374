"""Write docs/measured.md: measured error, baseline and limit by operator, convention and recipe.

Run it from the repository's root: ``python docs/make_measured.py``. Every number comes from the
checks themselves. Of an operator's cases the page shows, for every output, the one that comes
nearest to its limit.
"""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch

from k3check.checking.candidates import build_candidate
from k3check.checking.planning import make_plan
from k3check.compare.allowance import FACTOR, floor
from k3check.compare.verdict import output_dtype
from k3check.model import Outcome
from k3check.nouns.request import CandidateSpec, OpsRequest
from k3check.operators import families
from tests.operators.kda.test_conventions import RIGHT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PAGE = Path(__file__).with_name("measured.md")
RECIPES = ("float64", "float32", "bfloat16", "float16")
FLA = {
    "kda_chunk": "fla.ops.kda.naive:naive_chunk_kda",
    "kda_recurrent": "fla.ops.kda.naive:naive_recurrent_kda",
    "attn_res": "fla.ops.attnres.naive:naive_attnres",
}
INTRODUCTION = """\
# Measured: error, baseline and limit

Relative L2 error of correct implementations against the float64 reference. *Baseline* is the error
of the same mathematics in the recipe by the plainest code; the *limit* is {factor:g} times the
baseline plus a floor that follows from the dtypes. Shown is, of all cases, the one that comes
nearest to its limit, for each output. *built-in* is k3check's own operator; *library form* is the
test suite's independent function in that library's documented form; *naive* is
flash-linear-attention's own. Results on a GPU stand in [gpu.md](gpu.md).

torch {torch}, CPU, seed 0. *This page is written by `docs/make_measured.py`.*

| operator | convention | implementation | recipe | output | case | error | baseline | limit |
|---|---|---|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Subject:
    """Something correct that is measured."""

    operator: str
    convention: str
    what: str
    target: Callable[..., Any] | None = None
    options: dict[str, Any] | None = None


def subjects() -> Iterator[Subject]:
    """Built-ins of every operator, fla's naive functions, and every convention of KDA."""
    for family in families():
        for operator in family.operators:
            yield Subject(operator.name, "k3check", "built-in")
    if importlib.util.find_spec("fla") is not None:
        for name, target in FLA.items():
            module, function = target.split(":")
            loaded = getattr(importlib.import_module(module), function)
            yield Subject(name, "fla", "naive", loaded)
    seen = set()
    for convention, function, options, operator in RIGHT:
        if (convention, operator) not in seen:
            seen.add((convention, operator))
            yield Subject(operator, convention, "library form", function, options)


def rows(subject: Subject, dtype: str) -> Iterator[str]:
    """The lines of one subject in one recipe: one for each output."""
    operator = next(o for f in families() for o in f.operators if o.name == subject.operator)
    spec = CandidateSpec(
        subject.operator,
        target=None if subject.target is None else "measured",
        convention=subject.convention if subject.target else "auto",
        dtype=dtype,
        options=subject.options or {},
    )
    request = OpsRequest(candidates={subject.operator: spec}, only_configured=True)
    candidate = build_candidate(operator, request, lambda _spec, _directory: subject.target)
    cases = {f"{operator.name}/{case.name}" for case in operator.cases}
    worst: dict[str, tuple[float, str, float, float]] = {}
    for check in make_plan(request, lambda _spec, _directory: subject.target):
        if check.id not in cases:
            continue
        found = check.run()
        if found.outcome is Outcome.SKIPPED:
            continue
        if found.outcome not in (Outcome.PASS, Outcome.ACCEPTABLE):
            raise SystemExit(f"{subject} {dtype}: {check.id} is {found.outcome}: {found.hint}")
        for output in operator.outputs:
            key = f"{output.name}.relative_l2"
            if key not in found.metrics:
                continue
            error, limit = found.metrics[key], found.limits[key]
            share = error / limit
            if output.name not in worst or share > worst[output.name][0]:
                worst[output.name] = (share, check.case or "", error, limit)
    for output in operator.outputs:
        if output.name not in worst:
            continue
        _, case, error, limit = worst[output.name]
        kept = output_dtype(output, candidate.recipe) or torch.float32
        baseline = max(0.0, limit - floor(kept, candidate.recipe.accumulate)) / FACTOR
        recipe = candidate.recipe.describe()
        yield (
            f"| {subject.operator} | {subject.convention} | {subject.what} | {recipe} "
            f"| {output.name} | {case} | {error:.1e} | {baseline:.1e} | {limit:.1e} |"
        )


def page() -> str:
    """The whole page."""
    lines = []
    for subject in subjects():
        for dtype in RECIPES:
            if subject.what != "built-in" and dtype not in ("float32", "bfloat16"):
                continue
            lines += rows(subject, dtype)
    version = torch.__version__.split("+")[0]
    return INTRODUCTION.format(factor=FACTOR, torch=version) + "\n".join(lines) + "\n"


if __name__ == "__main__":
    torch.set_num_threads(1)
    PAGE.write_text(page(), "utf-8")
