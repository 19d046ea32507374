"""Nothing wrong is called sure, also of providers that nobody has written down."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from k3check.link.diagnosis import providers, table
from tests.link.calibration import concerned, left_out
from tests.link.situations import Server, cases
from tests.link.test_situations import _no_pauses, run, server

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["_no_pauses", "server"]


def test_no_fixture_is_wrong_at_high_without_a_row() -> None:
    assert [wrong for count in left_out().values() for wrong in count.wrong] == []


def test_every_meaning_is_a_row_and_every_row_is_dated() -> None:
    slugs = {row.slug for row in table()}
    assert providers.meanings() <= slugs
    for row in providers.table():
        assert row.docs, row.id
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", row.seen), row.id
    ids = [row.id for row in providers.table()]
    assert len(set(ids)) == len(ids)


def sure(report: dict[str, Any]) -> list[str]:
    """What the report says with high confidence."""
    return [
        f"{one['slug']}\n{one['title']}"
        for check in report["checks"]
        for one in check["diagnoses"]
        if one["confidence"] == "high"
    ]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_no_situation_is_wrong_at_high_without_a_row(
    case: dict[str, Any], server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rows = concerned(case)
    for left in ([row] for row in rows):
        with providers.without(*left):
            _, report, _ = run(case, server, monkeypatch, tmp_path)
        for pattern in case["must_not_say"]:
            exact = pattern.replace("{origin}", re.escape(server.origin))
            wrong = [text for text in sure(report) if re.search(exact, text, re.IGNORECASE)]
            assert wrong == [], (left, pattern)
        assert report["summary"]["verdict"] == case["verdict"], left
