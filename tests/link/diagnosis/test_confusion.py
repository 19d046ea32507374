"""Every known failure gets its own diagnosis and no other."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from k3check import hints
from k3check.link.diagnosis import Phase, classify, table
from k3check.link.diagnosis.observation import Observation
from k3check.link.request import LinkRequest
from k3check.link.wire.exchange import Call, Exchange, Failure, FailureKind, Stage
from k3check.link.wire.redact import Redactor
from k3check.link.wire.urls import Base
from tests.link import page
from tests.link.catalogue import (
    END,
    FIXTURES,
    GOOD,
    HTTP,
    LIMITS,
    NONCE,
    ROLE,
    SHAPE,
    Fixture,
    good,
    usage,
)
from tests.link.conditions import CONDITIONS, UNARRANGED, Condition, observe
from tests.link.conditions import Bench as Place
from tests.link.conftest import CANARY
from tests.link.faulty import chunk, sse

if TYPE_CHECKING:
    from pathlib import Path

    from tests.link.conftest import Bench
    from tests.link.faulty import Connection, Request


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda f: f"{f.code} {f.name}")
def test_fixture_gets_its_diagnosis_and_no_other(fixture: Fixture, bench: Bench) -> None:
    hits = bench.hits(fixture)
    page.RESULTS[fixture.name] = tuple(hit.row.code for hit in hits)
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


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda c: f"{c.code} {c.name}")
def test_condition_gets_its_diagnosis_and_no_other(
    condition: Condition, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if condition.needs:
        pytest.importorskip(condition.needs, reason="makes the certificates")
    place = Place(monkeypatch, tmp_path, {})
    with condition.make(place) as fields:
        hits = classify(observe(fields, place), Redactor((CANARY,)))
    page.RESULTS[condition.name] = tuple(hit.row.code for hit in hits)
    assert [hit.row.slug for hit in hits] == [hints.get(condition.code).slug]
    for lang in hints.LANGUAGES:
        for text in (hints.title, hints.fix):
            shown = text(condition.code, lang, hits[0].values)
            assert "<" not in shown
            assert CANARY not in shown


def test_every_row_has_a_fixture_or_a_condition() -> None:
    shown = {f.code for f in FIXTURES} | {c.code for c in CONDITIONS} | set(UNARRANGED)
    assert {row.code for row in table()} == shown


def test_a_short_answer_after_a_long_thought_is_not_buffered(bench: Bench) -> None:
    """Its pieces come close together, as a fast model writes them, but one by one."""

    def fast(connection: Connection, request: Request) -> None:
        connection.sleep(0.7)
        connection.send(sse(ROLE))
        for character in NONCE:
            connection.send(f"data: {json.dumps(chunk({'content': character}))}\n\n".encode())
            connection.sleep(0.003)
        connection.send(f"data: {json.dumps(END)}\n\ndata: [DONE]\n\n".encode())

    fixture = Fixture("fast after a wait", "", fast, stream=True)
    assert "stream.buffered" not in [hit.row.slug for hit in bench.hits(fixture)]


@pytest.mark.parametrize(
    ("limit", "counted", "enough"), [(64, 64, 8192), (8192, 8192, 16384), (8192, 20_000, 40_000)]
)
def test_more_output_is_advised_than_was_not_enough(
    bench: Bench, limit: int, counted: int, enough: int
) -> None:
    cut = good(
        message={"content": ""},
        choice={"finish_reason": "length"},
        usage=usage(20, counted, 20 + counted),
    )
    fixture = Fixture("cut", "", cut, body={"max_completion_tokens": limit})
    hit = next(hit for hit in bench.hits(fixture) if hit.row.code == "K3L-600")
    for lang in hints.LANGUAGES:
        assert f" {enough} " in hints.fix("K3L-600", lang, hit.values)


def test_the_wrong_name_is_named_and_not_the_library_s_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("trustme", reason="makes the certificates")
    place = Place(monkeypatch, tmp_path, {})
    condition = next(c for c in CONDITIONS if c.code == "K3L-124")
    with condition.make(place) as fields:
        (hit,) = classify(observe(fields, place), Redactor((CANARY,)))
    for lang in hints.LANGUAGES:
        shown = hints.title("K3L-124", lang, hit.values) + hints.fix("K3L-124", lang, hit.values)
        assert "127.0.0.1" in shown or "localhost" in shown
        assert "SSL" not in shown
        assert "verify failed" not in shown


def test_what_nothing_explains_is_said_so() -> None:
    request = LinkRequest(base_url="http://127.0.0.1:1/v1")
    failure = Failure(FailureKind.OTHER, Stage.HEADERS, "SomeError", "something new")
    exchange = Exchange(Call("POST", "http://127.0.0.1:1/v1/chat/completions"), failure=failure)
    seen = Observation(request, Base("http://127.0.0.1:1/v1"), exchange)
    hits = classify(seen, Redactor(()))
    assert [hit.row.slug for hit in hits] == ["wire.other"]
    assert hits[0].values["reason"] == "something new"


def test_later_phases_exclude_earlier_causes(bench: Bench) -> None:
    """Seen alone, rows of an earlier phase never fit what was seen in a later one."""
    for fixture in (*HTTP, *LIMITS, *SHAPE):
        seen = bench.observe(fixture)
        early = [row for row in table() if row.phase < Phase.WIRE and row.when(seen)]
        assert early == [], fixture.name


def test_the_page_in_the_documents_is_up_to_date() -> None:
    for needs in ("trustme", "cryptography"):
        pytest.importorskip(needs, reason="makes the certificates")
    assert page.PAGE.read_text("utf-8") == page.text()
