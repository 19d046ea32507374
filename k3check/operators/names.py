"""Names of every operator's conventions and semantics, for what runs without torch.

The registry itself imports torch, so its names are a data file beside this one. Write it again
after adding one: ``python -m k3check.operators.names``. The test suite compares the two.
"""

from __future__ import annotations

import functools
import json
from importlib import resources
from pathlib import Path

_FILE = "names.json"


@functools.cache
def _names() -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = json.loads(
        resources.files(__package__).joinpath(_FILE).read_text("utf-8")
    )
    return found


def conventions(operator: str) -> tuple[str, ...]:
    """What ``convention`` accepts for an operator, besides ``auto``."""
    return tuple(_names()[operator]["conventions"])


def semantics(operator: str) -> tuple[str, ...]:
    """What ``semantics`` accepts for an operator."""
    return tuple(_names()[operator]["semantics"])


def registered() -> dict[str, dict[str, list[str]]]:
    """The names as the registry has them; imports torch."""
    from k3check.operators import families

    return {
        operator.name: {
            "conventions": list(operator.conventions),
            "semantics": list(operator.semantics),
        }
        for family in families()
        for operator in family.operators
    }


if __name__ == "__main__":
    text = json.dumps(registered(), indent=2) + "\n"
    Path(__file__).with_name(_FILE).write_text(text, "utf-8")
