"""The key never appears: not in a value, a note, an error, a caret line, a repr."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k3check import hints
from k3check.config import show
from k3check.config.convert import convert
from k3check.config.document import Position, excerpt
from k3check.config.load import Override
from k3check.masking import settings as secret
from tests.config.support import CANARY, Loader, Refuser, everything

if TYPE_CHECKING:
    from k3check.config.loaded import Loaded
    from k3check.errors import UsageError

GOOD = {
    "config.toml": f'[api]\napi_key = "{CANARY}"\nbase_url = "https://h/?key={CANARY}"\n',
    "serving.toml": f'[server]\nport = 1\n[model]\napi_key = "{CANARY}"\npath = "{CANARY}"\n',
    "settings.json": f'{{"baseUrl": "https://u:{CANARY}@h", "apiKey": "{CANARY}"}}',
    "client.json": json.dumps(
        {"base_url": "x", "api_key": CANARY, "model": f"m{CANARY}", "extra_body": {"x": [CANARY]}}
    ),
    "auth.json": json.dumps({"OPENAI_API_KEY": CANARY, "tokens": {"id_token": CANARY}}),
    "claude.json": json.dumps(
        {"env": {"ANTHROPIC_AUTH_TOKEN": CANARY, "ANTHROPIC_MODEL": "m"}, "agent": {"k": CANARY}}
    ),
}
K = CANARY
BAD = [
    ("config.toml", f"[api]\nkee = '{K}' x\n"),
    ("config.toml", f"[api]\napi_kye = '{K}' x\n"),
    ("config.toml", f"[api]\napikey: '{K}'\n"),
    ("config.toml", f"api = '{K}'\n[kda]\nd_k = 1\n"),
    ("config.toml", f"[api]\napi_key = '{K}'\nbase_url = {K}\n"),
    ("config.toml", f"[api]\nmax_retries = '{K}'\n"),
    ("settings.json", f'{{"apiKey": "{K}", "baseUrl": "{K}" "x"}}'),
    ("config.toml", f"[api]\napi_key = [1, '{K}']\n"),
    ("config.toml", f"[api]\napi_key = {{ v = '{K}' }}\n"),
    ("config.toml", f"[api]\napi_kee = '{K}'\n"),
    ("config.toml", f"[api]\napi_key = '{K}'\n'{K}' = 1\n"),
    ("config.toml", f"[api]\napi_key = '{K}'\nmax_retries = '{K}'\n"),
    ("config.toml", f"[api]\napi_key = '{K}'\n[logging]\nlevel = '{K}'\n"),
    ("config.toml", f"[api]\napi_key = '{K}'\n[operators.x{K}]\n"),
    ("config.toml", f"[api]\napi_key = '{K}'\n[operators.kda_chunk]\ndevice = '{K}'\n"),
    ("config.toml", f"[api]\napi_key = {K}\n"),
    ("config.toml", f"[api]\napi_key = '{K}\n"),
    ("config.toml", f"[api]\napi_key '{K}'\n"),
    ("config.toml", f"[api]\napi_key = '{K}' x\n"),
    ("config.toml", f'[api]\napi_key = """\n{K} \\q\n"""\n'),
    ("config.toml", f'[api]\napi_key = """\na = 1\n{K} \\q\n"""\n'),
    ("config.toml", f"[api]\napi_key = '{K}'\napi_key = '{K}'\n"),
    ("config.toml", f"api = {{ api_key = '{K}', base_url = x }}\n"),
    ("settings.json", f'{{"baseUrl": "x", "apiKey": "{K}" "model": 1}}'),
    ("settings.json", f'{{"baseUrl": "x", "apiKey": {K}}}'),
    ("settings.json", f'{{"baseUrl": "x", "apiKey":\n"{K}\n"}}'),
    ("settings.json", f'{{"baseUrl": "x", "apiKey": "{K}",}}'),
    ("settings.json", f'{{"baseUrl": "x", "apiKey": "{K}", "apiKey": "{K}"}}'),
    ("settings.json", f'{{"baseUrl": "x", "apiKey": ["{K}"]}}'),
    ("settings.json", f'{{"baseUrl": "x", "apiKey": "{K}\\u0000"}}'),
    ("settings.json", f'{{"apiKey": "{K}", "editor.x": 1, "{K}": 2}}'),
    ("settings.json", f'{{"baseUrl": "x", "base_url": "y", "apiKey": "{K}"}}'),
    ("settings.json", f'{{"env": {{"ANTHROPIC_AUTH_TOKEN": ["{K}"]}}}}'),
    ("settings.json", f'{{"env": {{"ANTHROPIC_AUTH_TOKEN": "{K}" /**/}}}}'),
    ("auth.json", f'{{"tokens": {{"id_token": "{K}"}}, "OPENAI_API_KEY": 7, "{K}x": 1}}'),
]


def outputs(loaded: Loaded) -> str:
    parts = [repr(loaded), str(loaded.config), repr(loaded.config), convert(loaded)]
    parts += [repr(show.rows(loaded)), json.dumps(show.to_json(loaded), ensure_ascii=False)]
    parts += [loaded.config.model_dump_json(include={"api"})]
    for note in loaded.notes:
        for lang in hints.LANGUAGES:
            parts += [hints.title(note.code, lang, note.values), repr(note)]
    return "\n".join(parts)


@pytest.mark.parametrize("name", GOOD)
def test_no_output_shows_the_key(name: str, loaded: Loader) -> None:
    result = loaded(GOOD[name], name)
    assert result.config.api.api_key is not None
    assert result.config.api.api_key.get_secret_value() == CANARY
    text = repr(show.rows(result)) + json.dumps(show.to_json(result)) + convert(result)
    assert CANARY not in text


def test_nor_does_any_other_output(loaded: Loader) -> None:
    env = {"K3CHECK_API_KEY": CANARY}
    overrides = {"api.api_key": Override(CANARY + "x", "--api-key-env MINE")}
    result = loaded(f'[api]\napi_key = "{CANARY}y"\n', env=env, overrides=overrides)
    assert CANARY not in outputs(result)
    assert CANARY not in repr(overrides)


@pytest.mark.parametrize(("name", "text"), BAD)
def test_no_error_shows_the_key(name: str, text: str, refused: Refuser) -> None:
    assert CANARY in text
    error = refused(text, name)
    shown = everything(error)
    assert CANARY not in shown
    assert CANARY[:12] not in shown
    # Nothing hangs on the exception for a traceback to print.
    assert error.__cause__ is None
    assert error.__suppress_context__


@pytest.mark.parametrize("value", [123456789, True, 1.5, "[]", "{}"])
def test_a_key_of_the_wrong_type_is_not_shown(value: object, refused: Refuser) -> None:
    text = value if isinstance(value, str) else json.dumps(value)
    error = refused(f"[api]\napi_key = {text}\n")
    assert error.code == "K3C-022"
    assert error.found is not None
    assert error.found.endswith("(not shown)")
    assert "123456789" not in everything(error)


def test_a_key_from_a_variable_is_known_in_errors_of_the_file(refused: Refuser) -> None:
    error = refused(f"[api]\nmax_retries = '{CANARY}'\n", env={"K3CHECK_API_KEY": CANARY})
    assert CANARY not in everything(error)
    overrides = {"api.api_key": Override(CANARY, "--api-key-env X")}
    error = refused(f"[api]\nmax_retries = '{CANARY}'\n", overrides=overrides)
    assert CANARY not in everything(error)


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        ("api_key", True), ("apiKey", True), ("API_KEY", True), ("x-api-key", True),
        ("OPENAI_API_KEY", True), ("ANTHROPIC_AUTH_TOKEN", True), ("authToken", True),
        ("access_token", True), ("tokens", True), ("password", True), ("Authorization", True),
        ("client_secret", True), ("private_key", True),
        ("max_tokens", False), ("maxTokens", False), ("max_output_tokens", False),
        ("base_url", False), ("top_k", False), ("bind_dplr_to_k", False), ("d_k", False),
        ("token_count", False),
    ],
)  # fmt: skip
def test_names_of_secrets(name: str, is_secret: bool) -> None:
    assert secret.is_secret_key(name) is is_secret


@pytest.mark.parametrize("text", ["sk-kimi-abcdefghijklmnop12", "sk-your-key-here", "", "x" * 99])
def test_nothing_of_a_key_is_shown(text: str) -> None:
    assert secret.shown(text, ("api", "api_key")) == "***"
    assert secret.masked({"api_key": [text]}) == {"api_key": ["***"]}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("key sk-abc123 is bad", "key *** is bad"),
        ("task-force and risk-free", "task-force and risk-free"),
        ("Authorization: Bearer abcdef", "Authorization: ***"),
        ("https://user:pw@host/x", "https://***@host/x"),
        ("https://host/?a=1&api_key=zzz&b=2", "https://host/?a=1&api_key=***&b=2"),
        ("xhunter22x", "x***x"),
    ],
)
def test_scrub(text: str, shown: str) -> None:
    assert secret.scrub(text, ["hunter22", "x"]) == shown


@given(
    st.lists(
        st.sampled_from(
            [
                CANARY,
                "[api]",
                "api_key",
                '"apiKey"',
                " = ",
                ": ",
                '"""',
                "'",
                '"',
                "\n",
                "{",
                "}",
                ",",
                "a",
            ]
        ),
        max_size=14,
    ),
    st.integers(1, 4),
    st.integers(1, 40),
)
def test_what_follows_a_secrets_name_is_never_in_an_excerpt(
    parts: list[str], line: int, column: int
) -> None:
    text = "".join(["token = ", *parts])
    shown = excerpt(text, Position(line, column))
    assert CANARY not in shown


def test_an_excerpt_without_secrets_is_whole() -> None:
    text = '[api]\napi_key = "abc"\nbase_url = "https://x" y\n'
    assert 'base_url = "https://x" y' in excerpt(text, Position(3, 24))
    assert "abc" not in excerpt(text, Position(2, 3))


def test_scrubbing_keeps_an_error_whole(refused: Refuser) -> None:
    error: UsageError = refused("[kda]\nd_k = 'sk-abcdefgh'\nd_v = 0\n")
    assert error.found == '"***"'
    assert error.detail is not None
    assert "\n" in error.detail
