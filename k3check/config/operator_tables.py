"""What an ``[operators.NAME]`` table must say, beyond its keys' types: names, and a target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.config.problems import combined, meant, nearest, problem
from k3check.operators import names

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from k3check.config.loaded import Loaded
    from k3check.config.models import OperatorConfig
    from k3check.errors import UsageError


def check_names(operators: Mapping[str, OperatorConfig], places: Mapping[str, str]) -> None:
    """Refuse conventions and semantics that an operator does not have.

    Args:
        operators: the tables by operator.
        places: where each dotted key stands, for messages.

    Raises:
        UsageError: K3C-100, K3C-101; all of them at once.
    """
    wrong: list[UsageError] = []
    for name, table in operators.items():
        rows = (
            ("convention", "K3C-101", table.convention, ("auto", *names.conventions(name))),
            ("semantics", "K3C-100", table.semantics, names.semantics(name)),
        )
        for key, code, found, accepted in rows:
            if found is None or found in accepted:
                continue
            near = nearest(found, accepted)
            wrong.append(
                problem(
                    code,
                    where=places.get(f"operators.{name}.{key}", f"operators.{name}.{key}"),
                    found=found,
                    accepted=", ".join(accepted),
                    fix=meant(near) if near else None,
                    operator=name,
                    name=found,
                )
            )
    if wrong:
        raise combined(wrong)


def check_targets(loaded: Loaded, given: Collection[str] = ()) -> None:
    """Refuse a table without a target: nothing of the user's would be checked under its name.

    Args:
        loaded: the configuration.
        given: operators whose target an option names.

    Raises:
        UsageError: K3C-191; all of them at once.
    """
    wrong = [
        problem("K3C-191", where=str(loaded.origins[f"operators.{name}"]), operator=name)
        for name, table in loaded.config.operators.items()
        if name not in given and table.target is None and not getattr(table, "command", None)
    ]
    if wrong:
        raise combined(wrong)
