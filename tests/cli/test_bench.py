"""``k3check bench``: what is asked of the comparison, what is written, how it exits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from k3check.checking.bench import run
from k3check.report.bench import Bench, Floor, Row, toggled

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Done

ROWS = (
    Row(toggled(ut=False, bound=False), 0.02, 0.001, 9, correct=True),
    Row(toggled(ut=True, bound=True), 0.005, 0.0001, 9, correct=True),
)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    seen: list[tuple[object, ...]] = []

    def compare(request: object, sizes: object, tell: object) -> Bench:
        seen.append((request, sizes))
        rows = (*ROWS, Row("your kda_chunk", correct=False, why="0.5")) if fails else ROWS
        return Bench({"T": 512}, "float32", "cpu", Floor(1e-4, 1e-4, 1e-5, 1e10, 1e11), rows, {})

    fails: list[bool] = []
    monkeypatch.setattr(run, "compare", compare)
    monkeypatch.setattr(run, "fails", fails, raising=False)
    return seen


def test_text(k3check: Callable[..., Done], asked: list[tuple[object, ...]]) -> None:
    done = k3check("bench", "--tokens", "100", "--heads", "3")
    assert done.code == 0
    assert "4.00 times as fast" in done.out
    assert asked[0][1] == (100, 3, None, None)


def test_json_in_a_file(
    k3check: Callable[..., Done], asked: list[tuple[object, ...]], tmp_path: Path
) -> None:
    done = k3check("bench", "--format", "json", "--output", str(tmp_path / "b.json"))
    assert done.code == 0
    assert json.loads((tmp_path / "b.json").read_text())["toggles_ratio"] == 4
    assert done.out == ""
    assert len(asked) == 1


def test_a_wrong_engine_fails(
    k3check: Callable[..., Done], asked: list[tuple[object, ...]]
) -> None:
    run.fails.append(True)  # type: ignore[attr-defined] # the fixture's
    assert k3check("bench", "--lang", "zh").code == 1


def test_an_impossible_size(k3check: Callable[..., Done], asked: list[tuple[object, ...]]) -> None:
    assert k3check("bench", "--tokens", "0").code == 2
    assert asked == []
