"""A process of ours as its parent sees it: start, listen with a deadline, kill with its tree.

POSIX only, like the accelerators' own stacks that it is made for.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any, Self

import k3check
from k3check.errors import InternalError
from k3check.runners import printed, tree
from k3check.runners.wire import BrokenWireError, Receiver, framed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

#: Loads the very package that the supervisor runs from, whether or not it is installed, without
#: putting anything on the worker's path; ``-P`` keeps the user's ``random.py`` from torch's import.
_BOOT = """\
import importlib.util as u, sys
s = u.spec_from_file_location("k3check", sys.argv[1])
sys.modules["k3check"] = m = u.module_from_spec(s)
s.loader.exec_module(m)
import importlib
importlib.import_module(sys.argv[2]).main(sys.argv[3:])
"""

#: Marks every process that descends from a worker, even one that left its process group.
COOKIE = "K3CHECK_WORKER"

#: The user's code has no use for these.
_SECRETS = ("K3CHECK_API_KEY",)

_TICK_S = 0.25
_READ_BYTES = 2**16
_READS_AT_ONCE = 64
_KILL_ROUNDS = 100

#: Whoever prints more than this loses the beginning; only the tail is ever shown.
CAPTURE_LIMIT_BYTES = 64 * 2**20


class DeadlineError(Exception):
    """The process said nothing until the deadline."""


class Child:
    """A process of ours, its private pipes, and the files that catch what it prints.

    A context manager: leaving it kills the process and everything that it started.
    """

    def __init__(
        self,
        main: str,
        order: Mapping[str, Any],
        *,
        directory: str,
        hidden: Sequence[str] = (),
        files: Sequence[int] = (),
        listens: bool = False,
    ) -> None:
        """Start the process.

        Args:
            main: the module whose ``main`` it runs.
            order: plain data that it finds in a file.
            directory: where it works.
            hidden: variables that its environment lacks.
            files: numbers of further files that it inherits.
            listens: whether it is told anything later on.

        Raises:
            InternalError: the process cannot be started.
        """
        self._cookie = secrets.token_hex(16)
        self._receiver = Receiver()
        self._queue: list[dict[str, Any]] = []
        self._broken: BrokenWireError | None = None
        self._ended = False
        self._start = 0
        self._before_cut = b""
        with contextlib.ExitStack() as opened:
            # Files without a name: nothing to remove, whoever is killed.
            self._printed = opened.enter_context(tempfile.TemporaryFile(buffering=0))
            self._stack = opened.enter_context(tempfile.TemporaryFile(buffering=0))
            said = opened.enter_context(tempfile.TemporaryFile(buffering=0))
            self._read_fd, write_fd = os.pipe()
            opened.callback(os.close, self._read_fd)
            theirs = [write_fd]
            self._tell_fd = -1
            if listens:
                orders_fd, self._tell_fd = os.pipe()
                opened.callback(os.close, self._tell_fd)
                theirs.append(orders_fd)
            try:
                said.write(json.dumps(order).encode())
                said.seek(0)
                fds = (said.fileno(), write_fd, self._stack.fileno())
                more = (*theirs[1:], *files)
                self._process = self._spawn(main, directory, hidden, fds, more)
                tree.keep(self._process.pid)
            except OSError as error:
                raise InternalError(f"a process cannot be started: {error}") from error
            finally:
                for fd in theirs:
                    os.close(fd)
            said.close()
            os.set_blocking(self._read_fd, False)
            self._selector = opened.enter_context(selectors.DefaultSelector())
            self._selector.register(self._read_fd, selectors.EVENT_READ)
            self._files = opened.pop_all()

    def _spawn(
        self,
        main: str,
        directory: str,
        hidden: Sequence[str],
        fds: tuple[int, int, int],
        more: Sequence[int],
    ) -> subprocess.Popen[bytes]:
        """Start the interpreter; it inherits the files and nothing else."""
        secret = {*_SECRETS, *hidden}
        environment = {k: v for k, v in os.environ.items() if k not in secret}
        environment[COOKIE] = ".".join(filter(None, [os.environ.get(COOKIE), self._cookie]))
        # Threads that wait by spinning take the processor from those that work: on a busy machine
        # the same checks take four times as long. The user's own choice stands.
        environment.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        # Triton keeps what it has compiled, but not what it has measured, unless it is asked to.
        environment.setdefault("TRITON_CACHE_AUTOTUNING", "1")
        # Appending, so that writing goes on at the new end after the file was cut.
        sink = self._printed.fileno()
        fcntl.fcntl(sink, fcntl.F_SETFL, fcntl.fcntl(sink, fcntl.F_GETFL) | os.O_APPEND)
        numbers = (str(number) for number in (*fds, os.getpid(), *more))
        return subprocess.Popen(  # noqa: S603 - our own interpreter and arguments
            [sys.executable, "-P", "-c", _BOOT, str(k3check.__file__), main, *numbers],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            cwd=directory,
            env=environment,
            pass_fds=(*fds, *more),
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Kill the process tree and close every file."""
        self.close()

    def close(self) -> None:
        """Kill the process and everything that it started, and close every file."""
        try:
            self._kill()
        finally:
            self._files.close()

    def tell(self, kind: str, **values: Any) -> None:
        """Send a message; one that the process cannot take any more is dropped."""
        rest = memoryview(framed(kind, values))
        with contextlib.suppress(OSError):
            while rest:
                rest = rest[os.write(self._tell_fd, rest) :]

    def receive(self, deadline: float) -> dict[str, Any] | None:
        """The next message; None when the process ended or closed the pipe.

        Args:
            deadline: in the time of :func:`time.monotonic`.

        Raises:
            DeadlineError: nothing came until then.
            BrokenWireError: what came is no message.
        """
        while not self._queue:
            if self._broken is not None:
                raise self._broken
            if self._ended:
                return None
            left = deadline - time.monotonic()
            readable = self._selector.select(max(0.0, min(_TICK_S, left)))
            # Asked before reading: what was sent before the end is read below. A pipe that a
            # stray process still holds open gives no end of file, hence the question.
            exited = self._process.poll() is not None
            if readable or exited:
                self._read()
            self._ended = self._ended or exited
            if not readable and not exited:
                self._limit_output()
            # An answer that came in time is not late because nobody asked for it before.
            if left <= 0 and not (self._queue or self._broken or self._ended):
                raise DeadlineError
        return self._queue.pop(0)

    def _read(self) -> None:
        """Take what the pipe holds, and notice its end."""
        for _ in range(_READS_AT_ONCE):
            try:
                data = os.read(self._read_fd, _READ_BYTES)
            except BlockingIOError:
                break
            if not data:
                self._ended = True
                break
            self._receiver.feed(data)
        try:
            self._queue += self._receiver.messages()
        except BrokenWireError as error:
            # What came whole before the garbage counts: it tells whose garbage this is.
            self._broken = error

    def _limit_output(self) -> None:
        """Cut a captured output that has become too long; its tail is kept."""
        fd = self._printed.fileno()
        size = os.fstat(fd).st_size
        if size > CAPTURE_LIMIT_BYTES:
            self._before_cut = os.pread(fd, printed.TAIL_BYTES, size - printed.TAIL_BYTES)
            os.ftruncate(fd, 0)

    def exit_status(self, patience_s: float = 2.0) -> int | None:
        """The exit status, negative for a signal; None for a process that lives on."""
        try:
            return self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            return None

    def ask_for_stack(self, patience_s: float = 1.0) -> str:
        """Have the process say where it is (in Python), if it still can."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGUSR1)
        until = time.monotonic() + patience_s
        while time.monotonic() < until and self._process.poll() is None and not self.stack():
            time.sleep(0.02)
        time.sleep(0.02)  # the rest of the stack follows its first line at once
        return self.stack()

    def stack(self) -> str:
        """Where the process was when it crashed or was asked, in the user's frames."""
        fd = self._stack.fileno()
        return printed.stack(os.pread(fd, printed.STACK_BYTES, 0).decode(errors="replace"))

    def mark(self) -> None:
        """What is printed from here on belongs together."""
        self._start, self._before_cut = os.fstat(self._printed.fileno()).st_size, b""

    def printed(self) -> str:
        """The tail of what was printed since the mark."""
        fd = self._printed.fileno()
        size = os.fstat(fd).st_size
        was_cut = bool(self._before_cut) or self._start > size
        start = 0 if was_cut else self._start
        end = size
        first = max(start, end - printed.TAIL_BYTES)
        data = os.pread(fd, max(0, end - first), first)
        if was_cut:
            data = (self._before_cut + data)[-printed.TAIL_BYTES :]
        return printed.tail(data, complete=first == start and not was_cut)

    def _kill(self) -> None:
        """Kill the process, its group, and whatever else descends from it.

        What it started is found by what it inherited, and by its ancestors: as long as a process
        of ours that adopts orphans lives (stopped, so that it starts nothing), nothing of its own
        can leave its tree, whatever its environment and its session are.
        """
        pid = self._process.pid
        adopts = self._process.poll() is None
        if adopts:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGSTOP)
            _kill_all(lambda: tree.descendants(pid))
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        # A process inside a driver's call may take a while to die; it will, later.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        tree.let_go(pid)
        # What it left to this process, if that adopts orphans.
        _kill_all(lambda: [*tree.marked(COOKIE, self._cookie), *tree.orphans()])
        tree.bury()


def _kill_all(find: Callable[[], Sequence[int]]) -> None:
    """Kill processes until there are no more: one that is killed may just have forked."""
    for _ in range(_KILL_ROUNDS):
        strays = find()
        if not strays:
            return
        for pid in strays:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        tree.bury()
        time.sleep(0.01)
