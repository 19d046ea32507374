"""The names that the configuration knows without torch are the registry's."""

from __future__ import annotations

from k3check.operators import OPERATORS, names


def test_the_file_is_up_to_date() -> None:
    registered = names.registered()
    assert set(registered) == set(OPERATORS)
    for operator, kinds in registered.items():
        assert names.conventions(operator) == tuple(kinds["conventions"]), "write names.json again"
        assert names.semantics(operator) == tuple(kinds["semantics"]), "write names.json again"
