from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from k3check.errors import UsageError
from k3check.report import saved
from k3check.report.formats import FORMATS, Options, render

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from k3check.model import Report


def test_a_report_survives_the_round_trip(report: Report) -> None:
    text = render("json", report, Options())
    back = saved.parse(text, "report.json")
    assert render("json", back, Options()) == text
    assert back.exit_code == report.exit_code


@pytest.mark.parametrize("name", FORMATS)
def test_a_saved_report_renders_in_every_format(name: str, report: Report) -> None:
    back = saved.parse(render("json", report, Options()), "report.json")
    text = render(name, back, Options())
    assert "the state handed on misses the last token of each 64-token chunk" in text
    assert "Hand over the state after the chunk" in text


def _without(key: str) -> Callable[[dict[str, Any]], object]:
    return lambda data: data.pop(key)


@pytest.mark.parametrize(
    ("change", "code", "where"),
    [
        (lambda d: d.update(schema_version=2), "K3C-087", "schema_version"),
        (lambda d: d.update(schema_version="1"), "K3C-087", "schema_version"),
        (lambda d: d.update(schema_version=True), "K3C-087", "schema_version"),
        (_without("schema_version"), "K3C-086", "report.json"),
        (_without("checks"), "K3C-086", "checks"),
        (lambda d: d["checks"][0].update(outcome="passed"), "K3C-086", "checks.0.outcome"),
        (lambda d: d["checks"][1].update(extra=1), "K3C-086", "checks.1.extra"),
        (lambda d: d["checks"][0]["metrics"].update(x="high"), "K3C-086", "checks.0.metrics.x"),
        (lambda d: d["summary"].update({"pass": -1}), "K3C-086", "summary.pass"),
    ],
)
def test_damage_is_named(
    change: Callable[[dict[str, Any]], object], code: str, where: str, report: Report
) -> None:
    data = json.loads(render("json", report, Options()))
    change(data)
    with pytest.raises(UsageError) as caught:
        saved.parse(json.dumps(data), "report.json")
    assert caught.value.code == code
    assert where in str(caught.value.where)


@pytest.mark.parametrize(
    "text", ["", "not json", "[]", "null", "3", "{}", "[" * 200_000, '{"schema_version": 1}']
)
def test_what_is_not_a_report_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        saved.parse(text, "x.json")
    assert caught.value.code == "K3C-086"


def test_a_changed_count_in_the_summary_is_refused(report: Report) -> None:
    data = json.loads(render("json", report, Options()))
    data["summary"].update({"verdict": "pass", "fail": 0})
    with pytest.raises(UsageError, match="summary"):
        saved.parse(json.dumps(data), "report.json")


def test_files_that_cannot_be_read_are_usage_errors(tmp_path: Path) -> None:
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe\x00")
    cases = [
        (tmp_path / "missing.json", "K3C-085"),
        (tmp_path, "K3C-085"),
        (tmp_path / "nul\x00", "K3C-085"),
        (binary, "K3C-086"),
    ]
    for path, code in cases:
        with pytest.raises(UsageError) as caught:
            saved.read(path)
        assert caught.value.code == code
