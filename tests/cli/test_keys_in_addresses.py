"""A key that was written into the address or the model's place is in nothing that is shown."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from k3check.report.formats import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Done

KEY = "sk-canary-1234567890AbCdEf"
OTHER = "sk-canary-fedcba0987654321"
# base_url, model; AT is an address at which nobody listens.
FORMS = {
    "user": ("http://KEY@AT/v1", "kimi-k3"),
    "password": ("http://me:KEY@AT/v1", "kimi-k3"),
    "query": ("http://AT/v1?api_key=KEY", "kimi-k3"),
    "second query": ("http://AT/v1?utm_source=x&token=KEY", "kimi-k3"),
    "path": ("http://AT/KEY/v1", "kimi-k3"),
    "fragment": ("http://AT/v1#KEY", "kimi-k3"),
    "model": ("http://AT/v1", "KEY"),
    "address": ("KEY", "kimi-k3"),
    "host": ("https://KEY", "kimi-k3"),
}


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address of this machine that refuses connections: bound, and not listened at."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


def clean(done: Done) -> Done:
    """A command's output without the key; pieces of it count too."""
    text = (done.out + done.err).lower()
    for key in (KEY.lower(), OTHER):
        assert key not in text
        assert key[-12:] not in text
        assert key[3:16] not in text
    assert "internal error" not in text
    return done


def arguments(form: str, nobody: str) -> tuple[str, ...]:
    base, model = (text.replace("KEY", KEY).replace("AT", nobody) for text in FORMS[form])
    return ("--base-url", base, "--model", model)


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("form", FORMS)
def test_no_format_shows_it(
    form: str, format_: str, nobody: str, k3check: Callable[..., Done]
) -> None:
    done = clean(k3check("link", "--format", format_, "-v", "--offline", *arguments(form, nobody)))
    assert done.out


@pytest.mark.parametrize("other", [False, True], ids=["no key", "another key"])
@pytest.mark.parametrize("form", FORMS)
def test_nor_does_what_was_sent_or_failed(
    form: str,
    other: bool,
    nobody: str,
    k3check: Callable[..., Done],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    if other:
        monkeypatch.setenv("K3CHECK_API_KEY", OTHER)
    named = arguments(form, nobody)
    for format_ in ("text", "json", "markdown"):
        done = clean(k3check("link", "-v", "--format", format_, *named))
        assert done.code == 1
        # A key is not asked for in the network as a host's name.
        assert ("K3L-019" in done.out) == (form in ("address", "host"))
    for format_ in ("text", "json"):
        assert clean(k3check("config", "show", "--format", format_, *named)).code == 0


@pytest.mark.parametrize("form", FORMS)
def test_nor_does_a_file_with_it_that_is_corrected(
    form: str, nobody: str, k3check: Callable[..., Done]
) -> None:
    base, model = (text.replace("KEY", KEY).replace("AT", nobody) for text in FORMS[form])
    Path("k3check.toml").write_text(f"[api]\nbase_url = '{base}'\n[model]\nname = '{model}'\n")
    clean(k3check("config", "show"))
    clean(k3check("config", "convert"))
    clean(k3check("link", "--offline", "--fix", "-v"))
    assert "***" not in Path("k3check.toml").read_text()
    clean(k3check("link", "--offline", "--fix", "--format", "json"))


def test_key_and_address_swapped(k3check: Callable[..., Done], tmp_path: Path) -> None:
    text = f"[api]\nbase_url = '{KEY}'\napi_key = 'http://127.0.0.1/v1'\n[model]\nname = 'k3'\n"
    Path("k3check.toml").write_text(text)
    done = clean(k3check("link", "--offline", "--fix", "-v"))
    assert "Swap base_url and api_key" in done.out
    assert Path("k3check.toml").read_text() == text  # nothing certain can be made of a key
    assert [path.name for path in tmp_path.iterdir()] == ["k3check.toml"]


def test_what_is_no_key_stays_visible(nobody: str, k3check: Callable[..., Done]) -> None:
    base = f"http://{nobody}/v1?utm_source=newsletter&api_key={KEY}"
    done = clean(k3check("link", "--offline", "-v", "--base-url", base, "--model", "kimi-k3"))
    assert "utm_source=newsletter&api_key=***" in "".join(done.out.split())
    assert "kimi-k3" in done.out
