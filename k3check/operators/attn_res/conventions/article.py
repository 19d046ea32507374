"""The first article's function: own attention plus cross attention over a bank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.nouns.convention import Binding, Convention, Example
from k3check.operators.attn_res.semantics import AttnResInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import torch

    from k3check.nouns.tensors import Tensors

NAMES = ("q", "k_self", "v_self", "k_residual_bank", "v_residual_bank")


def _bind(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """attention_with_residuals: [T, d] each, the bank [S, d]; with a batch and heads if it asks."""

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        given: list[torch.Tensor] = [inputs[name] for name in NAMES]
        refused: Exception | None = None
        for leading in ((), (1,), (1, 1)):
            try:
                result = target(*(x.reshape(*leading, *x.shape) for x in given), **options)
            except Exception as error:  # noqa: BLE001 - what it asks for is not in its signature
                refused = refused or error
                continue
            result = result[0] if isinstance(result, tuple | list) else result
            return {"output": result.reshape(given[0].shape[0], -1)}
        assert refused is not None, "the loop ends with a result or an exception"
        raise refused

    return Binding(AttnResInterface(article=True, supports=frozenset({"article"})), call)


CONVENTIONS = (
    Convention(
        "article",
        "attention_with_residuals: own attention plus cross attention over a bank",
        NAMES,
        _bind,
        positional=True,
        example=Example(
            "attn_res",
            "kernels/attn_res.py:attention_with_residuals",
            "attention_with_residuals(q, k_self, v_self, k_residual_bank, v_residual_bank)",
            "output [T, d]",
        ),
    ),
)
