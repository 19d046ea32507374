"""A command in a callable's place: how it is started, how it may end, and what is left of it."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import pytest
import torch

from k3check.nouns.convention import ConventionBroken
from k3check.runners.command import Command
from k3check.runners.files import Form

if TYPE_CHECKING:
    from pathlib import Path

CPU = torch.device("cpu")
DOUBLES = """
import pathlib, sys
inputs, outputs = map(pathlib.Path, sys.argv[1:])
lines = dict(line.split(maxsplit=1) for line in (inputs / "index.txt").read_text().splitlines())
assert lines["x"] == "float32 2 2 3", lines
assert lines["n"] == "int64 0"
(outputs / "y.bin").write_bytes((inputs / "x.bin").read_bytes())
"""


def command(tmp_path: Path, code: str, *, timeout_s: float = 60.0) -> Command:
    (tmp_path / "program.py").write_text(code)
    argv = (sys.executable, "-S", str(tmp_path / "program.py"), "{inputs}", "{outputs}")

    def forms(inputs):
        return {"y": Form(torch.float32, tuple(inputs["x"].shape))}

    return Command(argv, forms, str(tmp_path), timeout_s)


def call(program: Command):
    x = torch.arange(6.0).view(2, 3)
    return program.start({"x": x, "n": 4, "nothing": None}, CPU)(), x


def refusal(program: Command):
    with pytest.raises(ConventionBroken) as broken:
        call(program)
    return broken.value.message


def test_inputs_and_outputs_are_files(tmp_path: Path) -> None:
    returned, x = call(command(tmp_path, DOUBLES))
    assert torch.equal(returned.outputs["y"], x)
    assert returned.handed.calls == 1


def test_a_failing_command_is_quoted(tmp_path: Path) -> None:
    message = refusal(
        command(tmp_path, "import sys; print('no such device \\x1b[31m'); sys.exit(3)")
    )
    assert message.code == "K3O-754"
    assert message.values["status"] == "exit status 3"
    assert "no such device" in message.values["said"]
    assert "\x1b" not in message.values["said"]


def test_a_signal_is_named(tmp_path: Path) -> None:
    message = refusal(command(tmp_path, "import os; os.kill(os.getpid(), 11)"))
    assert message.values["status"] == "signal SIGSEGV"


def test_a_command_that_writes_nothing_is_a_finding(tmp_path: Path) -> None:
    assert refusal(command(tmp_path, "")).code == "K3O-750"


def test_a_command_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    mark = tmp_path / "alive"
    child = f"import time, pathlib; time.sleep(3); pathlib.Path({str(mark)!r}).touch()"
    code = f"import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', {child!r}])\n"
    message = refusal(command(tmp_path, code + "time.sleep(60)", timeout_s=1.0))
    assert message.code == "K3O-755"
    time.sleep(3)
    assert not mark.exists()


def test_a_command_that_is_not_there_is_a_finding(tmp_path: Path) -> None:
    missing = Command((str(tmp_path / "nowhere"),), lambda _inputs: {}, str(tmp_path))
    assert refusal(missing).code == "K3O-756"
