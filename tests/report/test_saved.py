from __future__ import annotations

import json
from dataclasses import replace
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


@pytest.mark.parametrize("name", FORMATS)
def test_whatever_k3check_wrote_is_read_and_shown(name: str, report: Report) -> None:
    """An exception's text may hold anything: lone surrogates, control characters, huge numbers."""
    first, *rest = report.findings
    awkward = replace(
        first,
        title="title \udcff",
        evidence={"error": "name \ud800 \x1b[31m\0", "k\udc80": [10**400, float("nan")]},
        metrics={"m": 10**400, "n": -(10**5000)},
    )
    text = render("json", replace(report, findings=[awkward, *rest]), Options())
    back = saved.parse(text, "report.json")
    assert render("json", back, Options()) == text
    shown = render(name, back, Options())
    shown.encode("utf-8")
    assert not set(map(chr, range(32))) - {"\n", "\t"} & set(shown)


def test_a_lone_surrogate_of_an_older_report_is_read(report: Report) -> None:
    data = json.loads(render("json", report, Options()))
    data["checks"][0]["evidence"] = {"error": "bad \ud800", "\udcff": 1}
    data["checks"][0]["title"] = "\udcff"
    back = saved.parse(json.dumps(data), "report.json")
    for name in FORMATS:
        assert "\\udcff" in render(name, back, Options()) or name in ("junit", "text", "github")


@pytest.mark.parametrize("written", ["1" + "0" * 400, "1" * 5000, "1e400", "NaN", "-Infinity"])
@pytest.mark.parametrize("key", ["duration_s", "metrics", "evidence", "schema_version"])
def test_a_number_that_no_float_holds_is_refused(key: str, written: str, report: Report) -> None:
    data = json.loads(render("json", report, Options()))
    if key == "schema_version":
        data[key] = "HERE"
    else:
        data["checks"][0][key] = "HERE" if key == "duration_s" else {"x": "HERE"}
    text = json.dumps(data).replace('"HERE"', written)
    with pytest.raises(UsageError) as caught:
        saved.parse(text, "report.json")
    assert caught.value.code == "K3C-086"
    assert written[:20] in str(caught.value.found)


def test_control_characters_and_depth_are_refused(report: Report) -> None:
    text = render("json", report, Options())
    data = json.loads(text)
    deep: Any = 1
    for _ in range(500):
        deep = [deep]
    data["checks"][0]["evidence"] = {"x": deep}
    for broken in (text.replace('"title": "', '"title": "\x01', 1), json.dumps(data)):
        with pytest.raises(UsageError) as caught:
            saved.parse(broken, "report.json")
        assert caught.value.code == "K3C-086"
