"""The KDA operators, put together."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import torch

from k3check.nouns.check import Family
from k3check.nouns.operator import Operator, Output
from k3check.nouns.recipe import Arithmetic, Recipe, rounding
from k3check.operators.kda import (
    article,
    candidate,
    cases,
    conventions,
    exact,
    faults,
    gate_operator,
    present,
    properties,
    reference,
    window,
)
from k3check.operators.kda.semantics import SEMANTICS

if TYPE_CHECKING:
    from k3check.operators.kda.semantics import KdaInterface

OUTPUT = Output("output", ("batch", "token", "head", "channel"))
STATE = Output("final_state", ("batch", "head", "key", "channel"), dtype="state")


def legal_recipes(recipe: Recipe) -> dict[str, Arithmetic]:
    """Other roundings that released kernels use.

    FlashKDA and flashinfer keep a bfloat16 state; Triton's float32 products are TF32 by default.
    """
    usual = rounding(recipe, block_operands=True)
    if recipe.io == torch.float32:
        # Only accelerators have TF32: on a CPU such an error is no rounding.
        tf32 = {"TF32 products": replace(usual, operand="tf32")}
        return tf32 if recipe.device.type == "cuda" else {}
    if recipe.io == torch.float64:
        return {}
    found = {"operands rounded before products": usual}
    if recipe.state != recipe.io:
        name = str(recipe.io).removeprefix("torch.")
        found[f"{name} state"] = replace(usual, state=recipe.io)
    return found


def legal_chunk_recipes(recipe: Recipe) -> dict[str, Arithmetic]:
    """The same, and the state stored after every token, as where chunks are a loop of steps."""
    found = legal_recipes(recipe)
    if recipe.io in (torch.bfloat16, torch.float16):
        name = str(recipe.io).removeprefix("torch.")
        stored = replace(rounding(recipe), state=recipe.io, stepwise=True)
        found[f"{name} state, stored after every token"] = stored
    return found


def chunk_forms(interface: KdaInterface) -> tuple[dict[str, int], ...]:
    """Token by token, and chunk by chunk in the sizes that a callable may have."""
    sizes = [interface.chunk] if interface.chunk else faults.CHUNKS
    return ({}, *({"chunk": size} for size in sizes))


def _operator(name: str, suite: str, title: str) -> Operator:
    step = name == "kda_step"
    return Operator(
        name=name,
        suite=suite,
        title=title,
        semantics=SEMANTICS,
        outputs=(OUTPUT, STATE),
        cases=cases.STEPS if step else cases.SEQUENCES,
        conventions=conventions.STEP_CONVENTIONS if step else conventions.SEQUENCE_CONVENTIONS,
        raw=cases.raw,
        present=present.present,
        evaluate=exact.evaluate,
        builtin=candidate.builtin(name),
        fit=cases.fit,
        baseline=reference.chunkwise_baseline if name == "kda_chunk" else None,
        block_operands=name == "kda_chunk",
        faults=partial(faults.faults, chunked=name == "kda_chunk", step=step),
        legal=legal_chunk_recipes if name == "kda_chunk" else legal_recipes,
        sized=cases.sized,
        sizes=frozenset({"heads", "key_dim", "value_dim"}),
        window=None if step else window.window,
        forms=chunk_forms if name == "kda_chunk" else lambda _interface: ({},),
        stretched=None if step else cases.STRETCHED,
        properties=properties.STEP_PROPERTIES if step else properties.SEQUENCE_PROPERTIES,
    )


OPERATORS = (
    gate_operator.OPERATOR,
    _operator("kda_step", "kda", "one KDA step"),
    _operator("kda_recurrent", "kda", "KDA token by token"),
    _operator("kda_chunk", "flashkda", "KDA chunk by chunk"),
)

FAMILY = Family("kda", OPERATORS, article.checks)
