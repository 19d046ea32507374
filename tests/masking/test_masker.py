"""A known secret goes in every spelling, and nothing else; time grows with the text's length."""

from __future__ import annotations

import base64
import html
import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from k3check.masking import MASK, SHORTEST, Masker
from k3check.masking.address import hide_in_urls, hosts, looks_like_key, secrets_in_address
from k3check.masking.settings import hide_opaque, scrub, secrets_in_text
from k3check.model import Finding, Outcome, Report

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = "sk-canary/7Qm2vX9+pLw4Zt8Kd3Rf6"
RAW = KEY.encode()


def broken(text: str, width: int = 11) -> str:
    """The text in lines."""
    return "\n".join(text[i : i + width] for i in range(0, len(text), width))


SPELLINGS = {
    "spaced hexadecimal": RAW.hex(" "),
    "colons": RAW.hex(":").upper(),
    "a dump": broken(RAW.hex(" "), 48),
    "hexadecimal numbers": ", ".join(hex(byte) for byte in RAW),
    "escaped bytes": "".join(f"\\x{byte:02x}" for byte in RAW),
    "JSON escapes": "".join(f"\\u{byte:04x}" for byte in RAW),
    "base32": base64.b32encode(RAW).decode(),
    "base32 in a text": base64.b32encode(b"key: " + RAW + b"!").decode().lower(),
    "base85": base64.b85encode(RAW).decode(),
    "base85 in a text": base64.b85encode(b"k:" + RAW + b"!").decode(),
    "Ascii85": base64.a85encode(RAW).decode(),
    "the other case": KEY.swapcase(),
    "capitals": KEY.upper(),
    "references": "".join(f"&#{byte};" for byte in RAW),
    "hexadecimal references": "".join(f"&#x{byte:x};" for byte in RAW),
    "named references": html.escape(KEY).replace("/", "&sol;").replace("+", "&plus;"),
    "a list of bytes": str(list(RAW)),
    "bytes in octal": "".join(f"\\{byte:03o}" for byte in RAW),
    "bytes in binary": " ".join(f"{byte:08b}" for byte in RAW),
    "base64 in lines": broken(base64.b64encode(RAW).decode()),
    "base64 of mail": base64.encodebytes(b"authorization: Bearer " + RAW + b"\r\n" * 30).decode(),
    "base64 in lines, as JSON": json.dumps(broken(base64.b64encode(b"u:" + RAW).decode())),
    "letter by letter": " ".join(KEY),
    "in lines": broken(KEY),
    "escaped slash": KEY.replace("/", "\\/"),
}


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_every_spelling_goes(spelling: str) -> None:
    masker = Masker((KEY,))
    assert masker.contains(spelling)
    shown = masker.hide(f"the server said: {spelling} (status 401)")
    assert shown.startswith("the server said: ")
    assert MASK in shown
    assert "(status 401)" in shown
    assert not Masker((KEY,)).contains(shown)


KEYS = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", min_size=20)
AROUND = st.binary(max_size=9)


@settings(deadline=None)  # the first match of a spelling compiles its pattern
@example("00000000000000000000000000000V3_0", b"\0\0\0", b"")  # Ascii85 with a backslash and an n
@given(KEYS, AROUND, AROUND)
def test_an_encoded_text_with_the_key_anywhere_loses_it(key: str, one: bytes, two: bytes) -> None:
    whole = one + key.encode() + two
    for encode in (
        base64.b64encode,
        base64.urlsafe_b64encode,
        base64.b32encode,
        base64.b85encode,
        base64.a85encode,
    ):
        assert MASK in Masker((key,)).hide(encode(whole).decode())
    assert MASK in Masker((key,)).hide(whole.hex("-"))
    assert MASK in Masker((key,)).hide(str(list(whole)))


@settings(deadline=None)
@given(st.text(max_size=200))
def test_a_text_without_the_key_stays(text: str) -> None:
    assert Masker((KEY,)).hide(text) == text


def test_words_that_a_key_shares_with_a_text_stay() -> None:
    masker = Masker(("sk-your-taotoken-key",))
    text = "POST https://taotoken.net/api with the header x-api-key"
    assert masker.hide(text) == text
    assert masker.hide("sk-your-taotoken-key") == MASK
    assert scrub(text, ["sk-your-taotoken-key"]) == text


def test_the_host_of_the_address_stays_and_a_key_in_it_does_not() -> None:
    key = "K3-gateway.example1.org-42"
    masker = Masker((key,), public=hosts("https://gateway.example1.org:8443/v1"))
    assert masker.hide("to gateway.example1.org") == "to gateway.example1.org"
    assert Masker((key,)).hide("to gateway.example1.org") != "to gateway.example1.org"
    assert masker.hide(f"to {key}") == f"to {MASK}"
    assert hosts("https://u:p@h.org:1/x", None, "", "h2/v1") == ("h.org", "h2")


def test_a_piece_of_chance_characters_goes() -> None:
    for piece in (KEY[:14], KEY[-10:], KEY[12:24]):
        assert piece not in Masker((KEY,)).hide(f"your key {piece}... is wrong")


def test_one_shortest_length() -> None:
    short, long = "a1b2c3"[: SHORTEST - 1], "a1b2c3"[:SHORTEST]
    assert Masker((short,)).hide(f"x {short} y") == f"x {short} y"
    assert Masker((long,)).hide(f"x {long} y") == f"x {MASK} y"
    assert secrets_in_address(f"https://{short}@h") == ()
    assert secrets_in_address(f"https://{long}@h") == (long,)


def test_a_whole_report_is_masked_but_for_its_own_names() -> None:
    finding = Finding("link/chat", "link", None, "chat", Outcome.FAIL, f"title {KEY}")
    deep = replace(finding, evidence={KEY: [(KEY, 1.5, None)], "n": {"x": KEY[::-1]}})
    report = Report([deep], "now", 0.0, environment={"proxy": KEY}, config_path=f"/{KEY}.toml")
    masked: Report = Masker((KEY, "link/chat")).value(report)
    assert KEY not in repr(masked)
    assert KEY[::-1] not in repr(masked)
    assert masked.findings[0].id == "link/chat"
    assert masked.findings[0].evidence[MASK][0][1:] == (1.5, None)


def test_a_report_without_a_secret_stays_the_same_object() -> None:
    report = Report([Finding("link/chat", "link", None, "chat", Outcome.PASS, "t")], "now", 0.0)
    assert Masker((KEY,)).value(report) is report


HARD = (
    "1", "a", "_", "1 ", '"', "a-", "//", "sk-", "eyJ", "eyJ-", "?key", "bearer ", "hf_a", "xai-",
    "a=[{ ", " ", "://@", "://a@", "sk*", "&#", "%7", "\\", "\\u", "73", "115 107 ", KEY[:-1],
    RAW.hex()[:-2],
)  # fmt: skip
FUNCTIONS: tuple[Callable[[str], object], ...] = (
    hide_opaque, scrub, secrets_in_text, secrets_in_address, hide_in_urls, looks_like_key,
    Masker((KEY,)).hide,
)  # fmt: skip


@pytest.mark.parametrize("piece", HARD)
def test_time_grows_with_the_length_of_a_text(piece: str) -> None:
    text = (piece * 40_000)[:40_000]
    started = time.process_time()
    for function in FUNCTIONS:
        function(text)
    assert time.process_time() - started < 3.0  # a quadratic pattern takes a minute
