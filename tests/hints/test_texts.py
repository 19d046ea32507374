"""Every text behind a code is complete, in both languages, and fills without an error."""

from __future__ import annotations

import re
import string

import pytest

from k3check import hints

CODES = hints.codes()


def placeholders(text: str) -> set[str]:
    return {
        name.split(".")[0].split("[")[0] for _, name, _, _ in string.Formatter().parse(text) if name
    }


def test_there_are_codes() -> None:
    assert CODES


def test_slugs_are_unique() -> None:
    slugs = [hints.get(code).slug for code in CODES]
    assert len(set(slugs)) == len(slugs)


@pytest.mark.parametrize("code", CODES)
def test_texts_are_complete(code: str) -> None:
    entry = hints.get(code)
    assert re.fullmatch(r"K3[OLC]-\d{3}", code)
    assert re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", entry.slug)
    for texts in (entry.title, entry.fix):
        assert set(texts) == set(hints.LANGUAGES)
        assert placeholders(texts["zh"]) <= placeholders(texts["en"])
    for section in ("what", "why", "tell", "cause"):
        assert entry.sections[section]["en"].strip()
    for lang in hints.LANGUAGES:
        assert hints.title(code, lang)
        assert hints.fix(code, lang)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("off by {factor:.3g}", "off by 2.5"),
        ("off by {missing:.3g}", "off by <missing>"),
        ("off by {word:.3g}", "off by much"),
        ("{missing.part} {missing[0]}", "<missing.part> <missing[0]>"),
        ("{{kept}}", "{kept}"),
        ("{one:try/tries}, {factor:try/tries}", "1 try, 2.5 tries"),
        ("{missing:try/tries}", "<missing> tries"),
    ],
)
def test_filling_never_fails(template: str, text: str) -> None:
    assert hints.fill(template, {"factor": 2.5, "word": "much", "one": 1}) == text


def test_a_code_looked_up_alone_is_the_entry_that_all_of_them_hold():
    for code, entry in hints._entries().items():
        assert hints.get(code) == entry
    assert hints.find("K3O-000") is None
    with pytest.raises(KeyError):
        hints.get("K3O-000")
