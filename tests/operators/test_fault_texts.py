"""Every fault of every operator has its text, under the slug that it is known by."""

from __future__ import annotations

import torch

from k3check import hints
from k3check.nouns.recipe import Recipe
from k3check.operators import families
from k3check.operators.attn_res.stack import FAULTS


def every_fault():
    for family in families():
        for operator in family.operators:
            for semantics in operator.semantics.values():
                for convention in operator.conventions.values():
                    interface = convention.bind(None, {}).interface
                    for recipe in (Recipe(), Recipe(io=torch.bfloat16)):
                        yield from operator.faults(semantics, interface, recipe)
    yield from FAULTS


def test_codes_and_slugs_agree_with_the_texts():
    faults = {(fault.code, fault.slug) for fault in every_fault()}
    assert len(faults) > 250
    assert not {pair for pair in faults if hints.find(pair[0]) is None}
    assert not {pair for pair in faults if hints.get(pair[0]).slug != pair[1]}


def test_a_code_is_used_once():
    slugs = {}
    for fault in every_fault():
        assert slugs.setdefault(fault.code, fault.slug) == fault.slug
