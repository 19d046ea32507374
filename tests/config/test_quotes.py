"""A text without straight quotes: what is meant is written out, unless it is a secret."""

from __future__ import annotations

import pytest

from k3check.config.quotes import unquoted
from tests.config.support import Refuser, everything


@pytest.mark.parametrize(
    ("rest", "text"),
    [
        ("“https://h/v1”", "https://h/v1"),
        ("‘kimi-k3’ # mine", "kimi-k3"),
        ("https://h/v1", "https://h/v1"),
        ("https://h/v1 # mine", "https://h/v1"),
        ("kimi-k3", "kimi-k3"),
    ],
)
def test_what_was_meant(rest: str, text: str) -> None:
    found = unquoted(rest)
    assert found is not None
    assert found.text == text


@pytest.mark.parametrize("rest", ["", "]", "1.2.3", "True", "yes", "None", "{", "="])
def test_what_is_something_else(rest: str) -> None:
    assert unquoted(rest) is None


@pytest.mark.parametrize(
    ("text", "name", "line", "fix"),
    [
        ("[api]\nbase_url = “https://h/v1”\n", "c.toml", 2, 'Write: base_url = "https://h/v1"'),
        ("[api]\nbase_url = https://h/v1\n", "c.toml", 2, 'Write: base_url = "https://h/v1"'),
        ('{"baseUrl": https://h/v1}', "c.json", 1, 'Write: "baseUrl": "https://h/v1"'),
        ('{"baseUrl": “https://h/v1”}', "c.json", 1, 'Write: "baseUrl": "https://h/v1"'),
    ],
)
def test_in_a_file(text: str, name: str, line: int, fix: str, refused: Refuser) -> None:
    error = refused(text, name)
    assert error.where is not None
    assert error.where.startswith(f"{name}:{line}:")
    assert error.fix == fix


@pytest.mark.parametrize("text", ["[api]\napi_key = KEY\n", "[api]\napi_key = “KEY”\n"])
def test_a_key_is_not_written_out(text: str, refused: Refuser) -> None:
    error = refused(text.replace("KEY", "sk-abcdef0123456789"), "c.toml")
    assert "sk-abcdef" not in everything(error)
    assert "double quotes" in str(error.fix)
