from __future__ import annotations

import pytest
from rich.cells import cell_len

from k3check.errors import UsageError
from k3check.report.problem import usage_text
from k3check.report.terminal import Look

ERROR = UsageError(
    "K3C-060",
    "the file kernels/kda.py cannot be imported as it is written because something in it is wrong",
    where="config.toml:12  operators.kda_chunk.target",
    found="kernels/kda.py:chunk_kda \x1b[31mred " + "x" * 90,
    accepted="package.module:function or path/file.py:function",
    fix="Write the function's name after the colon.",
    detail="Traceback of yours\n  File kda.py, line 3\n\x1b[2J",
)


def test_an_error_says_everything_in_order() -> None:
    assert usage_text(ERROR, Look()).splitlines() == [
        "error: the file kernels/kda.py cannot be imported as it is written because",
        "       something in it is wrong [K3C-060]",
        "  where     config.toml:12 operators.kda_chunk.target",
        "  found     kernels/kda.py:chunk_kda \\x1b[31mred",
        "            " + "x" * 68,
        "            " + "x" * 22,
        "  accepted  package.module:function or path/file.py:function",
        "  fix       Write the function's name after the colon.",
        "    Traceback of yours",
        "      File kda.py, line 3",
        "    \\x1b[2J",
        "  more      k3check explain K3C-060",
    ]


@pytest.mark.parametrize("width", [40, 80])
def test_an_error_stays_within_its_width(width: int) -> None:
    for line in usage_text(ERROR, Look(width=width, colour=False)).splitlines():
        assert cell_len(line) <= width


def test_a_bare_error_is_two_lines() -> None:
    bare = usage_text(UsageError("K3C-001", "no such file"), Look())
    assert bare == "error: no such file [K3C-001]\n  more      k3check explain K3C-001\n"
