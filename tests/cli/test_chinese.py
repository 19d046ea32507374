"""With ``--lang zh`` everything that is ours is Chinese, from the real checks to the errors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Done

CHINESE = re.compile(r"[\u4e00-\u9fff]")
# Three English words one after the other, the first without a sign of an identifier before it.
SENTENCE = re.compile(r"(?<![\w/.=\-\"'`])[a-z]{2,} [A-Za-z]+ [A-Za-z]{2,}(?![\w/\-=])")
COMMANDS = re.compile(r"k3check (?:explain|link|ops|config|all|init)\b[^。，；;)）]*")

OPERATORS = """
def kda_step(state, k, v, alpha, beta):
    decayed = alpha[:, None] * state
    return decayed + k[:, None] * (beta * v + k @ decayed)[None, :]


def short_conv(x, weight):
    raise ValueError("x" + str(x.shape[0]))
"""


def english(text: str) -> list[str]:
    """Sentences in English that are neither a command to type nor the user's own."""
    lines = [COMMANDS.sub("", line) for line in text.splitlines()]
    # what Python, a server or the article says
    own = ("Traceback (most recent call last)", "404 page not found")
    return [line for line in lines if SENTENCE.search(line) and not any(o in line for o in own)]


def test_the_search_finds_english() -> None:
    assert english("  ✓ kda_step/x   one token, quick and slow forgetting")
    assert english("跳过: the convention does not take packed")
    assert not english("修复  设置 K3CHECK_BASE_URL, 见 k3check explain K3L-001")


@pytest.mark.parametrize("verbosity", ["-v", "-q", None])
def test_a_demo_is_chinese(verbosity: str | None, k3check: Callable[..., Done]) -> None:
    more = [verbosity] if verbosity else []
    done = k3check("all", "--demo", "--lang", "zh", "--profile", "quick", *more)
    assert done.code == 0
    assert CHINESE.search(done.out)
    assert english(done.out) == []
    assert done.err == ""


def test_failures_crashes_and_skips_are_chinese(k3check: Callable[..., Done]) -> None:
    Path("own.py").write_text(OPERATORS)
    done = k3check(
        "ops", "--lang", "zh", "-v", "--profile", "quick",
        "--operator", "kda_step=own.py:kda_step", "--convention", "kda_step=article",
        "--operator", "short_conv=own.py:short_conv",
    )  # fmt: skip
    assert done.code == 1, done.err
    assert "崩溃" in done.out
    assert "K3O-168" in done.out  # the mistake in OPERATORS
    assert english(done.out) == []


@pytest.mark.parametrize("name", ["text", "markdown", "html", "github", "junit"])
def test_every_format_for_people_is_chinese(name: str, k3check: Callable[..., Done]) -> None:
    Path("k3check.toml").write_text('[model]\nname = "kimi-k3"\n')  # no base_url
    done = k3check("link", "--offline", "--lang", "zh", "--format", name)
    assert done.code == 1
    assert "设置：base URL、密钥、模型" in done.out
    shown = re.sub(r"<style>.*?</style>|<[^>]*>", "", done.out, flags=re.DOTALL)
    assert english(shown) == []


BAD = """
[kda]
d_k = "many"
alpha_floor = 7
[api]
timeout_seconds = "10"
[logging]
level = "Warn"
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ("link",),
        ("ops", "kdaa"),
        ("ops", "--dtype", "bf"),
        ("ops", "--operator", "kda_chunk"),
        ("ops", "--tolerance", "2"),
        ("ops", "--timeout", "-1"),
        ("explain", "output.scal"),
        ("report", "nowhere.json"),
        ("ops", "-c", "nowhere.toml"),
        ("ops", "-c", "bad.toml"),
        ("ops", "-c", "twice.toml"),
        ("link", "--discover", "--format", "html"),
        ("link", "--demo", "--offline"),
        ("link", "--api-key-env", "NOT_SET_HERE"),
    ],
)
def test_errors_of_usage_are_chinese(
    arguments: tuple[str, ...], k3check: Callable[..., Done]
) -> None:
    Path("bad.toml").write_text(BAD)
    Path("twice.toml").write_text("[kda]\nd_k = 1\nd_k = 2\n")
    done = k3check(*arguments, "--lang", "zh")
    assert done.code == 2
    assert CHINESE.search(done.err.splitlines()[0])
    assert english(done.err) == []
    assert "[K3C-" in done.err
    if "bad.toml" in arguments:
        assert "另有 3 处：" in done.err
        for code in ("K3C-022", "K3C-024", "K3C-026"):
            assert code in done.err


def test_explain_and_the_settings_are_chinese(k3check: Callable[..., Done]) -> None:
    assert english(k3check("config", "show", "--lang", "zh").out) == []
    assert english(k3check("explain", "--lang", "zh").out) == []
