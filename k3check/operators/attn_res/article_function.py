"""The article's ``attention_with_residuals`` of a user: what it computes, and which one it is.

It is no mix of the released model: softmax attention of a layer over its own keys, plus softmax
attention over what earlier blocks left. The article leaves open whether a token sees later ones;
each reading is right.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Literal

import torch

from k3check.compare.distance import relative_l2
from k3check.compare.twice import of_shape
from k3check.model import Confidence, Diagnosis, Finding, Message, Outcome
from k3check.nouns.call import call
from k3check.nouns.tensors import generator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from k3check.nouns.operator import Candidate
    from k3check.nouns.tensors import Tensors

TOKENS, BLOCKS, WIDTH = 16, 2, 48
#: The article's agreement, and units of the last place that sums of this length may cost.
AGREEMENT, ULPS = 1e-5, 32


@dataclass(frozen=True)
class Form:
    """One way to write the function.

    Attributes:
        own_causal, bank_causal: whether a token sees only itself and earlier tokens.
        own_scaled, bank_scaled: whether scores are divided by sqrt(d).
        together: ``joint``: one softmax over own keys and bank.
        bank_values: what is retrieved.
        bank_weights: ``none``: the scores themselves, without softmax.
    """

    own_causal: bool = False
    bank_causal: bool = False
    own_scaled: bool = True
    bank_scaled: bool = True
    together: Literal["sum", "joint", "mean", "own_only", "bank_only"] = "sum"
    bank_values: Literal["values", "keys"] = "values"
    bank_weights: Literal["softmax", "none"] = "softmax"


#: code and values of each mistake
WRONG: tuple[tuple[str, dict[str, str], Form], ...] = (
    ("K3O-985", {"which": "the bank's"}, Form(bank_scaled=False)),
    ("K3O-985", {"which": "the own"}, Form(own_scaled=False)),
    ("K3O-985", {"which": "all"}, Form(own_scaled=False, bank_scaled=False)),
    ("K3O-986", {}, Form(together="joint")),
    ("K3O-987", {}, Form(bank_values="keys")),
    ("K3O-988", {}, Form(bank_weights="none")),
    ("K3O-280", {"block": "2"}, Form(together="own_only")),
    ("K3O-989", {}, Form(together="bank_only")),
    ("K3O-990", {}, Form(together="mean")),
)


def readings(form: Form) -> Iterator[Form]:
    """The form with every choice that the article leaves open."""
    for own, bank in product((False, True), repeat=2):
        yield replace(form, own_causal=own, bank_causal=bank)


def evaluate(form: Form, inputs: Tensors) -> torch.Tensor:
    """[T, d] of q, k_self, v_self [T, d] and a bank [S, d], in the inputs' dtype."""
    q, k, v, bank_k, bank_v = inputs.values()
    T = len(q)
    past = torch.ones(T, T, dtype=torch.bool).tril()
    own = _scores(q, k, past if form.own_causal else None, scaled=form.own_scaled)
    seen = past.repeat(1, len(bank_k) // T) if form.bank_causal else None
    bank = _scores(q, bank_k, seen, scaled=form.bank_scaled)
    values = bank_k if form.bank_values == "keys" else bank_v
    if form.together == "joint":
        return torch.cat([own, bank], dim=1).softmax(-1) @ torch.cat([v, values])
    first = own.softmax(-1) @ v
    weights = bank.softmax(-1) if form.bank_weights == "softmax" else bank.nan_to_num(neginf=0)
    second = weights @ values
    return {
        "sum": first + second,
        "mean": (first + second) / 2,
        "own_only": first,
        "bank_only": second,
    }[form.together]


def _scores(
    q: torch.Tensor, k: torch.Tensor, seen: torch.Tensor | None, *, scaled: bool
) -> torch.Tensor:
    scores = q @ k.T / (q.shape[-1] ** 0.5 if scaled else 1.0)
    return scores if seen is None else scores.masked_fill(~seen, -torch.inf)


def own_inputs(candidate: Candidate, seed: int) -> Tensors:
    """q, k_self, v_self [T, d] and the bank [BLOCKS * T, d], in the candidate's precision."""
    draw = generator(seed, "attn_res", "article-attention")

    def normal(tokens: int) -> torch.Tensor:
        return torch.randn(tokens, WIDTH, generator=draw).to(candidate.recipe.io)

    own = {name: normal(TOKENS) for name in ("q", "k_self", "v_self")}
    bank = {name: normal(BLOCKS * TOKENS) for name in ("k_residual_bank", "v_residual_bank")}
    return own | bank


def output_of(candidate: Candidate, inputs: Tensors) -> torch.Tensor:
    """The candidate's output on copies of the inputs."""
    outputs, _ = call(candidate, inputs)
    output = outputs.get("output")
    of_shape("output", output, (TOKENS, WIDTH), "K3O-002")
    assert isinstance(output, torch.Tensor), "of_shape lets nothing else through"
    return output


def own_outputs(candidate: Candidate, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The output with a bank, and with the bank's values set to zero."""
    inputs = own_inputs(candidate, seed)
    empty = {**inputs, "v_residual_bank": torch.zeros_like(inputs["v_residual_bank"])}
    return output_of(candidate, inputs), output_of(candidate, empty)


def attention_check(candidate: Candidate, seed: int, blank: Finding) -> Finding:
    """The function against float64, in each reading; a failure is compared with the mistakes."""
    inputs = own_inputs(candidate, seed)
    wide = {name: value.double() for name, value in inputs.items()}
    output = output_of(candidate, inputs).double()
    limit = max(AGREEMENT, ULPS * torch.finfo(candidate.recipe.io).eps)

    def distance(form: Form) -> float:
        return min(relative_l2(output, evaluate(one, wide)) for one in readings(form))

    error = distance(Form())
    found = replace(
        blank,
        metrics={"output.relative_l2": error},
        limits={"output.relative_l2": limit},
    )
    if error <= limit:
        return found
    ranked = sorted(WRONG, key=lambda row: distance(row[2]))
    code, values, form = ranked[0]
    failed = replace(found, outcome=Outcome.FAIL)
    if not distance(form) <= limit:
        return replace(failed, hint=Message("K3O-984", {"error": f"{error:.2g}"}))
    margin = distance(ranked[1][2]) / max(distance(form), torch.finfo(torch.float64).eps)
    named = Diagnosis(code, Confidence.HIGH, distance(form) / limit, margin, values)
    return replace(failed, diagnoses=(named,), hint=Message(code, values))
