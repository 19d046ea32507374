"""Checks that never call the user's operator, told apart from those that do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from k3check.model import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from k3check.model import Finding
    from k3check.nouns.check import Check
    from k3check.nouns.request import OpsRequest


def told_apart(checks: Sequence[Check], request: OpsRequest) -> list[Check]:
    """The same checks; one that does not call a configured operator does not bear its name."""
    configured = {name for name, spec in request.candidates.items() if spec.target is not None}
    return [
        _ours(check) if check.built_in and check.operator in configured else check
        for check in checks
    ]


def _ours(check: Check) -> Check:
    ident, title = (
        f"built-in/{check.case}",
        Text("built-in {operator}: {title}", operator=check.operator, title=check.title),
    )

    def run() -> Finding:
        return replace(check.run(), id=ident, operator=None, title=title)

    # As a finding, a check of ours has no operator; in a plan every check has one.
    return replace(check, id=ident, operator=None, title=title, run=run)  # type: ignore[arg-type]
