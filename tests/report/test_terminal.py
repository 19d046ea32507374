from __future__ import annotations

import io

import pytest

from k3check.plain import clean, number, one_line, plain, seconds
from k3check.report.sparkline import pool, sparkline
from k3check.report.terminal import look, to_ascii, write


class Stream(io.TextIOWrapper):
    def __init__(self, encoding: str = "utf-8", *, terminal: bool = False) -> None:
        self.bytes = io.BytesIO()
        super().__init__(self.bytes, encoding=encoding)
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize(
    ("terminal", "env", "colour"),
    [
        (False, {}, False),
        (True, {"TERM": "xterm"}, True),
        (True, {"TERM": "dumb"}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (False, {"FORCE_COLOR": "1"}, True),
        (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colour_follows_terminal_and_variables(
    terminal: bool, env: dict[str, str], colour: bool
) -> None:
    assert look(Stream(terminal=terminal), env).colour is colour


@pytest.mark.parametrize(
    ("encoding", "env", "lang", "only_ascii"),
    [
        ("utf-8", {}, "en", False),
        ("utf-8", {"LANG": "C.UTF-8"}, "en", False),
        ("utf-8", {"LANG": "C"}, "en", True),
        ("utf-8", {"LANG": "C"}, "zh", False),
        ("utf-8", {"LANG": "C", "PYTHONIOENCODING": "utf-8"}, "en", False),
        ("utf-8", {"LC_ALL": "POSIX", "LANG": "de_DE.UTF-8"}, "en", True),
        ("ascii", {}, "en", True),
        ("latin-1", {}, "zh", True),
        ("gbk", {}, "zh", True),
    ],
)
def test_ascii_where_the_stream_or_the_locale_can_do_no_more(
    encoding: str, env: dict[str, str], lang: str, only_ascii: bool
) -> None:
    assert look(Stream(encoding), env, lang=lang).ascii is only_ascii


def test_chinese_needs_an_encoding_that_has_it() -> None:
    assert look(Stream("gbk"), {}).chinese
    assert not look(Stream("latin-1"), {}).chinese


def test_writing_never_fails_for_a_character() -> None:
    stream = Stream("ascii")
    write(stream, "a失\n")
    assert stream.bytes.getvalue() == b"a\\u5931\n"


def test_signs_have_ascii_counterparts() -> None:
    assert to_ascii("✓ ✗ ≤ … α") == "+ x <= ... alpha"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (3, "3"),
        (0.0353, "0.0353"),
        (3.21e-7, "3.21e-07"),
        (31999.9999, "32000"),
        (1e30, "1.00e+30"),
        (float("nan"), "NaN"),
        (float("-inf"), "-inf"),
    ],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert number(value) == text


def test_durations_have_units() -> None:
    assert [seconds(s) for s in (0.034, 4.21, 125.0)] == ["0.03 s", "4.2 s", "2 min 05 s"]


def test_cleaning_shows_what_it_takes_out() -> None:
    assert clean("a\x1b[31mb\r\nc\td") == "a\\x1b[31mb\nc   d"
    assert one_line(" a \n b ") == "a b"
    assert clean("正常 text ✓") == "正常 text ✓"


def test_plain_flattens_what_evidence_may_hold() -> None:
    assert plain({"a": [1, 2.5, None], "b": True}) == "a 1, 2.5, none, b true"
    assert plain([]) == "none"


def test_sparkline_keeps_a_single_peak_among_many_positions() -> None:
    values = [1.0] * 1000
    values[500] = 2.0
    line = sparkline(values, width=50)
    assert len(line) == 50
    assert line.count("█") == 1
    assert line[25] == "█"


def test_sparkline_marks_what_is_not_finite() -> None:
    assert sparkline([1.0, float("nan"), 2.0]) == "▁!█"
    assert sparkline([float("inf")]) == "!"
    assert sparkline([]) == ""


def test_sparkline_is_logarithmic_over_decades() -> None:
    # 1, 10, 100, 1000 are evenly spaced logarithms: heights 0, 8/3, 16/3, 8 of 8
    assert sparkline([1.0, 10.0, 100.0, 1000.0]) == "▁▃▆█"


def test_pool_covers_every_value_once() -> None:
    assert pool([1.0, 5.0, 2.0, 3.0, 4.0], 2) == [5.0, 4.0]
