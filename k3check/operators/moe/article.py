"""The first article's checks of the mixture of experts, with its numbers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import torch

from k3check.model import Finding, Message, Outcome, Text
from k3check.nouns.call import call
from k3check.nouns.check import Check
from k3check.nouns.tensors import generator
from k3check.released import TEXT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from k3check.nouns.operator import Candidate
    from k3check.nouns.request import OpsRequest
    from k3check.nouns.tensors import Tensors

    #: (x [T, D]) -> (ids [T, k], weights [T, E])
    Router = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, int], Tensors]
    Expert = Callable[[torch.Tensor], torch.Tensor]

EXPERTS: int = TEXT["num_experts"]
TOP_K: int = TEXT["num_experts_per_token"]
SHARED: int = TEXT["num_shared_experts"]
CLIP: float = TEXT["activation_situ_linear_beta"]
#: Load of the fullest expert over the mean load that counts as balanced.
BALANCED = 1.5
#: These checks are about counts: in a low precision inputs would be rounded to other tokens.
WIDE = torch.float32
#: the balance is measured on fewer experts of the same sparsity
FEWER, FEWER_K, MANY_TOKENS, STEPS = 64, 4, 1024, 6


def expert_layer(
    x: torch.Tensor,
    ids: torch.Tensor,
    weights: torch.Tensor,
    routed: Sequence[Expert],
    shared: Sequence[Expert],
) -> torch.Tensor:
    """The built-in layer: every token through its routed experts and through all shared ones.

    Args:
        x: [T, D].
        ids: [T, k], the routed experts of each token.
        weights: [T, E].
        routed: the E experts, [n, D] -> [n, D].
        shared: the shared experts; they have no id and no weight.
    """
    out = sum((expert(x) for expert in shared), torch.zeros_like(x))
    for number in ids.unique().tolist():
        rows = (ids == number).any(-1).nonzero().flatten()
        out[rows] += weights[rows, number, None] * routed[number](x[rows])
    return out


def activation_check(
    route: Router,
    moe: Mapping[str, Any],
    seed: int,
    blank: Finding,
    layer: Callable[..., torch.Tensor] = expert_layer,
) -> Finding:
    """How many experts really run for each token: routed and shared together."""
    E = int(moe.get("num_routed_experts") or EXPERTS)
    k = int(moe.get("top_k") or TOP_K)
    shared = int(SHARED if moe.get("num_shared_experts") is None else moe["num_shared_experts"])
    draw = generator(seed, "moe", "activation")
    x = torch.randn(8, 16, generator=draw, dtype=torch.float64)
    weight = torch.randn(E, 16, generator=draw, dtype=torch.float64)
    routing = route(x, weight, torch.zeros(E, dtype=torch.float64), k)
    runs = torch.zeros(len(x))
    names = {tuple(row.tolist()): number for number, row in enumerate(x)}

    def expert(rows: torch.Tensor) -> torch.Tensor:
        for row in rows:
            runs[names[tuple(row.tolist())]] += 1
        return rows

    dense = routing["weights"]
    layer(x, routing["ids"], dense.to(x.dtype), [expert] * E, [expert] * shared)
    return judge_activation(runs, k, shared, E, blank)


def judge_activation(
    runs: torch.Tensor, k: int, shared: int, experts: int, blank: Finding
) -> Finding:
    """Compare the number of experts that ran for each token with k + shared."""
    expected = k + shared
    found = replace(
        blank,
        metrics={"active_experts": runs.mean().item()},
        evidence={"active_experts": sorted({int(n) for n in runs})},
    )
    wrong = (runs != expected).nonzero().flatten()
    if not len(wrong):
        return found
    token = int(wrong[0])
    active = int(runs[token])
    values = {"found": active, "expected": expected, "routed": k, "shared": shared}
    code = "K3O-392"
    if active == k:
        code = "K3O-390"
    elif active in (experts, experts + shared):
        code = "K3O-391"
    return replace(
        found, outcome=Outcome.FAIL, hint=Message(code, values), location={"token": token}
    )


def bound_check(candidate: Candidate, moe: Mapping[str, Any], blank: Finding) -> Finding:
    """The up branch stays within the clip, reaches it, and passes small values unchanged."""
    clip = float(moe.get("situ_tanh_clip") or CLIP)
    if clip != CLIP and "betas" not in candidate.interface.supports:
        return _skip(
            blank,
            Text(
                "the callable takes no bound, and {clip} is not the released one", clip=f"{clip:g}"
            ),
        )
    ups = torch.tensor([0.5, 1.0, 10.0, 25.0, 100.0, 1e3, 1e4])
    gate = torch.full_like(ups, 20.0)
    raw = {"gate": gate.unsqueeze(-1), "up": ups.unsqueeze(-1), "beta": 4.0, "linear_beta": clip}
    operator, recipe = candidate.operator, candidate.recipe
    inputs = operator.present(raw, candidate.semantics, candidate.interface, recipe)
    outputs, _ = call(candidate, inputs)
    # at a gate of 20 the gate's factor is 4 tanh(5) sigmoid(20)
    factor = 4.0 * torch.tensor(5.0).double().tanh() * torch.tensor(20.0).double().sigmoid()
    return judge_bound(outputs["output"].double().flatten() / factor, ups, clip, recipe.io, blank)


def judge_bound(
    branch: torch.Tensor, ups: torch.Tensor, clip: float, dtype: torch.dtype, blank: Finding
) -> Finding:
    """Compare the up branch with its bound."""
    slack = 4 * torch.finfo(dtype).eps
    largest = branch.abs().max().item()
    found = replace(
        blank, metrics={"largest": largest}, limits={"largest": clip * (1 + slack)},
        evidence={"largest": f"{largest:.5g}"},
    )  # fmt: skip
    values: dict[str, Any] = {"found": f"{largest:.4g}", "clip": f"{clip:g}"}
    if not largest <= clip * (1 + slack):
        return replace(found, outcome=Outcome.FAIL, hint=Message("K3O-393", values))
    if largest < clip * (1 - slack) - 1e-3:
        return replace(found, outcome=Outcome.FAIL, hint=Message("K3O-394", values))
    small = abs(branch[0].item() / ups[0].item() - 1)
    if small > slack + 1e-2:  # 25 tanh(0.5 / 25) / 0.5 = 0.99987
        values = {"ratio": f"{branch[0].item() / ups[0].item():.4g}", "up": f"{ups[0].item():g}"}
        return replace(found, outcome=Outcome.FAIL, hint=Message("K3O-395", values))
    return found


def balance_step(scores: torch.Tensor, bias: torch.Tensor, k: int) -> torch.Tensor:
    """Quantile balancing: the bias at which every expert is chosen by k / E of the tokens.

    Expert j is chosen by token i if s_ij + b_j exceeds the (k + 1)-th largest choice of i. So b_j
    is the k / E quantile over the tokens of that threshold minus s_ij; then the mean is removed.

    Args:
        scores: [T, E], sigmoid scores without bias.
        bias: [E], the bias so far.
        k: experts per token.
    """
    threshold = (scores + bias).topk(k + 1, dim=-1).values[:, -1:]
    new = torch.quantile(threshold - scores, k / scores.shape[-1], dim=0)
    return new - new.mean()


def balance_check(route: Router, seed: int, blank: Finding) -> Finding:
    """The load of the experts before and after quantile balancing, with the candidate's choice."""
    draw = generator(seed, "moe", "balance")
    x = torch.randn(MANY_TOKENS, 32, generator=draw, dtype=torch.float64)
    x[:, 0] = 1.0  # the popularity of an expert is its first weight
    weight = torch.randn(FEWER, 32, generator=draw, dtype=torch.float64) / 32**0.5
    weight[:, 0] = torch.linspace(-1, 1, FEWER, dtype=torch.float64)
    scores = (x @ weight.T).sigmoid()
    bias = torch.zeros(FEWER, dtype=torch.float64)
    before = load(route(x, weight, bias, FEWER_K)["ids"])
    for _ in range(STEPS):
        bias = balance_step(scores, bias, FEWER_K)
    after = load(route(x, weight, bias, FEWER_K)["ids"])
    found = replace(
        blank,
        metrics={"load_before": before, "load_after": after},
        limits={"load_after": BALANCED},
        evidence={"load_before": f"{before:.2f}", "load_after": f"{after:.2f}"},
    )
    if after <= BALANCED:
        return found
    values = {"before": f"{before:.2f}", "after": f"{after:.2f}"}
    return replace(found, outcome=Outcome.FAIL, hint=Message("K3O-396", values))


def load(ids: torch.Tensor) -> float:
    """Tokens of the fullest expert over the mean."""
    counts = torch.bincount(ids.flatten().clamp(0, FEWER - 1), minlength=FEWER).double()
    return (counts.max() / counts.mean()).item()


def candidates_router(candidate: Candidate) -> Router:
    """The candidate as a function of plain tensors, through its own convention."""

    def route(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, k: int) -> Tensors:
        raw = {
            "hidden": x, "weight": weight, "bias": bias, "top_k": k, "renormalize": True,
            "scaling": 1.0,
        }  # fmt: skip
        inputs = candidate.operator.present(
            raw, candidate.semantics, candidate.interface, replace(candidate.recipe, io=WIDE)
        )
        outputs, _ = call(candidate, inputs)
        return outputs

    return route


def checks(request: OpsRequest, candidates: Mapping[str, Candidate]) -> Sequence[Check]:
    """The article's rows for every operator that the request checks."""
    moe = request.settings.get("moe", {})
    found: list[Check] = []
    if "moe_router" in candidates:
        route = candidates_router(candidates["moe_router"])
        found.append(
            _check("moe_router", "article-activation", "experts that run for each token",
                   partial(activation_check, route, moe, request.seed))
        )  # fmt: skip
        balancing = moe.get("quantile_balancing", True)
        found.append(
            _check("moe_router", "article-balance", "load of the experts with quantile balancing",
                   partial(balance_check, route, request.seed) if balancing else
                   partial(_skip, reason="quantile_balancing is off"))
        )  # fmt: skip
    if "situ_glu" in candidates:
        found.append(
            _check("situ_glu", "article-bound", "the up branch is bounded by situ_tanh_clip",
                   partial(bound_check, candidates["situ_glu"], moe))
        )  # fmt: skip
    return found


def _check(operator: str, name: str, title: str, run: Callable[[Finding], Finding]) -> Check:
    blank = Finding(f"{operator}/{name}", "moe", operator, name, Outcome.PASS, title)
    return Check(blank.id, "moe", operator, name, title, lambda: run(blank))


def _skip(blank: Finding, reason: str) -> Finding:
    return replace(blank, outcome=Outcome.SKIPPED, notes=(Message("K3O-016", {"reason": reason}),))
