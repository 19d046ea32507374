"""What is certain about a failure, whatever its cause: the pattern of what agrees and what not.

Every function looks at all cases of an operator and yields a coded lead or a fact. A lead is a
direction (``low`` confidence), never a verdict.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from k3check.diagnose.record import distance
from k3check.model import Confidence, Diagnosis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from k3check.diagnose.record import Record
    from k3check.nouns.operator import Candidate

#: A deviation that one factor removes to this share is a scale.
SCALED = 1e-2
#: A factor this close to one is no news.
NO_FACTOR = 1e-3
#: In units: what this far from the reference still counts as exact.
EXACT_UNITS = 2.0


def certain(
    candidate: Candidate, records: Sequence[Record]
) -> tuple[tuple[Diagnosis, ...], dict[str, Any]]:
    """(leads in order of strength, facts for the evidence)."""
    failed = [seen for seen in records if seen.failed]
    facts: dict[str, Any] = {}
    passed = [seen.case for seen in records if not seen.failed]
    if passed:
        facts["cases_that_agree"] = ", ".join(passed)
    names = list(failed[0].unit)
    wrong = [name for name in names if any(units(seen, name) > EXACT_UNITS for seen in failed)]
    facts["wrong_tensors"] = ", ".join(wrong)
    leads = [
        lead
        for lead in (
            granularity(candidate, failed),
            one_scale(failed, wrong),
            boundary(failed),
            only_tails(records),
            one_tensor(names, wrong),
        )
        if lead is not None
    ]
    return tuple(leads), facts


def units(seen: Record, name: str) -> float:
    """How far an output is from its reference, in units."""
    return distance(seen.actual[name], seen.reference[name]) / seen.unit[name]


def _lead(code: str, **values: Any) -> Diagnosis:
    return Diagnosis(code, Confidence.LOW, values=values)


def granularity(candidate: Candidate, failed: Sequence[Record]) -> Diagnosis | None:
    """Values of a float32 tensor that all are bfloat16 (or float16) numbers."""
    for output in candidate.operator.outputs:
        tensors = [seen.actual[output.name] for seen in failed if output.name in seen.actual]
        # A few values can be numbers of a lower precision by chance.
        tensors = [t for t in tensors if t.numel() > 8]
        for low in (torch.bfloat16, torch.float16):
            coarse = tensors and all(
                t.dtype == torch.float32
                and torch.isfinite(t).all()
                and t.std().item() > 0
                and torch.equal(t, t.to(low).to(t.dtype))
                for t in tensors
            )
            if coarse:
                name = str(low).removeprefix("torch.")
                return _lead("K3O-080", tensor=output.name, dtype=name)
    return None


def one_scale(failed: Sequence[Record], wrong: Sequence[str]) -> Diagnosis | None:
    """One factor that turns every output into its reference."""
    if len(wrong) != 1:
        return None
    name = wrong[0]
    factors = []
    for seen in failed:
        x, r = seen.actual[name].double(), seen.reference[name].double()
        size = float((r * r).sum())
        if size == 0 or not torch.isfinite(x).all():
            return None
        factor = float((x * r).sum()) / size
        if factor == 0 or distance(x / factor, r) > SCALED:
            return None
        factors.append(factor)
    if all(abs(factor - 1) < NO_FACTOR for factor in factors):
        return None  # something is a little off, but not by a factor
    low, high = min(factors), max(factors)
    known = common_meaning(factors, failed)
    if high - low <= SCALED * abs(high):
        value = f"{sum(factors) / len(factors):.5g}"
        return _lead("K3O-081", tensor=name, factor=value, meaning=known or "no known constant")
    # Not one number, but one expression: what follows the head size from case to case.
    if known is None:
        return None
    return _lead("K3O-081", tensor=name, factor=known, meaning=f"{low:.5g} ... {high:.5g}")


def common_meaning(factors: Sequence[float], seen: Sequence[Record]) -> str | None:
    """What every case's factor is known to be: sqrt(K), its inverse, two, minus one ..."""
    told = [meanings(factor, one) for factor, one in zip(factors, seen, strict=True)]
    return next((text for text in told[0] if all(text in other for other in told)), None)


def meanings(factor: float, seen: Record) -> list[str]:
    """The known constants that a case's factor is equal to."""
    keys = seen.inputs.get("k")
    known = {"2": 2.0, "1/2": 0.5, "-1": -1.0, "ln 2": math.log(2), "1/ln 2": 1 / math.log(2)}
    if isinstance(keys, torch.Tensor) and keys.dim() == 4:
        K = keys.shape[-1]
        known |= {"sqrt(K)": K**0.5, "1/sqrt(K)": K**-0.5, "K": float(K), "1/K": 1 / K}
    return [text for text, value in known.items() if abs(factor / value - 1) < 2e-3]


def boundary(failed: Sequence[Record]) -> Diagnosis | None:
    """Every case goes wrong first at a multiple of one chunk size, and not before."""
    firsts = []
    for seen in failed:
        name = "output"
        if name not in seen.unit or seen.actual[name].dim() != 4:
            return None
        if seen.inputs.get("cu_seqlens") is not None or seen.actual[name].shape[1] < 2:
            continue
        first = first_bad_token(seen, name)
        if first is not None:
            firsts.append(first)
    if not firsts or min(firsts) == 0:
        return None
    for chunk in (128, 64, 32, 16):
        if all(first % chunk == 0 for first in firsts):
            return _lead("K3O-082", token=min(firsts), chunk=chunk)
    return None


def first_bad_token(seen: Record, name: str) -> int | None:
    """First token of an output [B, T, H, V] whose error is more than rounding."""
    x, r = seen.actual[name].double(), seen.reference[name].double()
    error = (x - r).square().mean(dim=(0, 2, 3)).sqrt() / r.square().mean().sqrt()
    bad = (~(error <= 8 * seen.unit[name])).nonzero().flatten()
    return int(bad[0]) if len(bad) else None


def only_tails(records: Sequence[Record]) -> Diagnosis | None:
    """Output right, state wrong, and only where the tokens are no multiple of a chunk."""
    partial: list[int] = []
    whole: list[int] = []
    for seen in records:
        if set(seen.unit) != {"output", "final_state"}:
            return None
        if seen.inputs.get("cu_seqlens") is not None:
            continue
        if units(seen, "output") > EXACT_UNITS:
            return None
        (partial if seen.failed else whole).append(seen.actual["output"].shape[1])
    for chunk in (16, 32, 64, 128):
        always_partial = partial and all(t % chunk for t in partial)
        if always_partial and whole and not any(t % chunk for t in whole):
            return _lead("K3O-083", chunk=chunk)
    return None


def one_tensor(names: Sequence[str], wrong: Sequence[str]) -> Diagnosis | None:
    """One output is exact in every case and the other is wrong."""
    right = [name for name in names if name not in wrong]
    if len(names) < 2 or len(wrong) != 1 or not right:
        return None
    code = "K3O-084" if wrong[0] == "output" else "K3O-085"
    return _lead(code, wrong=wrong[0], right=", ".join(right))
