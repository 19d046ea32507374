"""Run ``k3check link`` as a user does: a process, a file, a report; nothing of it holds the key."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w

from tests.peers.servers import clean_env

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).parents[2]
CANARY = "sk-canary-9Wq4LkT2vXb7Zn5RdFs3"
LIMIT_S = 60.0

# ``python -m k3check``, and at its end the largest memory that it had. The rusage that a parent
# gets would not do: on Linux it starts at the parent's own size.
MAIN = """
import atexit, resource, runpy, sys
target = sys.argv.pop(1)
def note():
    try:
        with open("/proc/self/status") as file:
            lines = [line for line in file if line.startswith("VmHWM:")]
        kilobytes = int(lines[0].split()[1])
    except OSError:
        kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with open(target, "w") as file:
        file.write(str(kilobytes))
atexit.register(note)
runpy.run_module("k3check", run_name="__main__", alter_sys=True)
"""


@dataclass(frozen=True)
class Ran:
    """A finished run.

    Attributes:
        code: exit code.
        out, err: what it wrote.
        peak_mb: its largest resident memory in MB.
        seconds: wall time, start of Python included.
    """

    code: int
    out: str
    err: str
    peak_mb: float
    seconds: float

    @property
    def checks(self) -> dict[str, Any]:
        """The JSON report's checks by the probe's name."""
        return {c["id"].removeprefix("link/"): c for c in json.loads(self.out)["checks"]}

    @property
    def outcomes(self) -> dict[str, str]:
        """Outcomes by probe."""
        return {name: check["outcome"] for name, check in self.checks.items()}

    def codes(self, probe: str = "chat") -> list[str]:
        """The codes of a probe's diagnoses."""
        return [d["code"] for d in self.checks[probe]["diagnoses"]]

    def notes(self, probe: str = "chat") -> list[str]:
        """The codes of a probe's notes."""
        return [n["code"] for n in self.checks[probe]["notes"]]

    def attempts(self, probe: str = "chat") -> list[tuple[int | None, str]]:
        """Status and outcome of each try."""
        tries = self.checks[probe]["evidence"]["attempts"]
        return [(one["status"], one["outcome"]) for one in tries]


def traces(key: str) -> list[str]:
    """Spellings of a key that must not be in any output: whole, in base64, a piece of it."""
    encoded = base64.b64encode(key.encode()).decode().rstrip("=")
    return [key, encoded[:-2], key[len(key) // 2 - 6 : len(key) // 2 + 6], key[-10:]]


def link(
    folder: Path,
    base_url: str,
    *,
    key: str = CANARY,
    model: str = "kimi-k3",
    probes: Sequence[str] = (),
    options: Sequence[str] = (),
    timeout_s: float = 20.0,
    retries: int = 0,
    env: Mapping[str, str] | None = None,
    format_: str = "json",
) -> Ran:
    """Write a configuration and run the check with it."""
    file = folder / "config.toml"
    api = {"base_url": base_url, "api_key": key, "timeout_seconds": timeout_s,
           "max_retries": retries}  # fmt: skip
    file.write_text(tomli_w.dumps({"api": api, "model": {"name": model}}), "utf-8")
    file.chmod(0o600)
    arguments = ["link", *probes, "-c", str(file), "-v", "--format", format_, *options]
    ran = k3check(arguments, folder, env or {})
    for trace in traces(key):
        assert trace not in ran.out, ran.out
        assert trace not in ran.err, ran.err
    assert "Traceback" not in ran.err
    return ran


def k3check(arguments: Sequence[str], folder: Path, env: Mapping[str, str]) -> Ran:
    """Run k3check and look at what it needed."""
    out, err, memory = folder / "out.txt", folder / "err.txt", folder / "memory.txt"
    memory.unlink(missing_ok=True)
    command = [sys.executable, "-c", MAIN, str(memory), *arguments]
    begun = time.monotonic()
    with out.open("wb") as to_out, err.open("wb") as to_err:
        done = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=to_out,
            stderr=to_err,
            cwd=folder,
            env=clean_env({"PYTHONPATH": str(ROOT), "NO_COLOR": "1", **env}),
            timeout=LIMIT_S,
        )
    seconds = time.monotonic() - begun
    said, complained = out.read_text("utf-8"), err.read_text("utf-8")
    assert memory.exists(), complained
    return Ran(done.returncode, said, complained, int(memory.read_text()) / 1024, seconds)
