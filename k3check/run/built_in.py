"""Checks that never call the user's operator, told apart from those that do."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from k3check.operators.base import Check
    from k3check.report.model import Finding
    from k3check.run.request import OpsRequest

#: The articles' statements about settings and formulas, computed by code of ours whatever the
#: operator is. They stay beside the operator because a change of its settings changes them.
NEVER_YOURS = frozenset(
    {"kda_chunk/article-switches", "kda_chunk/article-half-decay", "kda_gate/article-window"}
)


def told_apart(checks: Sequence[Check], request: OpsRequest) -> list[Check]:
    """The same checks; one that does not call a configured operator does not bear its name."""
    configured = {name for name, spec in request.candidates.items() if spec.target is not None}
    return [
        _ours(check) if check.id in NEVER_YOURS and check.operator in configured else check
        for check in checks
    ]


def _ours(check: Check) -> Check:
    title = f"built-in {check.operator}: {check.title}"
    named = {"id": f"built-in/{check.case}", "operator": None, "title": title}
    return replace(check, run=partial(_renamed, check, named), **named)  # type: ignore[arg-type]
    # as findings, a check of ours has no operator


def _renamed(check: Check, named: dict[str, str | None]) -> Finding:
    return replace(check.run(), **named)  # type: ignore[arg-type]  # the same
