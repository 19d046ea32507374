"""Run the command line in this process, with what checks find replaced where a test says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from k3check import cli
from k3check.model import Confidence, Diagnosis, Finding, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

VARIABLES = (
    "K3CHECK_API_KEY",
    "K3CHECK_BASE_URL",
    "K3CHECK_MODEL",
    "K3CHECK_TRACE",
    "NO_COLOR",
    "FORCE_COLOR",
    "LANG",
    "LC_ALL",
    "PYTHONIOENCODING",
)


@dataclass
class Done:
    """What a command did."""

    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty working directory, and none of the variables that change what is shown."""
    monkeypatch.chdir(tmp_path)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def k3check(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Done]:
    """Call it with arguments, as the console script would be."""

    def call(*arguments: str) -> Done:
        monkeypatch.setattr("sys.argv", ["k3check", *arguments])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        captured = capsys.readouterr()
        assert isinstance(stopped.value.code, int)
        return Done(int(stopped.value.code), captured.out, captured.err)

    return call


def finding(outcome: Outcome = Outcome.PASS, **changes: Any) -> Finding:
    """A finding of an operator check."""
    fields: dict[str, Any] = {
        "id": f"kda_step/{outcome.value}",
        "suite": "kda",
        "operator": "kda_step",
        "case": outcome.value,
        "title": "three steps equal the dense formula",
        **changes,
    }
    return Finding(outcome=outcome, **fields)


@dataclass
class FakeRun:
    """Stands for the worker: keeps the request, returns the findings or raises."""

    findings: tuple[Finding, ...] = ()
    error: BaseException | None = None
    request: Any = None

    def __call__(self, request: Any, listener: Any) -> Any:
        from k3check.runners import RunResult

        self.request = request
        if self.error is not None:
            raise self.error
        listener.planned(len(self.findings))
        for found in self.findings:
            listener.started(found.id, found.title)
            listener.finished(found)
        return RunResult(self.findings, {"python": "3.11.7", "torch": "2.13.0"})


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> FakeRun:
    """The operator checks' result, to be set by the test; one pass without."""
    fake = FakeRun((finding(),))
    monkeypatch.setattr("k3check.runners.check", fake)
    return fake


@pytest.fixture
def failing() -> Finding:
    """A failed check with a diagnosis."""
    return finding(
        Outcome.FAIL,
        metrics={"output.rel_l2": 0.5},
        limits={"output.rel_l2": 1e-6},
        diagnoses=(Diagnosis("K3C-080", Confidence.HIGH, values={"name": "x"}),),
    )
