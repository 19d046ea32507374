"""The search for keys in all output finds one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import pytest_runtest_makereport

# Put together here: no source of a test holds it as it is looked for.
KEY = "-".join(("sk", "canary", "0f1e2d3c4b5a"))
PRINTS = f"print('-'.join({KEY.split('-')!r}))"


def test_a_key_that_a_test_reads_from_its_output_is_found(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print(KEY)
    with pytest.raises(AssertionError, match="a key is in the standard output"):
        capsys.readouterr()
    print(KEY, file=sys.stderr)
    with pytest.raises(AssertionError, match="a key is in the standard error"):
        capsys.readouterr()


def test_a_key_that_a_subprocess_writes_is_found() -> None:
    with pytest.raises(AssertionError, match="a key is in the standard output of a subprocess"):
        subprocess.run([sys.executable, "-c", PRINTS], capture_output=True, check=True)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [(f"x {KEY} y", "failed"), ("***", "passed")],
    ids=["key", "masked"],
)
def test_a_key_that_is_merely_captured_fails_the_test(
    text: str, outcome: str, request: pytest.FixtureRequest
) -> None:
    sections = [("Captured stdout call", text)]
    report = pytest.TestReport("a test", ("", 0, ""), {}, "passed", None, "call", sections)
    hook = pytest_runtest_makereport(request.node)
    next(hook)
    with pytest.raises(StopIteration) as stopped:
        hook.send(report)
    assert stopped.value.value.outcome == outcome
    assert KEY not in str(stopped.value.value.longrepr)
