"""Recognising dialects, and the ones that do more than rename keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from k3check.config import dialects
from k3check.config.dialects.base import Dialect, Reading, Value, read_tree, tree_of
from k3check.config.document import Document
from k3check.config.parse import parse
from k3check.config.source import Source, read
from k3check.link.request import protocol_of
from tests.config.support import ARTICLES, Loader, Refuser


def test_every_module_is_found() -> None:
    folder = Path(dialects.__file__).parent
    modules = {p.stem for p in folder.glob("*.py")} - {"__init__", "base"}
    assert len(dialects.discover()) == len(modules)
    assert len({d.name for d in dialects.discover()}) == len(modules)


@pytest.mark.parametrize("path", sorted(ARTICLES.iterdir()), ids=lambda p: p.name)
def test_exactly_one_dialect_recognises_a_file(path: Path) -> None:
    document = parse(read(path))
    assert sum(dialects.matches(d, document) for d in dialects.discover()) == 1


def test_nothing_recognised_lists_what_was_looked_for(refused: Refuser) -> None:
    error = refused('{"editor.fontSize": 12, "files.eol": "x"}', "settings.json")
    assert error.code == "K3C-020"
    assert error.found is not None
    assert '"editor.fontSize"' in error.found
    assert error.detail is not None
    for dialect in dialects.discover():
        assert dialect.title in error.detail


def test_two_dialects(refused: Refuser) -> None:
    error = refused('{"baseUrl": "x", "base_url": "y"}', "settings.json")
    assert error.code == "K3C-023"
    assert "settings.json" in error.what
    assert "plain JSON client" in error.what
    assert error.found is not None
    assert "baseUrl" in error.found


def test_ours_in_json(loaded: Loader) -> None:
    result = loaded('{"kda": {"d_k": 64}, "api": null}', "k.json")
    assert result.dialect == "k3check"
    assert result.config.kda.d_k == 64


def test_null_sets_nothing(loaded: Loader) -> None:
    result = loaded('{"base_url": "x", "temperature": null, "stream": true}', "c.json")
    assert result.config.model.temperature is None
    assert result.origins["model.temperature"].where == "default"


def test_pyproject(loaded: Loader) -> None:
    text = "[project]\nname = 'x'\n[tool.k3check.kda]\nd_k = 64\n"
    text += "[tool.k3check.operators.kda_chunk]\n"
    result = loaded(text, "pyproject.toml")
    assert result.dialect == "pyproject"
    assert result.config.kda.d_k == 64
    assert str(result.origins["kda.d_k"]) == "pyproject.toml:4  tool.k3check.kda.d_k"
    assert result.origins["operators.kda_chunk"].line == 5


def claude(env: dict[str, Any], **more: Any) -> str:
    return json.dumps({"env": env, **more})


def test_claude_code_is_open_and_ordered(loaded: Loader) -> None:
    text = claude(
        {
            "ANTHROPIC_MODEL": "kimi-k3",
            "ANTHROPIC_AUTH_TOKEN": "token",
            "ANTHROPIC_API_KEY": "key",
            "API_TIMEOUT_MS": "600000",
            "OTHER": "x",
        },
        model="opus",
        hooks={"x": []},
    )
    result = loaded(text, "settings.json")
    assert result.config.model.name == "kimi-k3"
    assert result.origins["model.name"].shadows == (("settings.json:1  model", "opus"),)
    assert result.config.api.timeout_seconds == 600.0
    assert result.config.api.api_key is not None
    assert result.config.api.api_key.get_secret_value() == "token"
    assert result.config.link.auth == "bearer"
    # Both keys are sent, and "model" gives way.
    assert [n.code for n in result.notes] == ["K3L-056", "K3C-113"]


def test_claude_code_time_limit_must_be_a_text(refused: Refuser) -> None:
    error = refused(claude({"ANTHROPIC_MODEL": "k", "API_TIMEOUT_MS": "soon"}), "s.json")
    assert error.where == "s.json:1  env.API_TIMEOUT_MS"


def test_codex_real_file(loaded: Loader) -> None:
    text = '{"OPENAI_API_KEY": "sk-x", "tokens": {"access_token": "t"}, "last_refresh": "z"}'
    result = loaded(text, "auth.json")
    assert result.dialect == "codex-auth"
    assert result.config.api.api_key is not None
    assert result.notes == ()


FLAT = {"base_url": "https://h/v1", "api_key": "sk-x", "model": "kimi-k3"}


def test_three_keys_at_the_top_are_codexs_in_json_alone(loaded: Loader) -> None:
    toml = "".join(f"{key} = {json.dumps(value)}\n" for key, value in FLAT.items())
    plain = loaded(toml, "client.toml")
    assert plain.dialect == "client-json"
    assert protocol_of(plain) == "openai"
    assert (plain.config.api.base_url, plain.config.model.name) == ("https://h/v1", "kimi-k3")
    same = loaded(json.dumps(FLAT | {"top_p": 0.95}), "c.json")
    assert (plain.dialect, plain.notes) == (same.dialect, same.notes)
    auth = loaded(json.dumps(FLAT), "auth.json")
    assert (auth.dialect, protocol_of(auth)) == ("codex-auth", "responses")
    real = loaded(f'{toml}last_refresh = "z"\n', "auth.toml")
    assert (real.dialect, protocol_of(real)) == ("codex-auth", "responses")


def test_serving_needs_no_server_table_but_ours_goes_first(loaded: Loader) -> None:
    assert loaded("[model]\nbase_url = 'x'\n").dialect == "serving-toml"
    assert loaded("[moe]\nlatent_dim = 1\n").dialect == "k3check"


def test_a_dialect_with_a_syntax_of_its_own(
    monkeypatch: pytest.MonkeyPatch, loaded: Loader
) -> None:
    def parse_env(source: Source) -> Document | None:
        lines = source.text.strip().split("\n")
        if not all("=" in line for line in lines):
            return None
        return Document(dict(line.split("=", 1) for line in lines), {}, source.file, "rc")

    extra = Dialect(
        name="rc-file",
        title="an rc file",
        looks_for="NAME=value",
        recognise=lambda data: "SOME_MODEL" in data,
        read=lambda doc: Reading((Value("model.name", doc.data["SOME_MODEL"], ("SOME_MODEL",)),)),
        parse=parse_env,
        syntaxes=("rc",),
    )
    known = (*dialects.discover(), extra)
    monkeypatch.setattr(dialects, "discover", lambda: known)
    result = loaded("SOME_MODEL=k3-256k\n", "rc")
    assert (result.dialect, result.config.model.name) == ("rc-file", "k3-256k")


def test_a_tree_refuses_a_key_that_is_value_and_table() -> None:
    with pytest.raises(TypeError, match="a is a value"):
        tree_of({"a": "x", "a.b": "y"})


def test_ignored_keys_are_not_read() -> None:
    document = Document({"a": 1, "b": {"c": 2}}, {}, "f")
    reading = read_tree(document, tree_of({"a": "kda.d_k", "b": None}))
    assert [v.key for v in reading.values] == ["kda.d_k"]
    assert reading.problems == ()
