"""How many threads torch uses: one for our small tensors, the user's number for the user's code.

The cases are small on purpose; handing each of their thousands of operations to a pool costs more
than it brings, and many times more on a machine that is busy with something else.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

_usual: int | None = None


def use_one() -> None:
    """Use one thread from here on; remembers the number that was set before."""
    global _usual
    if _usual is None:
        _usual = torch.get_num_threads()
    torch.set_num_threads(1)


@contextmanager
def users_number() -> Iterator[None]:
    """The number of threads that the user's environment asked for."""
    before = torch.get_num_threads()
    torch.set_num_threads(_usual or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
