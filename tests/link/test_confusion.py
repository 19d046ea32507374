"""Every known failure gets its own diagnosis and no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from k3check import hints
from k3check.link.diagnosis import table
from tests.link.catalogue import FIXTURES, GOOD, Fixture
from tests.link.conftest import CANARY

if TYPE_CHECKING:
    from tests.link.conftest import Bench


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda f: f"{f.code} {f.name}")
def test_fixture_gets_its_diagnosis_and_no_other(fixture: Fixture, bench: Bench) -> None:
    hits = bench.hits(fixture)
    assert [f"{hit.row.code} {hit.row.slug}" for hit in hits] == [
        f"{fixture.code} {hints.get(fixture.code).slug}"
    ]
    for lang in hints.LANGUAGES:
        for text in (hints.title, hints.fix):
            shown = text(fixture.code, lang, hits[0].values)
            assert "<" not in shown.replace("<think>", "").replace("<!", ""), shown
            assert CANARY not in shown


@pytest.mark.parametrize("fixture", GOOD, ids=lambda f: f.name)
def test_good_answers_get_none(fixture: Fixture, bench: Bench) -> None:
    assert [hit.row.slug for hit in bench.hits(fixture)] == []


def test_names_are_unique() -> None:
    names = [fixture.name for fixture in FIXTURES]
    assert len(set(names)) == len(names)


def test_rows_have_the_slugs_of_their_texts() -> None:
    for row in table():
        assert row.slug == hints.get(row.code).slug, row.code
