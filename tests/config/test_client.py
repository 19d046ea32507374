"""How clients join a base URL and a path, and which headers carry a secret."""

from __future__ import annotations

import pytest

from k3check.config import dialects
from k3check.config.client import TAILS, Client, sdk, secret_headers

WHOLE = Client("whole", path="")
ONCE = Client("once", once=True)
VERSION = Client("version", once=True, adds_version=True)
DROPS = Client("drops", "anthropic", "/v1/messages", drops="/v1")
INSIDE = Client("inside", "anthropic", "/messages")


@pytest.mark.parametrize(
    ("client", "base", "url"),
    [
        (sdk("x"), "https://h/v1", "https://h/v1/chat/completions"),
        (sdk("x"), "https://h/v1/", "https://h/v1/chat/completions"),
        # No silent correction: what is missing stays missing.
        (sdk("x"), "https://h/api", "https://h/api/chat/completions"),
        (sdk("x"), "https://h/v1/openai", "https://h/v1/openai/chat/completions"),
        (sdk("x", "responses"), "https://h/v1", "https://h/v1/responses"),
        (sdk("x", "anthropic"), "https://h/anthropic", "https://h/anthropic/v1/messages"),
        (sdk("x", "anthropic"), "https://h/v1", "https://h/v1/v1/messages"),
        (INSIDE, "https://h/anthropic/v1", "https://h/anthropic/v1/messages"),
        (DROPS, "https://h/v1", "https://h/v1/messages"),
        (DROPS, "https://h/coding", "https://h/coding/v1/messages"),
        (WHOLE, "https://h/v1/chat/completions", "https://h/v1/chat/completions"),
        (ONCE, "https://h/v1/chat/completions", "https://h/v1/chat/completions"),
        (ONCE, "https://h/v1", "https://h/v1/chat/completions"),
        (VERSION, "https://h", "https://h/v1/chat/completions"),
        (VERSION, "https://h/v4", "https://h/v4/chat/completions"),
        (VERSION, "https://h/x/chat/completions", "https://h/x/chat/completions"),
    ],
)
def test_url(client: Client, base: str, url: str) -> None:
    assert client.url(base) == url


@pytest.mark.parametrize(
    ("client", "base", "url"),
    [
        (sdk("x"), "https://h/v1", "https://h/v1/models"),
        (sdk("x", "anthropic"), "https://h/anthropic", "https://h/anthropic/v1/models"),
        (WHOLE, "https://h/v1/chat/completions", "https://h/v1/models"),
        (INSIDE, "https://h/anthropic/v1", "https://h/anthropic/v1/models"),
    ],
)
def test_models_url(client: Client, base: str, url: str) -> None:
    assert client.models_url(base) == url


def test_every_dialects_clients_ask_for_their_api() -> None:
    for dialect in dialects.discover():
        for client in dialect.clients:
            tail = TAILS[client.wire]
            assert client.whole or client.path.endswith(f"/{tail}"), (dialect.name, client)
            assert client.name


def test_secret_headers() -> None:
    headers = {
        "X-Route": "kimi",
        "X-Gateway-Key": "abc",
        "Authorization": "Bearer abcdef",
        "X-Other": "sk-0123456789",
    }
    assert secret_headers(headers) == [
        "abc", "abc", "Bearer abcdef", "abcdef", "sk-0123456789", "sk-0123456789",
    ]  # fmt: skip
