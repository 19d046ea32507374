"""README, CI and packaging say what is true of the code."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from k3check.errors import ExitCode
from k3check.link import probe_names
from k3check.operators import OPERATORS, SUITES

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Done

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
CHINESE = (ROOT / "README.zh-CN.md").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_ci_runs_the_readmes_test_command_as_it_stands() -> None:
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    extraction = re.search(r"^command=\$\((.*)\)$", script, re.MULTILINE)
    assert extraction is not None
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", extraction[1]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    command = done.stdout.strip()
    assert command in README
    assert command.startswith("pip install -c constraints.txt '.[dev]' && ")
    for tool in (
        "ruff check .",
        "ruff format --check .",
        "mypy",
        "lint-imports",
        "python -m pytest",
    ):
        assert f"&& {tool}" in command
    assert command in CHINESE


def test_every_operator_suite_and_exit_code_is_in_the_readme() -> None:
    for name in (*OPERATORS, *SUITES):
        assert f"`{name}`" in README
    for code in ExitCode:
        assert f"| {code.value} |" in README
        assert f"| {code.value} |" in CHINESE


def test_every_probe_is_in_the_readme() -> None:
    for name in probe_names():
        assert f"`{name}`" in README


@pytest.mark.parametrize("command", ["ops", "link"])
def test_the_options_in_the_readmes_examples_exist(
    command: str, k3check: Callable[..., Done]
) -> None:
    known = k3check(command, "--help").out
    examples = re.findall(rf"^k3check {command} .*$", README + CHINESE, re.MULTILINE)
    assert examples
    for example in examples:
        for option in re.findall(r" (--[a-z-]+)", example):
            assert option in known


def test_linked_files_exist() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README + CHINESE):
        if "://" not in target:
            assert (ROOT / target).is_file(), target


def test_every_dependency_is_pinned_and_has_its_reason() -> None:
    constraints = (ROOT / "constraints.txt").read_text("utf-8")
    pinned = {
        line.partition("==")[0].lower().replace("_", "-")
        for line in constraints.splitlines()
        if "==" in line
    }
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]
    for requirement in wanted:
        name = re.split(r"[><=\[ ]", requirement)[0]
        if name == "k3check":  # an extra of its own, for operators of others as targets
            continue
        assert name.lower() in pinned, name
        assert name in changes, name


def test_picture_is_svg_that_asks_nobody_for_anything() -> None:
    svg = (ROOT / "docs" / "failing-report.svg").read_text("utf-8")
    assert svg.startswith("<svg")
    assert "url(http" not in svg
    assert "kda_recurrent/" in svg.replace("&#160;", " ")
