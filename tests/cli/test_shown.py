from __future__ import annotations

import io
import json
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from k3check.model import Finding, Message, Outcome
from k3check.report.formats import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Done, FakeRun


def test_a_pass_ends_with_its_summary(k3check: Callable[..., Done], worker: FakeRun) -> None:
    done = k3check("ops")
    assert done.code == 0
    assert done.out.splitlines()[-1].startswith("pass (built-in operators only): 1 pass in ")
    assert done.err == ""
    assert "\x1b" not in done.out


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_can_be_asked_for(
    name: str, k3check: Callable[..., Done], worker: FakeRun, failing: Finding
) -> None:
    worker.findings = (failing,)
    done = k3check("ops", "--format", name)
    assert done.code == 1
    assert "kda_step/fail" in done.out


def test_a_saved_report_renders_as_the_run_did(
    k3check: Callable[..., Done], worker: FakeRun, failing: Finding
) -> None:
    worker.findings = (failing,)
    direct = k3check("ops", "--format", "json", "--output", "report.json")
    assert direct.code == 1
    assert direct.out == ""
    assert "written to report.json" in direct.err
    assert stat.S_IMODE(Path("report.json").stat().st_mode) == 0o600
    again = k3check("report", "report.json", "--format", "json")
    assert again.code == 1
    assert json.loads(again.out) == json.loads(Path("report.json").read_text())
    page = k3check("report", "report.json", "--format", "html", "--output", "report.html", "-q")
    assert (page.code, page.out, page.err) == (1, "", "")
    assert "<!doctype html>" in Path("report.html").read_text()


def test_a_report_can_come_from_standard_input(
    k3check: Callable[..., Done], worker: FakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = k3check("ops", "--format", "json").out
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert k3check("report", "-").code == 0


def test_configured_operators_alone_are_said_to_be_alone(
    k3check: Callable[..., Done], worker: FakeRun
) -> None:
    done = k3check("ops", "--operator", "kda_chunk=pkg.kda:chunk")
    assert worker.request.candidates["kda_chunk"].target == "pkg.kda:chunk"
    assert worker.request.only_configured
    assert "only the configured operators were checked (kda_chunk)" in done.out


def test_notes_on_the_configuration_come_after_the_checks(
    k3check: Callable[..., Done], worker: FakeRun
) -> None:
    Path("k3check.toml").write_text("[attn_residuals]\nblock_size = 10\n")
    lines = k3check("ops").out.splitlines()
    (check,) = [i for i, line in enumerate(lines) if line.endswith("1 pass")]
    (note,) = [i for i, line in enumerate(lines) if "K3C-035" in line]
    assert check < note < len(lines) - 1


def test_a_key_that_reached_a_finding_is_not_shown_in_any_format(
    k3check: Callable[..., Done], worker: FakeRun, failing: Finding
) -> None:
    key = 'a "quoted" private-key ✓'
    Path("k3check.toml").write_text(f"[api]\napi_key = '{key}'\n")
    leaking = Finding(
        id="x/y",
        suite="kda",
        operator=None,
        case=None,
        outcome=Outcome.FAIL,
        title=f"t {key}",
        evidence={key: [{"deep": f"Bearer {key}"}]},
        location={"place": key},
        hint=Message("K3C-080", {"name": key}),
        notes=(Message("K3C-081", {"name": key}),),
    )
    worker.findings = (leaking,)
    for name in FORMATS:
        for language in ("en", "zh"):
            done = k3check("ops", "-v", "--format", name, "--lang", language)
            everything = done.out + done.err
            assert "private-key" not in everything
            assert "***" in everything.replace("\\*", "*")


def test_colour_and_signs_follow_the_terminal(
    k3check: Callable[..., Done], worker: FakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in k3check("ops").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in k3check("ops").out
    monkeypatch.setenv("LANG", "C")
    assert k3check("ops").out.isascii()


def test_chinese_falls_back_to_english_where_it_cannot_be_written(
    k3check: Callable[..., Done], worker: FakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "通过 (仅内置算子): 1 通过" in k3check("ops", "--lang", "zh").out
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="latin-1"))
    assert k3check("ops", "--lang", "zh").code == 0
    assert b"pass (built-in operators only): 1 pass" in raw.getvalue()


def test_init_writes_a_file_that_loads_and_is_not_overwritten(k3check: Callable[..., Done]) -> None:
    assert k3check("init").code == 0
    assert k3check("config", "show").code == 0
    again = k3check("init")
    assert again.code == 2
    assert "--force" in again.err
    assert k3check("init", "--force").code == 0


def test_config_show_names_origins_and_what_they_shadow(
    k3check: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("k3check.toml").write_text(
        '[api]\nbase_url = "https://a.example"\napi_key = "sk-0123456789"'
    )
    monkeypatch.setenv("K3CHECK_BASE_URL", "https://b.example")
    done = k3check("config", "show", "--base-url", "https://c.example")
    text = " ".join(done.out.split())
    assert done.code == 0
    assert "base_url https://c.example --base-url" in text
    assert "shadows https://b.example from K3CHECK_BASE_URL" in text
    assert "shadows https://a.example from k3check.toml:2" in text
    assert "sk-0123456789" not in done.out
    data = json.loads(k3check("config", "show", "--format", "json").out)
    assert data["dialect"]
    assert all(len(line) <= 80 for line in done.out.splitlines())


def test_config_convert_and_schema_write_what_loads(k3check: Callable[..., Done]) -> None:
    Path("settings.json").write_text('{"baseUrl": "https://a.example", "model": "kimi-k3"}')
    assert k3check("config", "convert", "settings.json", "--output", "k3check.toml").code == 0
    assert "https://a.example" in k3check("config", "show").out
    assert json.loads(k3check("config", "schema").out)["title"] == "k3check configuration"


def test_explain_lists_and_explains(k3check: Callable[..., Done]) -> None:
    assert "K3C-080" in k3check("explain").out
    assert "What is checked" in k3check("explain", "cli.suite").out
    assert json.loads(k3check("explain", "k3c-080", "--format", "json").out)["code"] == "K3C-080"
    assert "检查什么" in k3check("explain", "K3C-080", "--lang", "zh").out
