"""The first article's checks of attention residuals, and the checks of the walk over a stack.

The article describes another operator than the released one: attention over the own block plus a
gated cross attention over a bank of earlier blocks, narrowed to ``residual_dim``. It is built in
here, so that its two rows can be checked as they are written; the released mix has the same two
checks on the candidate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import torch

from k3check import released
from k3check.compare.distance import relative_l2
from k3check.model import Finding, Message, Outcome, Text
from k3check.nouns.check import Check
from k3check.nouns.tensors import generator
from k3check.operators.attn_res import stack_check
from k3check.operators.attn_res.article_function import attention_check, own_outputs
from k3check.operators.attn_res.stack import small_stack
from k3check.operators.attn_res.stack_check import skip

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from k3check.nouns.operator import Candidate
    from k3check.nouns.request import OpsRequest

    #: (x [T, D], bank of earlier blocks' outputs) -> [T, D]
    Block = Callable[[torch.Tensor, Sequence[torch.Tensor]], torch.Tensor]

#: Retrieval that moves the output by more than this many times its size has a wrong scale.
HUGE = 10.0
#: ... and one that moves it by less than this share of it might as well not be connected.
NOTHING = 1e-6
WIDTH, TOKENS = 64, 16


@dataclass(frozen=True)
class ArticleBlock:
    """attention(q, k, v) of the own input + gate * cross_attention(q, k_bank, v_bank).

    Attributes:
        own: [3, D, R], projections to q, k, v.
        bank: [2, D, R], projections of the bank's entries to k, v.
        out: [R, D].
        gate: [D], a sigmoid of x @ gate weighs the retrieval; None without gating.
    """

    own: torch.Tensor
    bank: torch.Tensor
    out: torch.Tensor
    gate: torch.Tensor | None

    def __call__(self, x: torch.Tensor, bank: Sequence[torch.Tensor]) -> torch.Tensor:
        """[T, D] of x [T, D] and the outputs of earlier blocks, each [T, D]."""
        q, k, v = (x @ w for w in self.own)
        past = torch.ones(len(x), len(x), dtype=torch.bool).tril()
        result = attention(q, k, v, past)
        if bank:
            entries = torch.cat(list(bank))
            retrieved = attention(
                q, entries @ self.bank[0], entries @ self.bank[1], past.repeat(1, len(bank))
            )
            if self.gate is not None:
                retrieved = (x @ self.gate).sigmoid().unsqueeze(-1) * retrieved
            result = result + retrieved
        return result @ self.out


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, seen: torch.Tensor
) -> torch.Tensor:
    """Softmax attention; ``seen`` [T, S] says which of the S entries a token may see."""
    scores = (q @ k.T / q.shape[-1] ** 0.5).masked_fill(~seen, -torch.inf)
    return scores.softmax(-1) @ v


def article_blocks(settings: Mapping[str, Any], count: int, seed: int) -> list[ArticleBlock]:
    """Blocks with random weights, of the configured residual width."""
    draw = generator(seed, "attn_res", "article")
    R = int(settings.get("residual_dim") or WIDTH)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=draw, dtype=torch.float64) / shape[-2] ** 0.5

    gated = settings.get("enable_gating", True)
    return [
        ArticleBlock(
            normal(3, WIDTH, R),
            normal(2, WIDTH, R),
            normal(R, WIDTH),
            normal(WIDTH, 1).squeeze(-1) if gated else None,
        )
        for _ in range(count)
    ]


def three_layers(blocks: Sequence[Block], x: torch.Tensor, *, retrieval: bool) -> torch.Tensor:
    """The third layer's output, with or without retrieval from the first two."""
    bank: list[torch.Tensor] = []
    for block in blocks[:2]:
        x = x + block(x, ())
        bank.append(x)
    return x + blocks[2](x, bank if retrieval else ())


def retrieval_check(blocks: Sequence[Block], seed: int, blank: Finding) -> Finding:
    """Three layers, the third with retrieval from the first two: does the bank matter?"""
    x = torch.randn(TOKENS, WIDTH, generator=generator(seed, "attn_res", "x"), dtype=torch.float64)
    without = three_layers(blocks, x, retrieval=False)
    return judge_difference(three_layers(blocks, x, retrieval=True), without, blank)


def judge_difference(with_: torch.Tensor, without: torch.Tensor, blank: Finding) -> Finding:
    """A retrieval that changes nothing is not connected; one that changes all is off in scale."""
    difference = relative_l2(with_, without)
    found = replace(
        blank, metrics={"difference": difference}, limits={"difference": HUGE},
        evidence={"difference": f"{difference:.3g}"},
    )  # fmt: skip
    if difference <= NOTHING:
        hint = Message("K3O-280", {"block": 2})
    elif not difference <= HUGE:
        hint = Message("K3O-281", {"times": f"{difference:.3g}"})
    else:
        return found
    return replace(found, outcome=Outcome.FAIL, hint=hint)


def bank_check(
    blocks: Sequence[Block],
    seed: int,
    blank: Finding,
    rule: Callable[[int], slice] = lambda number: slice(0, number),
) -> Finding:
    """Block N retrieves only from blocks before N: whatever the others hold must not matter.

    Args:
        blocks: the blocks; ``rule`` says which entries of the bank block N is given.
        seed: of the inputs.
        blank: the finding to fill in.
        rule: the index range under test.
    """
    draw = generator(seed, "attn_res", "bank")
    size = (len(blocks), TOKENS, WIDTH)
    bank = torch.randn(*size, generator=draw, dtype=torch.float64)
    x = torch.randn(*size[1:], generator=draw, dtype=torch.float64)
    for number, block in enumerate(blocks):
        other = bank.clone()
        other[number:] = 3 * other[number:] + 1
        one, two = (block(x, list(entries[rule(number)])) for entries in (bank, other))
        if not torch.equal(one, two):
            hint = Message("K3O-282", {"place": f"block {number}", "block": number})
            return replace(
                blank, outcome=Outcome.FAIL, hint=hint, location={"tensor": "bank", "block": number}
            )
        if number:
            other = bank.clone()
            other[:number] = 3 * other[:number] + 1
            if torch.equal(one, block(x, list(other[rule(number)]))):
                hint = Message("K3O-280", {"block": number})
                return replace(blank, outcome=Outcome.FAIL, hint=hint)
    return blank


def mix_retrieval(candidate: Candidate, seed: int, blank: Finding) -> Finding:
    """The candidate's mix of two layers' outputs and the running sum against the sum alone."""
    if "mix" not in candidate.interface.supports or candidate.interface.output_norm:
        return skip(blank, "the callable is no single mix")
    recipe = candidate.recipe
    stack = small_stack(seed).to(recipe.io, candidate.home)
    sources = torch.stack([stack.embedding, *stack.updates[:2]])
    mixed = stack_check.one_mix(
        candidate, sources, stack.queries[4], stack.gains[4], candidate.semantics.eps
    )
    return judge_difference(mixed.cpu(), sources[-1].cpu(), blank)


def own_retrieval(candidate: Candidate, seed: int, blank: Finding) -> Finding:
    """The article's function with what two blocks left, and with a bank of zeros."""
    with_, without = own_outputs(candidate, seed)
    return judge_difference(with_.cpu(), without.cpu(), blank)


def checks(request: OpsRequest, candidates: Mapping[str, Candidate]) -> Sequence[Check]:
    """Every check of the family that is no case of one mix."""
    if "attn_res" not in candidates:
        return ()
    mine = candidates["attn_res"]
    if mine.interface.article:
        return [
            _check("article-attention", "own attention plus cross attention over the bank",
                   partial(attention_check, mine, request.seed)),
            _check("article-retrieval", "with and without what earlier blocks left",
                   partial(own_retrieval, mine, request.seed)),
        ]  # fmt: skip
    settings = request.settings.get("attn_residuals", {})
    seed = request.seed
    run = stack_check.whole_stack(mine)
    block = int(settings.get("block_size") or released.BLOCK)
    blocks = int(settings.get("num_blocks") or released.BLOCKS)
    found = [
        _check("retrieval", "three layers, the third with and without the first two's outputs",
               partial(mix_retrieval, mine, seed)),
        _check("stack-walk", "what 13 layers with blocks of 3 hand to every sub-layer",
               partial(walk, run, mine, seed)),
        _check("stack-no-look-ahead", "later blocks change nothing in earlier ones",
               lambda blank: stack_check.look_ahead_check(run, mine.recipe, seed, blank,
                                                          mine.semantics)),
    ]  # fmt: skip
    if mine.builtin:
        found += [
            _check("stack-counts",
                   Text("mixes and sources over {layers} layers in blocks of {block}",
                        layers=released.LAYERS, block=block),
                   partial(stack_check.counts_check, block, released.LAYERS)),
            _check("article-retrieval", "the article's three layers with and without retrieval",
                   lambda b: retrieval_check(article_blocks(settings, 3, seed), seed, b)),
            _check("article-no-look-ahead", "the article's block N retrieves from blocks before N",
                   lambda b: bank_check(article_blocks(settings, blocks, seed), seed, b)),
        ]  # fmt: skip
    return found


def walk(
    run: stack_check.WholeStack | str, candidate: Candidate, seed: int, blank: Finding
) -> Finding:
    """The check of the walk for a candidate."""
    return stack_check.walk_check(run, candidate.recipe, seed, blank, candidate.semantics)


def _check(name: str, title: str, run: Callable[[Finding], Finding]) -> Check:
    blank = Finding(f"attn_res/{name}", "attnres", "attn_res", name, Outcome.PASS, title)
    return Check(blank.id, "attnres", "attn_res", name, title, lambda: run(blank))
