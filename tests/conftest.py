"""What holds for every test: one thread a process, which proofs run, and no key in any output.

Tests that carry the mark ``proof`` are long: whole matrices of mistakes, every dtype, every seed.
``--proofs all`` runs them too, ``--proofs K/N`` the K-th of N parts; without it they are left out.

Keys of the tests are canaries: ``sk-canary-...``, and the demo's own ``sk-demo-...``. Whatever is
captured of a test, by its fixtures, from its subprocesses or around it, is searched for them.
"""

from __future__ import annotations

import os
import re
import subprocess
import zlib
from typing import TYPE_CHECKING, Any

import pytest

# Before torch is imported: processes side by side, one thread in each.
os.environ.setdefault("OMP_NUM_THREADS", "1")

if TYPE_CHECKING:
    from collections.abc import Generator

_KEY = re.compile(r"sk-(?:canary|demo)-[A-Za-z0-9]{8,}")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Which of the long proofs run."""
    parser.addoption(
        "--proofs",
        default="none",
        type=proofs,
        metavar="none|all|K/N",
        help="run the long proofs too: all of them, or the K-th of N parts (0 <= K < N)",
    )


def proofs(text: str) -> tuple[int, int]:
    """``none`` is (0, 0), ``all`` (0, 1), ``K/N`` (K, N).

    Raises:
        ValueError: it is none of these.
    """
    if text in ("none", "all"):
        return (0, int(text == "all"))
    part, _, parts = text.partition("/")
    chosen = (int(part), int(parts))
    if not 0 <= chosen[0] < chosen[1]:
        raise ValueError(text)
    return chosen


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the proofs that were not asked for; which part one is in follows from its name."""
    part, parts = config.getoption("--proofs")

    def runs(item: pytest.Item) -> bool:
        if item.get_closest_marker("proof") is None:
            return True
        return parts > 0 and zlib.crc32(item.nodeid.encode()) % parts == part

    left = [item for item in items if not runs(item)]
    items[:] = [item for item in items if runs(item)]
    config.hook.pytest_deselected(items=left)


def grep(output: Any, where: str) -> None:
    """Fail if a key is in the output."""
    text = output.decode("utf-8", "replace") if isinstance(output, bytes) else output
    # Not the match itself: an assertion's message is output too.
    assert not isinstance(text, str) or _KEY.search(text) is None, f"a key is in the {where}"


def pytest_configure(config: pytest.Config) -> None:
    """Search what tests read of captured output, and what subprocesses write."""
    patch = pytest.MonkeyPatch()
    config.add_cleanup(patch.undo)
    read, init = pytest.CaptureFixture.readouterr, subprocess.CompletedProcess.__init__

    def readouterr(self: Any) -> Any:
        captured = read(self)
        grep(captured.out, "standard output")
        grep(captured.err, "standard error")
        return captured

    def completed(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        grep(self.stdout, "standard output of a subprocess")
        grep(self.stderr, "standard error of a subprocess")

    patch.setattr(pytest.CaptureFixture, "readouterr", readouterr)
    patch.setattr(subprocess.CompletedProcess, "__init__", completed)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport]:
    """Search what was captured around a test that passed."""
    report = yield
    if report.passed:
        for name, text in report.sections:
            # Each phase's report has the earlier phases' sections too.
            if name.endswith(report.when) and _KEY.search(text):
                report.outcome = "failed"
                report.longrepr = f"{item.nodeid}: a key is in the {name}"
    return report
