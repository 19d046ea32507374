"""Checking operators: from a request to findings.

Importing this package does not import torch; :func:`plan` does, and only the worker calls it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from k3check.nouns.check import Check
    from k3check.nouns.request import CandidateSpec, OpsRequest


def plan(
    request: OpsRequest, load_target: Callable[[CandidateSpec, str], Callable[..., Any]]
) -> list[Check]:
    """Every check that a request asks for, in a fixed order.

    Raises:
        UsageError: a candidate cannot be built: target, convention, semantics, dtype or device.
    """
    from k3check.checking.planning import make_plan

    return make_plan(request, load_target)
