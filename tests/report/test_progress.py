from __future__ import annotations

import io
import time
from typing import TYPE_CHECKING

from k3check.report.progress import Progress

if TYPE_CHECKING:
    from k3check.model import Report


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def _work(progress: Progress, report: Report) -> None:
    progress.planned(2)
    progress.started("kda_step/dense", "three [bold]steps\x1b[2J")
    progress.finished(report.findings[0])
    progress.started("kda_chunk/boundary", "chunkwise")


def test_nothing_is_drawn_for_short_work(report: Report) -> None:
    stream = Terminal()
    with Progress(stream, {}, after_s=60) as progress:
        _work(progress, report)
    assert stream.getvalue() == ""


def test_nothing_is_drawn_where_nobody_looks(report: Report) -> None:
    pipe = io.StringIO()
    with Progress(pipe, {}, after_s=0) as progress:
        _work(progress, report)
        time.sleep(0.05)
    assert pipe.getvalue() == ""
    dumb = Terminal()
    with Progress(dumb, {"TERM": "dumb"}, after_s=0) as progress:
        _work(progress, report)
        time.sleep(0.05)
    assert dumb.getvalue() == ""


def test_long_work_shows_what_runs_while_nothing_else_happens(report: Report) -> None:
    stream = Terminal()
    with Progress(stream, {}, after_s=0.01) as progress:
        _work(progress, report)
        deadline = time.monotonic() + 5
        while "kda_chunk/boundary" not in stream.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    drawn = stream.getvalue()
    assert "kda_chunk/boundary" in drawn
    assert "1/2" in drawn
    assert "\x1b[2J" not in drawn
    assert drawn.endswith("\x1b[2K")  # the line is removed
    assert "\x1b[?25h" in drawn  # the cursor is back
