from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from k3check import __version__
from k3check.errors import InternalError, NothingToCheck, UsageError
from k3check.model import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Done, FakeRun

    from k3check.model import Finding

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def make(outcome: Outcome) -> Finding:
    from k3check.model import Finding

    return Finding(
        id=f"x/{outcome.value}", suite="kda", operator=None, case=None, outcome=outcome, title="t"
    )


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ((Outcome.PASS,), 0),
        ((Outcome.PASS, Outcome.ACCEPTABLE, Outcome.SKIPPED), 0),
        ((Outcome.PASS, Outcome.FAIL), 1),
        ((Outcome.CRASHED,), 1),
        ((Outcome.TIMED_OUT, Outcome.SKIPPED), 1),
        ((Outcome.SKIPPED,), 3),
        ((), 3),
    ],
)
def test_the_verdict_is_the_exit_code(
    outcomes: tuple[Outcome, ...], code: int, k3check: Callable[..., Done], worker: FakeRun
) -> None:
    worker.findings = tuple(map(make, outcomes))
    assert k3check("ops").code == code


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UsageError("K3C-060", "no file kernels/kda.py", where="--operator"), 2, "K3C-060"),
        (NothingToCheck("no case fits"), 3, "nothing was checked: no case fits"),
        (InternalError("a bad plan", trace="Traceback: secret depths"), 3, "a bad plan"),
        (RuntimeError("boom"), 3, "RuntimeError: boom"),
        (RecursionError(), 3, "RecursionError"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_errors_are_one_message_on_stderr_and_never_a_traceback(
    error: BaseException, code: int, said: str, k3check: Callable[..., Done], worker: FakeRun
) -> None:
    worker.error = error
    done = k3check("ops")
    assert done.code == code
    assert done.out == ""
    assert said in done.err
    assert "Traceback" not in done.err


def test_an_internal_error_says_how_to_get_its_trace_and_gives_it(
    k3check: Callable[..., Done], worker: FakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker.error = RuntimeError("boom")
    assert "K3CHECK_TRACE=1" in k3check("ops").err
    monkeypatch.setenv("K3CHECK_TRACE", "1")
    assert "Traceback" in k3check("ops").err


def test_a_key_in_an_internal_error_is_hidden(
    k3check: Callable[..., Done], worker: FakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("K3CHECK_API_KEY", "a-very-private-key")
    monkeypatch.setenv("K3CHECK_TRACE", "1")
    worker.error = RuntimeError("header a-very-private-key is bad")
    assert "a-very-private-key" not in k3check("ops").err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("opss",), "Did you mean 'ops'"),
        (("ops", "--formt", "json"), "--format"),
        (("ops", "--format", "xml"), "xml"),
        (("ops", "--seed", "x"), "--seed"),
        (("ops", "kdaa"), 'Did you mean "kda"'),
        (("ops", "kda_chunk"), 'Did you mean "flashkda"'),
        (("ops", "--operator", "kda_chunk"), "NAME=package.module:function"),
        (("ops", "--operator", "kda_chnk=a:b"), 'Did you mean "kda_chunk"'),
        (("ops", "--operator", "kda_chunk=a:b", "--operator", "kda_chunk=c:d"), "twice"),
        (("ops", "--convention", "kda_chunk=fla"), "--operator kda_chunk=TARGET"),
        (("ops", "--dtype", "bf16"), 'Did you mean "bfloat16"'),
        (("ops", "--device", "gpu"), 'Did you mean "cuda"'),
        (("ops", "--tolerance", "nan"), "auto"),
        (("ops", "--tolerance", "0"), "above 0"),
        (("ops", "--timeout", "-1"), "above 0"),
        (("ops", "--timeout", "nan"), "above 0"),
        (("ops", "--memory-limit", "lots"), "2GiB"),
        (("ops", "--memory-limit", "1KiB"), "at least 1MiB"),
        (("ops", "-v", "-q"), "exclude"),
        (("ops", "--demo", "--operator", "kda_step=a:b"), "exclude"),
        (("link", "--demo", "--base-url", "https://x"), "exclude"),
        (("all", "--demo", "-c", "x.toml"), "exclude"),
        (("link", "--api-key-env", "NOT_SET_HERE"), "NOT_SET_HERE is not set"),
        (("ops", "--output", "missing/report.json"), "missing"),
        (("ops", "-c", "missing.toml"), "missing.toml"),
        (("report", "missing.json"), "missing.json"),
        (("explain", "K3O-9999"), "k3check explain"),
        (("config", "convert"), "k3check config convert FILE"),
        (("config", "show", "-c", "."), "K3C-002"),
    ],
)
def test_usage_errors_exit_with_2_and_help(
    arguments: tuple[str, ...], said: str, k3check: Callable[..., Done], worker: FakeRun
) -> None:
    done = k3check(*arguments)
    assert done.code == 2
    assert said in " ".join(done.err.split())
    assert done.out == ""
    assert worker.request is None


def test_version(k3check: Callable[..., Done]) -> None:
    done = k3check("--version")
    assert (done.code, done.out) == (0, f"k3check {__version__}\n")


@pytest.mark.parametrize("command", ["ops", "link", "all", "init", "explain", "report", "config"])
def test_every_command_has_help(command: str, k3check: Callable[..., Done]) -> None:
    done = k3check(command, "--help")
    assert done.code == 0
    assert "Usage: k3check" in done.out


def _python(code: str, *arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        env=env,
        timeout=60,
        check=False,
        **options,  # type: ignore[call-overload]  # passed through
    )


MAIN = "from k3check.cli import main; main()"
TORCH_FREE = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ImportError("torch was imported")
sys.meta_path.insert(0, Refuse())
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("--version",),
        ("ops", "--help"),
        ("explain",),
        ("explain", "K3C-080"),
        ("config", "show"),
        ("config", "schema"),
        ("init",),
        ("link", "--demo", "-q"),
    ],
)
def test_these_commands_run_without_torch(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = _python(TORCH_FREE + MAIN, *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_help_imports_nothing_heavy() -> None:
    code = """
import sys
sys.argv = ["k3check", "--help"]
from k3check.cli import main
try:
    main()
except SystemExit:
    heavy = {"torch", "httpx", "pydantic", "rich.console"} & set(sys.modules)
    sys.exit(",".join(sorted(heavy)) or 0)
"""
    done = _python(code)
    assert done.returncode == 0, done.stderr


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    producer = subprocess.Popen(
        [sys.executable, "-m", "k3check", "explain", "--format", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env,
        cwd=tmp_path,
    )
    assert producer.stdout is not None
    assert producer.stderr is not None
    producer.stdout.read(1)
    producer.stdout.close()
    complaint = producer.stderr.read()
    producer.stderr.close()
    assert producer.wait(60) == 0
    assert complaint == b""


@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("asked", ["explain", "--help", "ops --help", "--version"])
def test_a_full_disk_is_a_message(asked: str, buffered: bool, tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    with full.open("w") as out:
        env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "" if buffered else "1"}
        done = subprocess.run(
            [sys.executable, "-m", "k3check", *asked.split()],
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            env=env,
            cwd=tmp_path,
            timeout=60,
            check=False,
        )
    assert done.returncode == 2
    assert "K3C-092" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_closed_standard_input_is_a_message(tmp_path: Path) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "{sys.executable}" -m k3check report - <&-'],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "standard input is closed" in done.stderr
    assert "internal error" not in done.stderr


def test_python_m_is_the_same_program(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "k3check", "explain", "K3C-080", "--format", "json"],
        capture_output=True,
        text=True,
        env=env,
        cwd=tmp_path,
        timeout=60,
        check=True,
    )
    assert json.loads(done.stdout)["slug"] == "cli.suite"
