from __future__ import annotations

import pytest
from rich.cells import cell_len

from k3check.config.problems import combined
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


def wrong_type(where: str, **more: str) -> UsageError:
    return UsageError("K3C-022", "the value has the wrong type", where=where, **more)


def test_further_errors_are_wrapped_as_the_first_one_is() -> None:
    first = wrong_type("f:1  a.b", detail="d" * 120)
    others = [
        wrong_type(
            f"f:{n}  kda.{'k' * 20}",
            found='"64"',
            accepted="an integer from 1 to 1048576",
            fix="Write it without quotes.",
        )
        for n in range(30)
    ]
    for width in (40, 80):
        lines = usage_text(combined([first, *others]), Look(width=width)).splitlines()
        assert "    " + "d" * 120 in lines  # an excerpt stays as it is
        rest = lines[lines.index("and 30 more:") :]
        assert all(cell_len(line) <= width for line in rest)
        said = " ".join(" ".join(rest).split())
        assert said.count("[K3C-022]") == 20
        assert said.count("Write it without quotes.") == 20
        assert rest[-1] == "... and 10 more"


def test_errors_of_errors_are_all_listed() -> None:
    made = [wrong_type(f"f:{n}") for n in range(4)]
    nested = combined([combined(made[:2]), combined(made[2:])])
    said = usage_text(nested, Look())
    assert "and 3 more:" in said
    assert all(said.count(f"f:{n}") == 1 for n in range(4))
