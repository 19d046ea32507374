"""Runs with real worker processes, and what must be true after each of them."""

from __future__ import annotations

import contextlib
import functools
import gc
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import k3check.runners
from k3check.nouns.request import CandidateSpec, OpsRequest

PLAN = f"{Path(__file__).parent / 'fake_plan.py'}:plan"
OPERATORS = Path(__file__).parent / "bad_operators.py"


@dataclass
class Recorder:
    """A listener that keeps what it is told."""

    events: list[tuple[str, object]] = field(default_factory=list)

    def planned(self, total):
        self.events.append(("planned", total))

    def started(self, check_id, title):
        self.events.append(("started", check_id))

    def finished(self, finding):
        self.events.append(("finished", finding.id))


#: Inherited by whatever a test starts; tests of other processes do not see it.
MARK = "K3CHECK_TEST_MARK"


def _alive(mark):
    """Processes that descend from the test that set the mark."""
    wanted = f"{MARK}={mark}".encode()
    alive = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if wanted in path.read_bytes().split(b"\0"):
                alive.append(path.parent.name)
    return alive


def open_files():
    """What each open file number leads to, but the pipe or file of the listing itself."""
    found = {}
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found[path.name] = str(path.readlink())
    return found


@pytest.fixture
def nothing_left(tmp_path, monkeypatch):
    """Fails a test after which a process, a file number or a temporary file is left."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    mark = str(tmp_path)
    monkeypatch.setenv(MARK, mark)
    gc.collect()
    files = open_files()
    yield mark
    gc.collect()
    assert _alive(mark) == []
    # Only what is new: a file of an earlier test may be closed by the collector meanwhile.
    assert {n: f for n, f in open_files().items() if files.get(n) != f} == {}
    assert list(temporary.iterdir()) == []


@pytest.fixture
def recorder():
    """The listener's class."""
    return Recorder


@pytest.fixture
def workers_alive(nothing_left):
    """Tells which processes that the test started are alive."""
    return functools.partial(_alive, nothing_left)


@pytest.fixture
def run(nothing_left, tmp_path):
    """Run named bad operators (or targets) one after the other in the way the command does."""

    def run(
        *names,
        timeout_s=20.0,
        listener=None,
        directory=None,
        hidden=(),
        memory_limit=None,
        **options,
    ):
        request = OpsRequest(
            candidates={
                name: CandidateSpec(
                    name,
                    target=name if ":" in name else f"{OPERATORS}:{name}",
                    origin="--operator",
                )
                for name in names
            },
            timeout_s=timeout_s,
            directory=str(directory or tmp_path),
            hidden=hidden,
            memory_limit=memory_limit,
        )
        options.setdefault("plan", PLAN)
        return k3check.runners.check(request, listener or Recorder(), **options)

    return run
