from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.cells import cell_len

from k3check import hints
from k3check.errors import UsageError
from k3check.report.explain import as_json, as_list, as_text, lookup
from k3check.report.terminal import Look


def test_explain_writes_its_golden_file() -> None:
    golden = Path(__file__).parent / "golden" / "explain.txt"
    assert as_text(hints.get("K3O-901"), "en", Look()) == golden.read_text("utf-8")


@pytest.mark.parametrize("name", ["K3O-901", "k3o-901", "state.boundary", " K3O-901 "])
def test_codes_and_slugs_are_found(name: str) -> None:
    assert lookup(name).code == "K3O-901"


@pytest.mark.parametrize(
    ("typed", "near"), [("K3O-9001", "K3O-901"), ("state.bondary", "state.boundary")]
)
def test_unknown_codes_get_a_suggestion(typed: str, near: str) -> None:
    with pytest.raises(UsageError) as caught:
        lookup(typed)
    assert caught.value.code == "K3C-089"
    assert near in str(caught.value.fix)


def test_editors_get_one_object_or_all() -> None:
    one = json.loads(as_json([hints.get("K3O-901")], "en", single=True))
    assert list(one) == [
        "code", "slug", "title", "fix", "what", "why", "tell", "cause", "sketch", "origin",
    ]  # fmt: skip
    assert one["origin"] == ["owner/repo#1"]
    assert one["why"] is None
    everything = json.loads(as_json([hints.get(c) for c in hints.codes()], "zh", single=False))
    assert [entry["code"] for entry in everything] == list(hints.codes())


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_list_has_every_code_slug_and_title_in_full(width: int, lang: str) -> None:
    entries = [hints.get(code) for code in hints.codes()]
    lines = as_list(entries, lang, Look(width=width)).splitlines()
    heads = [line.split() for line in lines if not line.startswith(" ")]
    assert heads == [[entry.code, entry.slug] for entry in entries]
    assert all(cell_len(line) <= width for line in lines)
    said = "".join("".join(lines).split())
    for entry in entries:
        assert "".join(hints.title(entry.code, lang).split()) in said
