"""The walk over a stack, for every value of its semantics, and its known mistakes.

What the sub-layers compute is no matter of the walk. They are given as fixed updates, and what
the walk hands to each of them is what is compared: so no error is amplified by a later layer, and
the first wrong mix can be named.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from k3check.nouns.fault import Fault
from k3check.nouns.recipe import EXACT, Arithmetic
from k3check.nouns.tensors import generator
from k3check.operators.attn_res.reference import evaluate
from k3check.operators.attn_res.semantics import (
    K3,
    STACK,
    AttnResInterface,
    AttnResSemantics,
    StackSemantics,
)

if TYPE_CHECKING:
    from k3check.nouns.tensors import Tensors

#: every structural case: four whole blocks, a partial one, and the boundary in between
LAYERS, BLOCK = 13, 3
TOKENS, DIM = 5, 32


@dataclass(frozen=True)
class Stack:
    """A stack's tensors: embedding [T, D], updates [2 L, T, D], queries and gains [2 L + 1, D]."""

    embedding: torch.Tensor
    updates: torch.Tensor
    queries: torch.Tensor
    gains: torch.Tensor
    block: int = BLOCK

    def to(self, dtype: torch.dtype, device: torch.device | None = None) -> Stack:
        """The same in another dtype."""
        return replace(
            self,
            **{
                name: getattr(self, name).to(dtype=dtype, device=device)
                for name in ("embedding", "updates", "queries", "gains")
            },
        )


@dataclass(frozen=True)
class Walked:
    """What a walk handed to every sub-layer [T, D], the last mix, and the mixes' source counts."""

    handed: tuple[torch.Tensor, ...]
    output: torch.Tensor
    counts: tuple[int, ...] = ()
    snapshots: int = 0

    @property
    def places(self) -> list[torch.Tensor]:
        """Everything that is compared, in order."""
        return [*self.handed, self.output]


def small_stack(seed: int, layers: int = LAYERS, block: int = BLOCK, dim: int = DIM) -> Stack:
    """A stack whose sources differ in size by up to ten, so that each of them can be missed."""
    draw = generator(seed, "attn_res", "stack")

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=draw, dtype=torch.float64)

    sizes = torch.logspace(-0.3, 0.7, 2 * layers, dtype=torch.float64)
    sizes = sizes[torch.randperm(2 * layers, generator=draw)]
    gains = (0.5 * normal(2 * layers + 1, dim)).exp()
    return Stack(
        embedding=2 * normal(TOKENS, dim),
        updates=sizes[:, None, None] * normal(2 * layers, TOKENS, dim),
        queries=1.5 / dim**0.5 * normal(2 * layers + 1, dim),
        gains=gains,
        block=block,
    )


def place_name(index: int, layers: int) -> str:
    """``attention of layer 3`` and so on."""
    if index == 2 * layers:
        return "the output mix"
    return f"{'mlp' if index % 2 else 'attention'} of layer {index // 2}"


def walk(
    semantics: StackSemantics,
    stack: Stack,
    arithmetic: Arithmetic = EXACT,
    mix: AttnResSemantics = K3,
) -> Walked:
    """Walk a stack in some arithmetic, with some mix."""
    cast = stack.to(arithmetic.compute)
    layers = len(cast.updates) // 2
    blocks: list[torch.Tensor] = []
    total: torch.Tensor | None = cast.embedding
    handed: list[torch.Tensor] = []
    counts: list[int] = []

    def mixed(number: int, prefix: torch.Tensor | None) -> torch.Tensor:
        kept = {"newest": blocks[-1:], "without_newest": blocks[:-1]}.get(semantics.seen, blocks)
        sources = list(kept)
        if prefix is not None and (semantics.prefix == "included" or not sources):
            sources.append(prefix)
        if not sources:
            sources = blocks[-1:]
        counts.append(len(sources))
        own = chosen_query(semantics, number, layers)
        inputs: Tensors = {
            "sources": torch.stack(sources),
            "query": cast.queries[own],
            "gain": cast.gains[own],
        }
        found = evaluate(mix, AttnResInterface(), inputs, arithmetic)["output"]
        return found.to(arithmetic.compute)

    for number, update in enumerate(cast.updates):
        is_mlp = number % 2 == 1
        wanted = semantics.mixes in ("both", "mlp_only" if is_mlp else "attention_only")
        value = total
        if blocks and wanted:
            value = mixed(number, total)
        elif value is None:  # the sum was cleared and nothing replaces it
            value = blocks[-1]
        if takes_snapshot(semantics, number, stack.block):
            if semantics.snapshot == "after_mix":
                blocks.append(value)
            elif semantics.snapshot == "before_mix":
                blocks.append(value if total is None else total)
            if semantics.running_sum == "cleared" and semantics.snapshot != "after_attention":
                total = None
        handed.append(value)
        base = value if semantics.added_to == "mix" else total
        total = update if base is None else arithmetic.operands(base + update)
        if semantics.snapshot == "after_attention" and takes_snapshot(
            semantics, number, stack.block
        ):
            blocks.append(total)
            total = None if semantics.running_sum == "cleared" else total
    output = total if total is not None else blocks[-1]
    if semantics.output_mix == "applied" and semantics.mixes != "none":
        output = mixed(2 * layers, total)
    return Walked(tuple(handed), output, tuple(counts), len(blocks))


def takes_snapshot(semantics: StackSemantics, number: int, block: int) -> bool:
    """Whether a snapshot is taken at a sub-layer."""
    layer, is_mlp = divmod(number, 2)
    if semantics.boundary == "sublayers":
        return number % block == 0
    if is_mlp or semantics.boundary == "never":
        return False
    if semantics.boundary == "not_at_zero":
        return layer > 0 and layer % block == 0
    place = {"first": 0, "last": block - 1, "second": 1 % block}[semantics.boundary]
    return layer % block == place


def chosen_query(semantics: StackSemantics, number: int, layers: int) -> int:
    """Which query a mix uses."""
    if number == 2 * layers:
        return number
    return {
        "own": number,
        "one_per_layer": number - number % 2,
        "next": number + 1,
        "sites_swapped": number ^ 1,
    }[semantics.query]


FAULTS: tuple[Fault, ...] = tuple(
    Fault(f"K3O-{code}", f"attnres.stack-{slug}", changes)
    for code, slug, changes in (
        (260, "snapshot-after-mix", {"snapshot": "after_mix"}),
        (261, "snapshot-after-attention", {"snapshot": "after_attention"}),
        (262, "boundary-last", {"boundary": "last"}),
        (263, "boundary-second", {"boundary": "second"}),
        (264, "boundary-sublayers", {"boundary": "sublayers"}),
        (265, "no-snapshots", {"boundary": "never"}),
        (266, "embedding-not-kept", {"boundary": "not_at_zero"}),
        (267, "sum-not-cleared", {"running_sum": "kept"}),
        (268, "added-to-mix", {"added_to": "mix"}),
        (269, "attention-mixes-only", {"mixes": "attention_only"}),
        (270, "mlp-mixes-only", {"mixes": "mlp_only"}),
        (271, "not-wired", {"mixes": "none"}),
        (272, "output-mix-missing", {"output_mix": "missing"}),
        (273, "newest-only", {"seen": "newest"}),
        (274, "newest-unseen", {"seen": "without_newest"}),
        (275, "sum-unseen", {"prefix": "left_out"}),
        (276, "one-query-a-layer", {"query": "one_per_layer"}),
        (277, "next-query", {"query": "next"}),
        (278, "queries-swapped", {"query": "sites_swapped"}),
    )
)

__all__ = ["BLOCK", "FAULTS", "LAYERS", "STACK", "Stack", "Walked", "small_stack", "walk"]
