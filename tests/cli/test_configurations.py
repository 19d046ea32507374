"""Configurations on the command line: what is shown, what is hidden, what is meant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from k3check.config.source import at_home

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Done

OURS = '[api]\nbase_url = "https://a.test/v1"\n'


def test_what_nothing_sets_is_hidden(k3check: Callable[..., Done]) -> None:
    Path("k3check.toml").write_text(OURS)
    short = k3check("config", "show").out
    assert "base_url" in short
    assert "timeout_seconds" not in short
    assert "keys that nothing sets: -v shows them" in short
    assert "requests go to https://a.test/v1/chat/completions" in " ".join(short.split())
    whole = k3check("config", "show", "-v").out
    assert "timeout_seconds" in whole
    assert "-v shows them" not in whole
    # For programs nothing is left out.
    data = json.loads(k3check("config", "show", "--format", "json").out)
    assert any(value["key"] == "api.timeout_seconds" for value in data["values"])


def test_where_a_client_sends_its_requests(k3check: Callable[..., Done]) -> None:
    provider = {"name": "p", "api_base_url": "https://a.test/x/chat/completions", "models": ["m"]}
    Path("config.json").write_text(json.dumps({"Providers": [provider]}))
    done = k3check("config", "show", "-c", "config.json")
    assert "requests go to https://a.test/x/chat/completions" in " ".join(done.out.split())


@pytest.mark.parametrize("value", ["X-Route", "=kimi", "X-Route: kimi", "X-Route:a=b"])
def test_a_header_that_is_none(value: str, k3check: Callable[..., Done]) -> None:
    done = k3check("config", "show", "--header", value)
    assert done.code == 2
    assert "NAME=VALUE" in done.err


def test_a_header_with_a_key_is_masked(k3check: Callable[..., Done]) -> None:
    Path("k3check.toml").write_text(OURS)
    done = k3check("config", "show", "--header", "X-Gateway-Key=geheim99", "--header", "X-R=kimi")
    assert "geheim99" not in done.out + done.err
    assert "kimi" in done.out


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("link", "--format", "jsno"), "Did you mean 'json'?"),
        (("link", "--offline", "--profile", "quik"), "Did you mean 'quick'?"),
        (("link", "--base-url"), "--base-url URL"),
        (("ops", "--operator"), "--operator NAME=TARGET"),
    ],
)
def test_a_misspelt_choice_and_a_missing_value(
    arguments: tuple[str, ...], meant: str, k3check: Callable[..., Done]
) -> None:
    done = k3check(*arguments)
    assert done.code == 2
    assert meant in " ".join(done.err.split())


def test_a_tilde_is_the_home_folder(
    k3check: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "mine.toml").write_text(OURS + '[link]\nca_file = "~/ca.pem"\n')
    monkeypatch.setenv("HOME", str(home))
    done = k3check("config", "show", "-c", "~/mine.toml", "--format", "json")
    assert done.code == 0
    values = {value["key"]: value["value"] for value in json.loads(done.out)["values"]}
    assert values["link.ca_file"] == str(home / "ca.pem")
    env = {"HOME": "/h"}
    assert at_home("~", env) == "/h"
    assert at_home("dir:~/out", env) == "dir:/h/out"
    # Another user's home, and no home at all: as they stand, so that opening them says so.
    assert at_home("~other/x", env) == "~other/x"
    assert at_home("~/x", {}) == "~/x"


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("OPENAI_BASE_URL=https://a.test/v1\nno assignment\n", "K3C-160", 2),
        ("OPENAI_BASE_URL='https://a.test/v1\n\nOPENAI_API_KEY=x\n", "K3C-160", 1),
    ],
)
def test_a_line_of_an_env_file_that_is_none(
    text: str, code: str, line: int, k3check: Callable[..., Done]
) -> None:
    Path("x.env").write_text(text)
    done = k3check("config", "show", "-c", "x.env")
    assert done.code == 2
    assert code in done.err
    assert f"x.env:{line}" in done.err


def test_blanks_around_the_equals_sign(k3check: Callable[..., Done]) -> None:
    Path(".env").write_text(
        "# mine\nOPENAI_BASE_URL=https://a.test/v1\nOPENAI_API_KEY = abcdefgh\n"
    )
    done = k3check("config", "show", "-c", ".env")
    told = " ".join(done.out.split())
    assert ".env:3" in told
    assert "K3C-161" in told
    assert "abcdefgh" not in told
