"""The hooks, run by the real pre-commit in a scratch repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

STEP = """
def kda_step(state, k, v, alpha, beta):
    decayed = alpha[:, None] * state
    written = {sign} beta * (k @ decayed)
    return decayed + k[:, None] * written[None, :]
"""
RIGHT = STEP.format(sign="beta * v -")
WRONG = STEP.format(sign="beta * v +")

CONFIG = """
[operators.kda_step]
target = "kernels/step.py:kda_step"
convention = "article"
"""


@dataclass
class Repository:
    """A scratch repository and the environment that git and pre-commit run in."""

    path: Path
    env: dict[str, str]

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.path,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def git(self, *arguments: str) -> str:
        done = self.run("git", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, message: str) -> subprocess.CompletedProcess[str]:
        return self.run("git", "commit", "-m", message)

    def write(self, name: str, text: str) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self.git("add", name)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Somebody's repository with our hooks installed, and k3check on the path."""
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    script = bin_ / "k3check"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m k3check "$@"\n')
    script.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("GIT_", "K3CHECK_"))}
    env = {
        **kept,
        "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(home),
        "PRE_COMMIT_HOME": str(tmp_path / "cache"),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@example.org",
        "NO_COLOR": "1",
    }
    hooks = Repository(tmp_path / "hooks", env)
    hooks.path.mkdir()
    hooks.git("init", "-q")
    shutil.copy(ROOT / ".pre-commit-hooks.yaml", hooks.path)
    hooks.git("add", ".pre-commit-hooks.yaml")
    hooks.git("commit", "-q", "-m", "hooks")
    theirs = Repository(tmp_path / "theirs", env)
    theirs.path.mkdir()
    theirs.git("init", "-q")
    rev = hooks.git("rev-parse", "HEAD")
    theirs.write(
        ".pre-commit-config.yaml",
        f"repos:\n- repo: {hooks.path}\n  rev: {rev}\n  hooks:\n"
        "  - id: k3check-ops\n  - id: k3check-link\n",
    )
    installed = theirs.run(sys.executable, "-m", "pre_commit", "install")
    assert installed.returncode == 0, installed.stdout + installed.stderr
    return theirs


def test_a_commit_of_a_broken_operator_is_refused_and_of_a_right_one_passes(
    repository: Repository,
) -> None:
    repository.write("k3check.toml", CONFIG)
    repository.write("kernels/step.py", WRONG)
    refused = repository.commit("break it")
    said = refused.stdout + refused.stderr
    assert refused.returncode == 1, said
    assert "k3check ops" in said
    assert "kda_step/" in said
    assert "fail: " in said
    assert "Traceback" not in said
    repository.write("kernels/step.py", RIGHT)
    passed = repository.commit("mend it")
    said = passed.stdout + passed.stderr
    assert passed.returncode == 0, said
    assert "k3check ops" in said
    assert "Passed" in said


def test_a_commit_of_a_text_runs_neither_operators_nor_the_endpoint(repository: Repository) -> None:
    repository.write("notes.md", "nothing that computes\n")
    done = repository.commit("notes")
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "no files to check" in said
    assert "k3check link" not in said


def test_the_endpoint_is_checked_when_asked_for(repository: Repository) -> None:
    repository.write("k3check.toml", '[api]\nbase_url = "http://127.0.0.1:9/?utm_source=x"\n')
    done = repository.run(
        sys.executable, "-m", "pre_commit", "run", "--hook-stage", "manual", "k3check-link"
    )
    assert done.returncode == 1
    assert "internal error" not in done.stdout
    assert "✗ link/" in done.stdout


def test_the_manifest_is_valid() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pre_commit",
            "validate-manifest",
            str(ROOT / ".pre-commit-hooks.yaml"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
