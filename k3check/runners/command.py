"""A command as a runner: inputs as files, the user's program, outputs as files."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from k3check.model import Message
from k3check.nouns.convention import ConventionBroken
from k3check.nouns.runner import Handed, Returned, Runner
from k3check.plain import clean
from k3check.runners import files

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from k3check.nouns.tensors import Tensors
    from k3check.runners.files import Form

FAILED, TOO_LONG, NOT_STARTED = "K3O-754", "K3O-755", "K3O-756"
#: characters of what a command printed that are shown
SHOWN = 2000


@dataclass(frozen=True)
class Command(Runner):
    """A program that is started once a call.

    Attributes:
        argv: with ``{inputs}`` and ``{outputs}``, the folders it reads and writes.
        forms: what it must write, by the inputs.
        directory: where it is started.
        timeout_s: seconds that it may take.
    """

    argv: tuple[str, ...]
    forms: Callable[[Tensors], dict[str, Form]]
    directory: str = "."
    timeout_s: float = 120.0
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    def start(
        self, inputs: Tensors, device: torch.device, *, live: bool = False
    ) -> Callable[[], Returned]:
        """Start the program; see :meth:`Runner.start`."""
        del device, live  # a program has neither

        def finish() -> Returned:
            with tempfile.TemporaryDirectory(prefix="k3check-") as name:
                return self._call(inputs, Path(name))

        return finish

    def _call(self, inputs: Tensors, folder: Path) -> Returned:
        files.write(folder, files.INPUTS, files.as_tensors(inputs), raw=True)
        (folder / files.OUTPUTS).mkdir()
        began = time.perf_counter()
        self._run(folder)
        seconds = time.perf_counter() - began
        found = files.read_outputs(folder, self.forms(inputs), folder)
        return Returned(dict(found), inputs, Handed(calls=1), seconds)

    def _run(self, folder: Path) -> None:
        """Run the program to its end, or to the end of its time with all that it started."""
        places = {"inputs": str(folder / files.INPUTS), "outputs": str(folder / files.OUTPUTS)}
        argv = [filled(word, places) for word in self.argv]
        shown = shlex.join(self.argv)[:200]
        with tempfile.TemporaryFile() as told:
            try:
                process = subprocess.Popen(  # noqa: S603 - the user's own command
                    argv,
                    cwd=self.directory,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=told,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                values = {"command": shown, "error": str(error)}
                raise ConventionBroken(Message(NOT_STARTED, values)) from None
            try:
                status = process.wait(self.timeout_s)
            except subprocess.TimeoutExpired:
                raise ConventionBroken(
                    Message(TOO_LONG, {"command": shown, "limit": f"{self.timeout_s:g}"})
                ) from None
            finally:
                end(process)
            if status:
                told.seek(max(0, told.seek(0, os.SEEK_END) - SHOWN))
                text = clean(told.read().decode("utf-8", "replace")).strip()
                values = {"command": shown, "status": exit_words(status), "said": text or "nothing"}
                raise ConventionBroken(Message(FAILED, values))


def filled(word: str, places: dict[str, str]) -> str:
    """A word of a command with the folders in it; other braces stay as they are."""
    for name, place in places.items():
        word = word.replace("{" + name + "}", place)
    return word


def exit_words(status: int) -> str:
    """``exit status 3`` or ``signal SIGSEGV``."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"signal {signal.Signals(-status).name}"
    except ValueError:
        return f"signal {-status}"


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of a program and of its children."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
