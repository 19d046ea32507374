"""Start other people's programs on the loopback, wait until they listen, and end them."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# Set where everything must be there: then what is missing fails instead of being skipped.
REQUIRED = "K3CHECK_PEERS_REQUIRED"
VENV = "K3CHECK_PEERS_VENV"


def missing(what: str) -> None:
    """Skip for want of a peer, or fail where all of them were promised."""
    reason = f"{what} is not installed: see tests/peers/install.sh, and set {VENV} to its folder"
    if os.environ.get(REQUIRED):
        pytest.fail(reason)
    pytest.skip(reason)


def program(name: str) -> str:
    """The path of a program of the distribution."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if found is None:
        missing(name)
    return str(found)


def in_venv(name: str) -> str:
    """The path of a program of the peers' virtual environment."""
    folder = os.environ.get(VENV)
    found = Path(folder) / "bin" / name if folder else None
    if found is None or not found.exists():
        missing(name)
    return str(found)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def clean_env(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's variables without those that would change how an endpoint is reached."""
    away = ("proxy", "k3check_api", "k3check_base", "k3check_model", "ssl_cert", "openai_",
            "anthropic_", "litellm_", "llmock_", "virtual_env")  # fmt: skip
    kept = {k: v for k, v in os.environ.items() if not any(part in k.lower() for part in away)}
    return kept | dict(more or {})


class Process:
    """A running program; its output lies in a file for when it does not come up."""

    def __init__(
        self, command: Sequence[str], log: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self._log = log
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=clean_env(env),
                cwd=log.parent,
                start_new_session=True,  # so that its children end with it
            )

    def wait_for(self, port: int, seconds: float) -> None:
        """Wait until a port takes connections."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self._process.poll() is not None:
                break
            with socket.socket() as sock:
                sock.settimeout(1)
                if sock.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.05)
        said = self._log.read_text("utf-8", "replace")[-4000:]
        raise AssertionError(f"{self._process.args} does not listen on port {port}:\n{said}")

    def stop(self) -> None:
        """End it and everything it has started."""
        for how, seconds in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
            if self._process.poll() is None:
                os.killpg(self._process.pid, how)
                try:
                    self._process.wait(seconds)
                except subprocess.TimeoutExpired:
                    continue
        self._process.wait()

    @property
    def log(self) -> str:
        """What it has said so far."""
        return self._log.read_text("utf-8", "replace")


@contextmanager
def running(
    command: Sequence[str],
    log: Path,
    port: int,
    env: Mapping[str, str] | None = None,
    seconds: float = 20,
) -> Iterator[Process]:
    """A program that listens on a port, until the end of the block."""
    process = Process(command, log, env)
    try:
        process.wait_for(port, seconds)
        yield process
    finally:
        process.stop()
