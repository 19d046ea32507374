"""Ids whose order says nothing: compared as sets, row by row, with ties understood.

A router that picks other experts is wrong, unless the experts it swapped have scores that the
declared precision cannot tell apart. The reference says which scores were compared: its entry
``choice`` has them, [rows, experts]. Rows that differ by such a tie are nobody's mistake, and no
other output is judged there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from k3check.nouns.operator import Output
    from k3check.nouns.tensors import Tensors

#: name of the scores in the reference's and the baseline's outputs
SCORES = "choice"
#: Scores closer than this share of the threshold's size are a tie in any precision.
TIE = 1e-6
#: ... and so are scores closer than this many times the baseline's own error.
TIE_BASELINE = 4.0


@dataclass(frozen=True)
class Agreement:
    """What the sets of a call came to.

    Attributes:
        problem, location: the first wrong row, None if there is none.
        metrics, limits: number of wrong rows and of ties.
        notes: that ties were met.
        skip: rows where no other output is judged.
    """

    problem: Message | None = None
    location: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[Message, ...] = ()
    skip: torch.Tensor | None = None

    def judged(self, outputs: Sequence[Output], tensors: Tensors) -> Tensors:
        """The tensors with the rows to skip zeroed."""
        if self.skip is None or not self.skip.any():
            return tensors
        found = dict(tensors)
        for output in outputs:
            x = found[output.name]
            if output.compare != "set" and output.axes[:1] == ("token",):
                rows = self.skip.view(-1, *[1] * (x.dim() - 1))
                found[output.name] = torch.where(rows, torch.zeros_like(x), x)
        return found


def form_problem(output: Output, actual: Any, reference: Tensors) -> Message | None:
    """Not ids, another number of them, impossible or repeated ones."""
    name, expected = output.name, reference[output.name]
    if not isinstance(actual, torch.Tensor):
        got = "nothing" if actual is None else type(actual).__name__
        return Message("K3O-001", {"tensor": name, "got": got})
    if actual.is_floating_point() or actual.dtype == torch.bool:
        dtype = str(actual.dtype).removeprefix("torch.")
        return Message("K3O-300", {"tensor": name, "found": dtype})
    if actual.dim() != expected.dim() or actual.shape[:-1] != expected.shape[:-1]:
        shapes = {"found": list(actual.shape), "expected": list(expected.shape)}
        return Message("K3O-002", {"tensor": name, **shapes})
    found, wanted = actual.shape[-1], expected.shape[-1]
    if found != wanted:
        return Message("K3O-301", {"tensor": name, "found": found, "expected": wanted})
    ids = actual.cpu().long().reshape(-1, wanted)
    count = _size(reference, expected)
    for wrong, code in ((ids < 0, "K3O-302"), (ids >= count, "K3O-303")):
        if wrong.any():
            row, slot = (int(i) for i in wrong.nonzero()[0])
            values = {"tensor": name, "token": row, "id": int(ids[row, slot]), "count": count}
            return Message(code, values)
    ordered = ids.sort(-1).values
    twice = ordered[:, 1:] == ordered[:, :-1]
    if twice.any():
        row, slot = (int(i) for i in twice.nonzero()[0])
        values = {"tensor": name, "token": row, "id": int(ordered[row, slot])}
        return Message("K3O-304", values)
    return None


def agree(
    outputs: Sequence[Output], actual: Tensors, reference: Tensors, baseline: Tensors
) -> Agreement:
    """Compare the set output among some outputs; nothing to say if there is none."""
    sets = [output for output in outputs if output.compare == "set"]
    if not sets:
        return Agreement()
    (output,) = sets  # an operator has one choice at most
    name = output.name
    size = _size(reference, reference[name])
    got, expected, base = (
        members(x[name].cpu().long(), size) for x in (actual, reference, baseline)
    )
    tie = within_tie(reference, baseline, reference[name].shape[-1], size)
    differs = (got != expected).any(-1)
    wrong = ((got != expected) & ~tie).any(-1)
    ties = differs & ~wrong
    skip = ties | (base != expected).any(-1)
    metrics = {f"{name}.wrong_rows": float(wrong.sum()), f"{name}.ties": float(ties.sum())}
    notes = []
    if ties.any():
        met = {"count": int(ties.sum()), "token": int(ties.nonzero()[0])}
        notes.append(Message("K3O-306", met))
    if not wrong.any():
        return Agreement(None, {}, metrics, {f"{name}.wrong_rows": 0.0}, tuple(notes), skip)
    row = int(wrong.nonzero()[0])
    values: dict[str, Any] = {
        "rows": int(wrong.sum()),
        "total": len(wrong),
        "token": row,
        "extra": _listed(got[row] & ~expected[row]),
        "missing": _listed(expected[row] & ~got[row]),
    }
    return Agreement(
        Message("K3O-305", values),
        {"tensor": name, output.axes[0]: row},
        metrics,
        {f"{name}.wrong_rows": 0.0},
        tuple(notes),
        skip,
    )


def _size(reference: Tensors, ids: torch.Tensor) -> int:
    """How many ids there are to choose from."""
    return int(reference[SCORES].shape[-1]) if SCORES in reference else int(ids.max()) + 1


def members(ids: torch.Tensor, size: int) -> torch.Tensor:
    """[rows, k] ids -> [rows, size] membership."""
    ids = ids.reshape(-1, ids.shape[-1])
    return torch.zeros(len(ids), size, dtype=torch.bool).scatter(1, ids, True)


def within_tie(reference: Tensors, baseline: Tensors, k: int, size: int) -> torch.Tensor:
    """[rows, size]: whose score cannot be told from the last chosen or the first left out."""
    if SCORES not in reference:
        return torch.zeros(1, size, dtype=torch.bool)
    scores = reference[SCORES].double().reshape(-1, size)
    error = torch.nan_to_num(baseline[SCORES].double().reshape(-1, size) - scores).abs().amax(-1)
    top = scores.topk(min(k + 1, size), dim=-1).values
    last, next_ = top[:, min(k, size) - 1], top[:, -1]
    slack = torch.maximum(TIE * last.abs().clamp(min=TIE), TIE_BASELINE * error).unsqueeze(-1)
    # A chosen one may be swapped if it is no better than the first left out, and the other way.
    return _near(scores, next_.unsqueeze(-1), slack) & _near(scores, last.unsqueeze(-1), slack)


def _near(scores: torch.Tensor, one: torch.Tensor, slack: torch.Tensor) -> torch.Tensor:
    """Whether scores cannot be told from one of them; infinite ones only equal themselves."""
    return (scores == one) | (one.isfinite() & ((scores - one).abs() <= slack))


def _listed(row: torch.Tensor, most: int = 8) -> str:
    """Ids of a row, the first few."""
    ids = [int(i) for i in row.nonzero().flatten()]
    more = f" and {len(ids) - most} more" if len(ids) > most else ""
    return ", ".join(str(i) for i in ids[:most]) + more
