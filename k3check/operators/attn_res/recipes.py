"""Other legal roundings of the attention residuals."""

from __future__ import annotations

import torch

from k3check.nouns.recipe import Arithmetic, Recipe


def legal(recipe: Recipe) -> dict[str, Arithmetic]:
    """Plain PyTorch on bfloat16 tensors stores everything in between in bfloat16.

    Keys, scores, weights and a folded query are then rounded, which shows where scores are small
    sums of large terms. float16 has no room for squares of small sources, so it is none there.
    """
    if recipe.io != torch.bfloat16:
        return {}
    low = torch.bfloat16
    return {"bfloat16 throughout": Arithmetic(compute=low, state=low, output=low)}
