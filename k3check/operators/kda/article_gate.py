"""The first article's check of the gate: the distribution of alpha, of the gate under test."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from k3check.compare.twice import of_shape
from k3check.model import Finding, Message, Outcome
from k3check.nouns.call import call
from k3check.nouns.case import Case
from k3check.nouns.tensors import generator
from k3check.operators.kda.gate_operator import GateSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.nouns.operator import Candidate

#: Width of the gate's logits in the article.
DIM = 64
#: Bars of the histogram, from 0 to 1.
BARS = 20


def bottleneck_gate(
    x: torch.Tensor, down: torch.Tensor, up: torch.Tensor, floor: float = 0.01
) -> torch.Tensor:
    """The article's gate: x -> bottleneck -> SiLU -> logits -> sigmoid, lifted to [floor, 1].

    Args:
        x: [T, D].
        down: [D, bottleneck].
        up: [bottleneck, K].
        floor: smallest alpha.
    """
    logits = torch.nn.functional.silu(x @ down) @ up
    return torch.sigmoid(logits) * (1 - floor) + floor


def gate_window(candidate: Candidate, kda: Mapping[str, Any], seed: int, blank: Finding) -> Finding:
    """Whether alpha uses its window: of the user's gate, else of a fresh built-in bottleneck."""
    if not candidate.builtin:
        return own_window(candidate, kda, seed, blank)
    bottleneck = int(kda.get("gate_bottleneck", 64))
    floor = float(kda.get("alpha_floor", 0.01))
    draw = generator(seed, "kda", "article-window")
    D, T = 256, 256
    x = torch.randn(T, D, generator=draw)
    down = torch.randn(D, bottleneck, generator=draw) / math.sqrt(D)
    up = torch.randn(bottleneck, DIM, generator=draw) / math.sqrt(bottleneck)
    return judge_window(bottleneck_gate(x, down, up, floor), kda, blank)


def own_window(candidate: Candidate, kda: Mapping[str, Any], seed: int, blank: Finding) -> Finding:
    """The window of the gate under test: what its semantics allows, not always the article's."""
    semantics = candidate.semantics
    spec = GateSpec(spread=3.0, tokens=128, heads=1, key_dim=DIM)
    operator = candidate.operator
    raw = operator.raw(Case("article-window", "", spec=spec), semantics, seed)
    inputs = operator.present(raw, semantics, candidate.interface, candidate.recipe)
    outputs, _ = call(candidate, inputs)
    decay = outputs.get("decay")
    of_shape("decay", decay, (2, spec.tokens, 1, DIM), "K3O-002")
    assert isinstance(decay, torch.Tensor), "of_shape lets nothing else through"
    alpha = {"alpha": lambda x: x, "ln": torch.exp, "log2": torch.exp2}[candidate.interface.output](
        decay.double() if decay.dtype == torch.float64 else decay.float()
    )
    lowest = {"floor": semantics.floor, "lower_bound": math.exp(semantics.lower_bound)}
    floor = lowest.get(semantics.gate, 0.0)
    if semantics.gate != "floor":
        kda = {**kda, "alpha_floor": floor, "alpha_ceil": 1.0}
    return judge_window(alpha, kda, blank, candidate.recipe.io)


def judge_window(
    alpha: torch.Tensor,
    kda: Mapping[str, Any],
    blank: Finding,
    dtype: torch.dtype | None = None,
) -> Finding:
    """Alpha must lie in [floor, 1], and must not pile up at the floor.

    Args:
        alpha: of any shape.
        kda: the configured window.
        blank: the finding to fill in.
        dtype: what the gate computes in, where alpha is kept in more.
    """
    floor = float(kda.get("alpha_floor", 0.01))
    ceil = float(kda.get("alpha_ceil", 0.99))
    slack = 4 * torch.finfo(dtype or alpha.dtype).eps
    near = (alpha < floor + 0.05 * (1 - floor)).double().mean().item()
    inside = ((alpha >= floor - slack) & (alpha <= ceil + slack)).double().mean().item()
    metrics = {
        "smallest_alpha": alpha.min().item(),
        "largest_alpha": alpha.max().item(),
        "share_near_floor": near,
        "share_in_window": inside,
    }
    problem = None
    if metrics["smallest_alpha"] < floor - slack or metrics["largest_alpha"] > 1 + slack:
        problem = Message("K3O-041", {"low": f"{metrics['smallest_alpha']:.3g}",
                                      "high": f"{metrics['largest_alpha']:.3g}",
                                      "floor": floor})  # fmt: skip
    elif near > 0.5:
        problem = Message("K3O-045", {"share": f"{near:.0%}"})
    return replace(
        blank,
        outcome=Outcome.FAIL if problem else Outcome.PASS,
        metrics=metrics,
        series={"alpha_histogram": histogram(alpha)},
        limits={"share_near_floor": 0.5},
        hint=problem,
    )


def histogram(alpha: torch.Tensor) -> list[float]:
    """The share of alpha in each of equal bars from 0 to 1; what lies outside counts at the end."""
    counts = torch.histc(alpha.double().clamp(0, 1), bins=BARS, min=0, max=1)
    return [float(x) for x in counts / max(1, alpha.numel())]
