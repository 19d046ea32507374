"""Every mistake that any operator can be diagnosed with has its texts, under the same slug."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

import pytest
import torch

from k3check import hints
from k3check.operators.base import Recipe
from k3check.operators.planning import families

if TYPE_CHECKING:
    from collections.abc import Iterator

    from k3check.operators.base import Fault, Operator

OPERATORS = tuple(operator for family in families() for operator in family.operators)
DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def faults_of(operator: Operator) -> Iterator[Fault]:
    """The faults for each named semantics, convention and precision."""
    for semantics in operator.semantics.values():
        for convention in operator.conventions.values():
            interface = convention.bind(None, {}).interface
            for dtype in DTYPES:
                yield from operator.faults(semantics, interface, Recipe(io=dtype))


def by_code(operator: Operator) -> dict[str, Fault]:
    return {fault.code: fault for fault in faults_of(operator)}


def named(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_every_fault_has_texts_of_its_slug(operator: Operator) -> None:
    found = by_code(operator)
    texts = set(hints.codes())
    missing = {code: fault.slug for code, fault in found.items() if code not in texts}
    assert missing == {}
    wrong = {
        code: (fault.slug, hints.get(code).slug)
        for code, fault in found.items()
        if fault.slug != hints.get(code).slug
    }
    assert wrong == {}


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_faults_fill_every_placeholder(operator: Operator) -> None:
    texts = set(hints.codes())
    unfilled = {}
    for fault in faults_of(operator):
        if fault.code not in texts:  # the test above says so
            continue
        entry = hints.get(fault.code)
        for text in (*entry.title.values(), *entry.fix.values()):
            if named(text) - set(fault.values):
                unfilled[fault.code] = text
    assert unfilled == {}


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_a_code_is_one_mistake(operator: Operator) -> None:
    slugs: dict[str, set[str]] = {}
    for fault in faults_of(operator):
        slugs.setdefault(fault.code, set()).add(fault.slug)
    assert {code: found for code, found in slugs.items() if len(found) > 1} == {}


def test_operators_have_faults() -> None:
    """The tests above are about something: KDA's and the mix's mistakes are among them."""
    slugs = {fault.slug for operator in OPERATORS for fault in faults_of(operator)}
    assert {"decay.after-write", "chunk.state-reset", "output.negated"} <= slugs
