"""The stress profile's longest case: as many tokens as the user's model is configured for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from k3check.memory import available_bytes
from k3check.model import Text
from k3check.nouns.lengths import of_lengths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from k3check.nouns.case import Case
    from k3check.nouns.operator import Candidate
    from k3check.nouns.request import OpsRequest
    from k3check.nouns.tensors import Tensors

#: tokens where no context is configured
USUAL = 16_384
#: Inputs in float64 stand in memory so many times at the most: as drawn, as handed over, the copies
#: that show changes, three sets of outputs, and what the formulas need in between.
COPIES = 16
#: what reference and baseline take together, token by token, on one core
SECONDS_A_TOKEN = 5e-4
#: tokens in which the size of one is measured
PROBE = 64


def context_cases(candidate: Candidate, request: OpsRequest) -> Iterator[Case]:
    """The operator's stretched case in the configured context, as far as memory and time allow.

    Half of the free memory and half of a check's time are for the candidate.
    """
    operator = candidate.operator
    short = operator.stretched
    if short is None or request.profile != "stress":
        return
    asked = int(request.settings.get("model", {}).get("context_window") or USUAL)
    probe = of_lengths(short, (PROBE,))
    size = bytes_of(operator.raw(probe, candidate.semantics, request.seed)) / PROBE
    tokens = min(asked, int(request.timeout_s / 2 / SECONDS_A_TOKEN))
    free = available_bytes()
    if free is not None:
        tokens = min(tokens, int(free / 2 / (COPIES * size)))
    tokens = max(tokens, 1)
    template = "{tokens} tokens: {title}"
    if tokens != asked:
        template = "{tokens} of {asked} tokens: {title}"
    why = Text(template, tokens=tokens, asked=asked, title=short.why)
    yield replace(of_lengths(short, (tokens,)), why=why)


def bytes_of(inputs: Tensors) -> int:
    """Bytes of all tensors."""
    return sum(value.nbytes for value in inputs.values() if isinstance(value, torch.Tensor))
