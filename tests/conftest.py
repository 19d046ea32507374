"""No key in anything that any test makes the program write.

Keys of the tests are canaries: ``sk-canary-...``, and the demo's own ``sk-demo-...``. Whatever is
captured of a test, by its fixtures, from its subprocesses or around it, is searched for them.
"""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

_KEY = re.compile(r"sk-(?:canary|demo)-[A-Za-z0-9]{8,}")


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
