"""A live line on stderr for work that takes longer than a second."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import IO, TYPE_CHECKING, Self

from k3check.hints.phrases import phrase
from k3check.plain import one_line
from k3check.report.terminal import console, look, to_ascii
from k3check.report.texts import label

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

    from k3check.model import Finding

APPEARS_AFTER_S = 1.0

_COUNTED_FROM_S = 3


class Progress:
    """A :class:`~k3check.report.listener.Listener` that shows what is running.

    Use it as a context manager. It writes nothing unless ``stream`` is a terminal and the work
    takes longer than ``after_s``; when the work ends it removes what it drew.
    """

    def __init__(
        self,
        stream: IO[str],
        env: Mapping[str, str],
        *,
        lang: str = "en",
        after_s: float = APPEARS_AFTER_S,
    ) -> None:
        self._stream = stream
        self._look = look(stream, env, lang=lang)
        self._lang = lang if self._look.chinese else "en"
        self._shown = bool(stream.isatty()) and env.get("TERM") != "dumb"
        self._timer = threading.Timer(after_s, self._appear)
        self._timer.daemon = True
        self._lock = threading.Lock()
        self._total = 0
        self._done = 0
        self._failed = 0
        self._current = ""
        self._since = time.monotonic()
        self._closed = False
        self._display: RichProgress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        if self._shown:
            self._timer.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._closed = True
            if self._display is not None:
                # a terminal that went away must not hide the result
                with contextlib.suppress(OSError):
                    self._display.stop()

    def planned(self, total: int) -> None:
        """More checks are going to run."""
        self._total += total
        self._update()

    def started(self, check_id: str, title: str) -> None:
        """A check begins."""
        self._since = time.monotonic()
        self._current = one_line(f"{check_id}  {phrase(title, self._lang, 'titles')}".strip())
        self._update()

    def finished(self, finding: Finding) -> None:
        """A check has its result."""
        self._done += 1
        self._failed += finding.outcome.is_failure
        self._update()

    def _appear(self) -> None:
        # rich's progress is imported only when something takes long enough to need it
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            ProgressColumn,
            TimeElapsedColumn,
        )
        from rich.text import Text

        class Current(ProgressColumn):
            """What runs, drawn anew each time: it counts its seconds."""

            max_refresh = None

            def render(column, _task: object) -> Text:  # noqa: N805 - self is the progress
                return Text(self._text())

        with self._lock:
            if self._closed:
                return
            self._display = Progress(
                MofNCompleteColumn(),
                BarColumn(bar_width=16),
                TimeElapsedColumn(),
                Current(),
                console=console(self._stream, self._look, live=True),
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._task = self._display.add_task(
                self._text(), total=self._total or None, completed=self._done
            )
            self._display.start()

    def _text(self) -> str:
        failed = (
            f"{label('failed_so_far', self._lang, count=self._failed)}, " if self._failed else ""
        )
        # Counter, bar and clock take 36 columns. What goes on for a while counts its seconds;
        # the clock beside it is the whole run's.
        seconds = int(time.monotonic() - self._since)
        since = f", {seconds} s" if seconds >= _COUNTED_FROM_S else ""
        text, room = failed + self._current, max(0, self._look.width - 36 - len(since))
        if self._lang == "en":
            text = text[:room]
        else:
            from rich.text import Text

            cut = Text(text)
            cut.truncate(room)
            text = cut.plain
        text += since
        return to_ascii(text) if self._look.ascii else text

    def _update(self) -> None:
        with self._lock:
            if self._display is not None and self._task is not None and not self._closed:
                self._display.update(
                    self._task,
                    completed=self._done,
                    total=self._total or None,
                    description=self._text(),
                )
