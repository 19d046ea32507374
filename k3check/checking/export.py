"""Cases as files for hardware without Python: inputs, what must come out, how far it may be off.

The same version and seed give the same bytes. A manifest says what lies where.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from k3check import __version__
from k3check.checking.candidates import build_candidate
from k3check.checking.one_case import inputs_of
from k3check.checking.planning import wanted
from k3check.compare.verdict import judge
from k3check.errors import NothingToCheck
from k3check.model import Finding, Outcome
from k3check.nouns.call import baseline_of
from k3check.nouns.check import Check
from k3check.nouns.recipe import EXACT, rounding
from k3check.operators import families
from k3check.runners import files
from k3check.runners.folder import sha256
from k3check.runners.manifest import MANIFEST, SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from k3check.nouns.case import Case
    from k3check.nouns.operator import Candidate
    from k3check.nouns.request import OpsRequest


@dataclass(frozen=True)
class Exported:
    """What was written: how many cases, and their bytes."""

    cases: int
    size: int


def export(request: OpsRequest, root: Path, *, raw: bool = False) -> Exported:
    """Write every case that a request asks for.

    Args:
        request: suites, profile, seed, semantics, dtypes; its targets are not called.
        root: the folder; what already lies there under these names is replaced.
        raw: also without a header, as ``.bin`` and ``.npy``.

    Raises:
        NothingToCheck: no case is asked for.
        UsageError: a dtype or semantics that the operator does not have.
    """
    cases = [
        stored(candidate, case, request, root, raw=raw)
        for family in families()
        for operator in family.operators
        if wanted(operator, request)
        for candidate in [build_candidate(operator, request, _not_called)]
        for case in chosen(candidate, request)
    ]
    if not cases:
        raise NothingToCheck("no case belongs to what was asked for")
    manifest = {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "k3check", "version": __version__},
        "profile": request.profile,
        "seed": request.seed,
        "cases": cases,
    }
    (root / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n", "utf-8")
    size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
    return Exported(len(cases), size)


def plan(request: OpsRequest, _load: Any = None) -> list[Check]:
    """The export as the one thing that a judge does; ``settings["vectors"]`` says where to."""
    asked = request.settings["vectors"]

    def run() -> Finding:
        done = export(request, Path(asked["out"]), raw=bool(asked["raw"]))
        return Finding(
            id="vectors/export",
            suite="vectors",
            operator=None,
            case=None,
            outcome=Outcome.PASS,
            title="test vectors written",
            metrics={"cases": float(done.cases), "bytes": float(done.size)},
        )

    return [Check("vectors/export", "vectors", "vectors", None, "test vectors", run)]


def _not_called(*_: Any) -> Any:
    raise AssertionError("an export loads no target")


def chosen(candidate: Candidate, request: OpsRequest) -> Iterator[Case]:
    """The operator's cases of the profile, as its interface takes them."""
    for case in candidate.operator.cases:
        if case.belongs_to(request.profile):
            fitted = candidate.operator.fit(case, candidate.interface)
            if not isinstance(fitted, str):
                yield fitted


def stored(
    candidate: Candidate, case: Case, request: OpsRequest, root: Path, *, raw: bool
) -> dict[str, Any]:
    """Write one case; returns its entry of the manifest."""
    operator, recipe = candidate.operator, candidate.recipe
    inputs = inputs_of(candidate, case, request.seed)
    exact = operator.evaluate(candidate.semantics, candidate.interface, inputs, EXACT)
    low = rounding(recipe, block_operands=operator.block_operands)
    baseline = baseline_of(candidate, inputs, low)
    limits = judge(operator.outputs, baseline, exact, baseline, inputs, recipe).limits
    place = f"{operator.name}/{case.name}"
    folder = root / operator.name / case.name
    tensors, expected = files.as_tensors(inputs), files.as_tensors(exact)
    files.write(folder, files.INPUTS, tensors, raw=raw)
    files.write(folder, files.EXPECTED, expected, raw=False)
    return {
        "operator": operator.name,
        "case": case.name,
        "folder": place,
        "why": case.why,
        "mistakes": list(case.sees),
        "semantics": candidate.semantics_name,
        "convention": candidate.convention,
        "recipe": {
            "dtype": files.type_name(recipe.io),
            "state_dtype": files.type_name(recipe.state),
            "accumulate_dtype": files.type_name(recipe.accumulate),
        },
        "inputs": {name: described(x) for name, x in tensors.items()},
        "values": {n: plain(v) for n, v in inputs.items() if is_value(v)},
        "outputs": {
            o.name: {**described(baseline[o.name]), "axes": list(o.axes)}
            for o in operator.outputs
            if o.name in baseline
        },
        "limits": limits,
        "sha256": {
            name: sha256(folder / name)
            for name in (f"{files.INPUTS}.safetensors", f"{files.EXPECTED}.safetensors")
        },
    }


def described(x: torch.Tensor) -> dict[str, Any]:
    """dtype and shape; the last dimension is the fastest."""
    return {"dtype": files.type_name(x.dtype), "shape": list(x.shape)}


def is_value(value: Any) -> bool:
    """Whether an input is no tensor and no list of them."""
    return not isinstance(value, torch.Tensor | list | tuple)


def plain(value: Any) -> Any:
    """A value for JSON; the one dtype among them is the recipe's."""
    return "dtype" if isinstance(value, torch.dtype) else value
