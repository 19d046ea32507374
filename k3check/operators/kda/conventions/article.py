"""The first article's functions: one step of a head, and one chunk of a head.

Both take one head of one sequence. The convention walks over batch, heads and tokens or chunks and
hands the state on, so what is judged is what the function itself does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from k3check.nouns.convention import Binding, Convention, Example
from k3check.nouns.returned import parts
from k3check.operators.kda.semantics import KdaInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from k3check.nouns.tensors import Tensors

#: Tokens of a chunk, unless the option ``chunk_size`` says another number.
CHUNK = 64
SUPPORTS = frozenset({"initial_state", "final_state", "grouped", "value_dim"})


def _heads(inputs: Tensors) -> Iterator[tuple[torch.Tensor, ...]]:
    """Every head of every sequence: state [K, V], k [T, K], v [T, V], alpha [T, K], beta [T]."""
    k, v, alpha, beta = (inputs[name] for name in ("k", "v", "gate", "beta"))
    B, _, HV, V = v.shape
    times = HV // k.shape[2]
    start = inputs.get("initial_state")
    if start is None:
        start = torch.zeros(B, HV, k.shape[3], V, dtype=torch.float32, device=v.device)
    for b in range(B):
        for h in range(HV):
            yield start[b, h], k[b, :, h // times], v[b, :, h], alpha[b, :, h], beta[b, :, h]


def _bind_step(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """kda_step(S_prev, k, v, alpha, beta) of the first article: one head, one token, state out."""
    interface = KdaInterface(
        gate="alpha",
        beta="prob",
        norm="caller",
        scale="none",
        readout=False,
        log_dtype="io",
        supports=SUPPORTS,
    )

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        B, T, HV, _ = inputs["v"].shape
        states = []
        for state, k, v, alpha, beta in _heads(inputs):
            for t in range(T):
                state = target(state, k[t], v[t], alpha[t], beta[t], **options)
            states.append(state)
        return {"final_state": torch.stack(states).unflatten(0, (B, HV))}

    return Binding(interface, call)


def _bind_chunk(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """kda_chunkwise(K_chunk, V_chunk, alpha_chunk, beta_chunk, S_prev): one head, one chunk."""
    chunk = int(options.get("chunk_size", CHUNK))
    passed = {name: value for name, value in options.items() if name != "chunk_size"}
    interface = KdaInterface(
        gate="alpha",
        beta="prob",
        norm="caller",
        scale="none",
        query=False,
        log_dtype="io",
        state="required",
        chunk=chunk,
        supports=SUPPORTS,
    )

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        B, T, HV, V = inputs["v"].shape
        outputs, states = [], []
        for state, *given in _heads(inputs):
            rows = []
            for start in range(0, T, chunk):
                k, v, alpha, beta = (x[start : start + chunk] for x in given)
                result = target(k, v, alpha, beta, state, **passed)
                output, state = parts(result, "outputs", "S_new")
                rows.append(output)
            outputs.append(torch.cat(rows) if rows else given[1].new_zeros(0, V))
            states.append(state)
        output = torch.stack(outputs).unflatten(0, (B, HV)).transpose(1, 2)
        return {"output": output, "final_state": torch.stack(states).unflatten(0, (B, HV))}

    why = "it takes no query: its output is read with the key, and not scaled"
    return Binding(interface, call, excludes={"k3": why, "kimi-linear": why})


ARTICLE_STEP = Convention(
    "article",
    "kda_step(S_prev, k, v, alpha, beta) -> S: one head, one token, alpha linear",
    ("k", "v", "alpha", "beta"),
    _bind_step,
    typical=("S_prev",),
    positional=True,
    example=Example(
        "kda_step",
        "kernels/step.py:kda_step",
        "kda_step(S_prev, k, v, alpha, beta)",
        "S [K, V]",
        state="[K, V], returned",
    ),
)
ARTICLE_CHUNK = Convention(
    "article",
    "kda_chunkwise(K_chunk, V_chunk, alpha_chunk, beta_chunk, S_prev): one head, one chunk",
    ("K_chunk", "V_chunk", "alpha_chunk", "beta_chunk", "S_prev"),
    _bind_chunk,
    positional=True,
    semantics="article",
    example=Example(
        "kda_chunk",
        "kernels/chunk.py:kda_chunkwise",
        "kda_chunkwise(K_chunk, V_chunk, alpha_chunk, beta_chunk, S_prev)",
        "(outputs [C, V], S_new): the output is read with the key",
        state="[K, V], returned",
    ),
)
STEPS_ONLY = (ARTICLE_STEP,)
SEQUENCES_ONLY = (ARTICLE_CHUNK,)
