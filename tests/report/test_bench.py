"""How a speed comparison is written."""

from __future__ import annotations

import json

import pytest

from k3check.report.bench import Bench, Floor, Row, duration, to_json, to_text, toggled

ON, OFF = toggled(ut=True, bound=True), toggled(ut=False, bound=False)
FOUND = Bench(
    shape={"T": 512, "H": 1, "K": 64, "V": 64},
    dtype="float32",
    device="cpu, 2 threads",
    floor=Floor(1e-4, 1e-4, 2e-5, 2e10, 1e11),
    rows=(
        Row(OFF, 0.02, 0.001, 9, correct=True),
        Row(ON, 0.005, 0.0001, 9, correct=True),
        Row("your kda_chunk", 0.001, 0.0, 9, 47.0, "some_kernel", True),
        Row("fla chunk_kda", why="fla is not installed"),
    ),
    environment={"torch": "2.6"},
)


def test_a_bar_chart():
    text = to_text(FOUND)
    assert "T=512 H=1 K=64 V=64, float32, cpu, 2 threads" in text
    bars = [line.count("█") for line in text.splitlines() if "±" in line]
    assert bars == [20, 5, 1]
    assert "4.00 times as fast" in text
    assert "5.00 times the speed" in text
    assert "fla is not installed" in text
    assert "first call 47 s" in text
    assert "some_kernel" in text


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_fails_is_said(lang):
    rows = (Row("a", 1e-6, impossible=True, correct=True), Row("b", correct=False, why="0.5"))
    found = Bench(FOUND.shape, "float32", "cpu", FOUND.floor, rows, {})
    assert found.failed
    text = to_text(found, lang)
    assert "0.5" in text
    assert ("faster than this device" in text) == (lang == "en")


def test_json_has_every_number():
    said = json.loads(to_json(FOUND))
    assert said["schema_version"] == 1
    assert said["verdict"] == "pass"
    assert said["toggles_ratio"] == 4
    assert said["rows"][0]["seconds"] == 0.02
    assert said["rows"][3]["seconds"] is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.5, "1.5 s"), (0.00123, "1.23 ms"), (4.56e-5, "45.6 us"), (1e-7, "0.1 us")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text
