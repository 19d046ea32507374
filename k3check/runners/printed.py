"""What a worker left behind as text: the tail of its output, and the stack of a crash."""

from __future__ import annotations

import linecache
import re

from k3check.nouns.candidate_error import clipped, is_ours

TAIL_BYTES = 6000
TAIL_LINES = 40
STACK_BYTES = 2**16

_STACK_LINE = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<name>.+)$')
_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours and cursor movements
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles and links
    r"|[^\n\t\x20-\x7e\xa0-\U0010ffff]"  # every other control character
)


def tail(data: bytes, *, complete: bool = True) -> str:
    """Readable text: the last lines, without terminal sequences.

    Args:
        data: the end of what was printed.
        complete: whether it is all that was printed.
    """
    text = data.decode("utf-8", errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    lines = _CONTROL.sub("", text).rstrip().splitlines()
    if len(lines) > TAIL_LINES or not complete:
        lines = ["... (more before)", *lines[-TAIL_LINES:]]
    return "\n".join(lines)


def stack(dump: str) -> str:
    """A stack as faulthandler dumps it, turned into a traceback in the user's frames.

    The innermost call comes last, each with its source line where the file can be read. Frames of
    ours and of the import machinery are dropped; nothing may be left.
    """
    frames = []
    for line in dump.splitlines():
        match = _STACK_LINE.match(line)
        if match:
            frames.append((match["file"], int(match["line"]), match["name"]))
        elif frames:
            break  # the next thread's
    if frames and frames[-1][0] == "<string>":
        del frames[-1]  # the worker's own first line
    users = [frame for frame in frames if not is_ours(frame[0])]
    lines = []
    for file, number, name in reversed(users):
        lines.append(f'  File "{file}", line {number}, in {name}')
        source = linecache.getline(file, number).strip()
        if source:
            lines.append(f"    {source}")
    return clipped("\n".join(lines))
