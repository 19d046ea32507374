"""A run that is asked to end takes everything that it started with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Done, FakeRun

ROOT = Path(__file__).parents[2]
HANGS = """\
import os, subprocess, time
from pathlib import Path

def kda_step(state, k, v, alpha, beta):
    child = subprocess.Popen(["sleep", "300"], start_new_session=True)
    Path("pids.new").write_text(f"{os.getpid()} {child.pid}")
    Path("pids.new").rename("pids")
    time.sleep(300)
"""


def runs(pid: int) -> bool:
    """Whether a process lives; one that only waits to be collected does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc what is running")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_run_and_the_workers_tree(number: int, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(HANGS)
    # Under nohup the tests themselves ignore a hang-up, and what they start would inherit that.
    before = signal.signal(number, signal.SIG_DFL)
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "k3check", "ops"),
            *("--operator", "kda_step=slow.py:kda_step", "--convention", "article"),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    signal.signal(number, before)
    try:
        until = time.monotonic() + 120
        while not (tmp_path / "pids").exists():
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < until
            time.sleep(0.05)
        process.send_signal(number)
        _, complaint = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert complaint == "k3check: interrupted\n"
    assert not any(runs(int(pid)) for pid in (tmp_path / "pids").read_text().split())


def test_a_signal_that_is_ignored_stays_ignored(
    k3check: Callable[..., Done], worker: FakeRun
) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert k3check("ops").code == 0
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
