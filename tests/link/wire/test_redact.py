"""Nothing of the key, and nothing that drives a terminal, gets through."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k3check.link.request import LinkRequest, Secret, secrets_of
from k3check.link.wire.redact import Redactor, one_line, plain

KEY = "sk-canary/7Qm2vX9+pLw4Zt8Kd3Rf6"


@pytest.mark.parametrize(
    "text",
    [
        KEY,
        f"Bearer {KEY}",
        quote(KEY, safe=""),
        json.dumps({"key": KEY}),
        KEY.encode().hex(),
        KEY.encode().hex().upper(),
        "".join(f"%{ord(c):02x}" for c in KEY),
        "".join(f"%{ord(c):02X}" for c in KEY),
        KEY[::-1],
        base64.b64encode(KEY.encode()).decode(),
        base64.b64encode(f"user:{KEY}".encode()).decode(),
        base64.b64encode(f"x:{KEY}:tail".encode()).decode(),
        base64.urlsafe_b64encode(KEY.encode()).decode(),
        f"Incorrect API key provided: {KEY[:8]}************{KEY[-4:]}",
        f"key {KEY[:14]}... is wrong",
        f"ends in {KEY[-10:]}",
        "\x1b[31m".join([KEY[:9], KEY[9:]]),
        "\u200b".join(KEY),
    ],
)
def test_every_spelling_goes(text: str) -> None:
    shown = Redactor((KEY,)).excerpt(text)
    assert "***" in shown
    for start in range(3, len(KEY) - 8):
        assert KEY[start : start + 8] not in shown
    assert KEY[-4:] not in shown


def test_the_rest_stays() -> None:
    text = "model kimi-k3 not found (request id: 2026)"
    assert Redactor((KEY,)).excerpt(text) == text


def test_a_key_at_the_cut_leaves_no_piece() -> None:
    shown = Redactor((KEY,)).excerpt("a" * 190 + KEY)
    assert KEY[:6] not in shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]8;;http://evil\x07link\x1b]8;;\x07", "link"),
        ("\x1b]52;c;ZXZpbA==\x1b\\text", "text"),
        ("\x9b31mred", "red"),
        ("a\u202eb\u2066c", "abc"),
        ("zero\u200bwidth", "zerowidth"),
        ("[bold]x[/bold]", "(bold)x(/bold)"),
        ("[link=http://evil]x[/]", "(link=http://evil)x(/)"),
        ("list [1, 2]", "list [1, 2]"),
        ("lone \ud800", "lone \ufffd"),
        ("bell\x07 and nul\x00", "bell and nul"),
        ("a\r\nb\tc", "a b c"),
    ],
)
def test_one_line(text: str, shown: str) -> None:
    assert one_line(text) == shown


@given(st.text(max_size=300))
def test_plain_text_never_holds_controls(text: str) -> None:
    shown = plain(text)
    assert not any(ord(c) < 32 and c not in "\n\t" for c in shown)
    assert not any(0x7F <= ord(c) <= 0x9F or 0xD800 <= ord(c) <= 0xDFFF for c in shown)


def test_secret_shows_nothing() -> None:
    secret = Secret(KEY)
    assert KEY not in f"{secret} {secret!r} {secret!s:>5} {[secret]}"
    assert secret.reveal() == KEY
    with pytest.raises(TypeError):
        secret.__reduce__()


def test_proxy_passwords_are_secrets() -> None:
    env = {"HTTPS_PROXY": "http://user:hunter22@proxy:3128"}
    redactor = Redactor(secrets_of(LinkRequest(api_key=Secret(KEY), env=env)))
    assert "hunter22" not in redactor.excerpt("proxy says hunter22")
    assert "user" not in redactor.excerpt(env["HTTPS_PROXY"])


def test_records_are_redacted_to_the_bottom() -> None:
    redactor = Redactor((KEY,))
    found = redactor.value({"a": [{"b": (KEY, 1, None)}], KEY: 2.5})
    assert KEY not in json.dumps(found)
    assert found["a"][0]["b"][1:] == (1, None)
