"""The recipe without rounding."""

from __future__ import annotations

import torch

from k3check.nouns.recipe import Recipe

DOUBLE = Recipe(io=torch.float64, state=torch.float64, accumulate=torch.float64)
