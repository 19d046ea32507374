"""The README's first command, for real: built-in operators and a server of our own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

ROOT = Path(__file__).parents[2]


def k3check(*arguments: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    kept = {n: v for n, v in os.environ.items() if not n.startswith("K3CHECK_")}
    return subprocess.run(
        [sys.executable, "-m", "k3check", *arguments],
        cwd=cwd,
        env={**kept, "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_demo_passes_whatever_lies_in_the_directory_and_environment(tmp_path: Path) -> None:
    (tmp_path / "k3check.toml").write_text("this is [no toml")
    done = k3check(
        "all",
        "--demo",
        "--format",
        "json",
        cwd=tmp_path,
        K3CHECK_BASE_URL="https://example.invalid",
        K3CHECK_API_KEY="a-key-that-must-not-appear",
        HTTP_PROXY="http://127.0.0.1:9",
        http_proxy="http://127.0.0.1:9",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "a-key-that-must-not-appear" not in done.stdout + done.stderr
    report = json.loads(done.stdout)
    schema = json.loads((ROOT / "k3check/report/schema-v1.json").read_text("utf-8"))
    jsonschema.validate(report, schema)
    suites = {check["suite"] for check in report["checks"]}
    assert {"kda", "flashkda", "link"} <= suites
    outcomes = {check["id"]: check["outcome"] for check in report["checks"]}
    assert outcomes["link/chat"] == "pass"
    assert {"fail", "crashed", "timed_out"}.isdisjoint(outcomes.values())


def test_an_operator_without_its_correction_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "step.py").write_text(
        "def kda_step(state, k, v, alpha, beta):\n"
        "    return alpha[:, None] * state + beta * k[:, None] * v[None, :]\n"
    )
    done = k3check(
        "ops",
        "--operator",
        "kda_step=step.py:kda_step",
        "--convention",
        "article",
        cwd=tmp_path,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "fail: " in done.stdout.splitlines()[-1]
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("missing.py:f", "missing.py"),
        ("step.py:missing", "missing"),
        ("broken.py:f", "ZeroDivisionError"),
        ("no_such_module_at_all:f", "no_such_module_at_all"),
    ],
)
def test_a_target_that_does_not_load_is_a_usage_error(
    target: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "step.py").write_text("def f(): ...\n")
    (tmp_path / "broken.py").write_text("def f(): ...\n1 / 0\n")
    done = k3check("ops", "--operator", f"kda_step={target}", cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "k3check/" not in done.stderr
