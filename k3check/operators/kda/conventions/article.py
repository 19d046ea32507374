"""The first article's step function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from k3check.nouns.convention import Binding, Convention, Example
from k3check.operators.kda.semantics import KdaInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.nouns.tensors import Tensors


def _bind(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """kda_step(S_prev, k, v, alpha, beta) of the first article: one head, one token, state out."""
    interface = KdaInterface(
        gate="alpha",
        beta="prob",
        norm="caller",
        scale="none",
        readout=False,
        log_dtype="io",
        supports=frozenset({"initial_state", "final_state", "grouped", "value_dim"}),
    )

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        k, v, alpha, beta = inputs["k"], inputs["v"], inputs["gate"], inputs["beta"]
        B, T, HV, _ = v.shape
        times = HV // k.shape[2]
        rows = []
        for b in range(B):
            heads = []
            for h in range(HV):
                state = inputs["initial_state"][b, h]
                for t in range(T):
                    state = target(
                        state, k[b, t, h // times], v[b, t, h], alpha[b, t, h], beta[b, t, h],
                        **options,
                    )  # fmt: skip
                heads.append(state)
            rows.append(torch.stack(heads))
        return {"final_state": torch.stack(rows)}

    return Binding(interface, call)


ARTICLE_STEP = Convention(
    "article",
    "kda_step(S_prev, k, v, alpha, beta) -> S: one head, one token, alpha linear",
    ("k", "v", "alpha", "beta"),
    _bind,
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
STEPS_ONLY = (ARTICLE_STEP,)
