"""The files of other tools, in the shapes of the link specification's section E."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from k3check import hints
from k3check.config import dialects, show
from k3check.config.convert import convert
from k3check.config.dialects import claude_code
from k3check.config.load import load
from k3check.config.references import BARE, BRACED, FILE, LITELLM, OPENCODE, Context, resolve
from k3check.config.source import Source
from k3check.errors import UsageError
from k3check.link.request import request_from
from tests.config.support import CANARY, Loader, Refuser, everything
from tests.config.test_public_cases import CASES, OFFLINE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.loaded import Loaded

BASE = "https://gw.example/v1"

CODEX = """
model = "kimi-k3"
model_provider = "gw"
[model_providers.gw]
name = "gw"
base_url = "https://gw.example/v1"
env_key = "GW_API_KEY"
wire_api = "responses"
request_max_retries = 4
"""
KIMI = """
default_model = "k3"
[providers.moonshot]
type = "kimi"
base_url = "https://gw.example/v1"
api_key = "KEY"
[models."k3"]
provider = "moonshot"
model = "kimi-k3"
max_context_size = 1048576
max_output_size = 32768
"""
CONTINUE = """\
name: mine
version: 1.0.0
schema: v1
models:
  - name: K3
    provider: openai
    model: kimi-k3
    apiBase: https://gw.example/v1
    apiKey: ${{ secrets.GW_API_KEY }}
    defaultCompletionOptions:
      contextLength: 1048576
"""
OPENCODE_JSON = """
{
  // comments are allowed here
  "$schema": "https://opencode.ai/config.json",
  "model": "gw/moonshotai/kimi-k3",
  "provider": {
    "gw": {
      "npm": "@ai-sdk/openai-compatible",
      "options": {"baseURL": "https://gw.example/v1", "apiKey": "{env:GW_API_KEY}",},
      "models": {"moonshotai/kimi-k3": {"limit": {"context": 1048576, "output": 65536}}}
    }
  }
}
"""
CRUSH = json.dumps(
    {
        "providers": {
            "gw": {
                "type": "openai",
                "base_url": BASE,
                "api_key": "$GW_API_KEY",
                "models": [{"id": "kimi-k3", "context_window": 1048576}],
            }
        }
    }
)
LITELLM_YAML = """\
# proxy
model_list:
  - model_name: k3
    litellm_params:
      model: openai/kimi-k3
      api_base: https://gw.example/v1
      api_key: os.environ/GW_API_KEY
litellm_settings:
  num_retries: 2
"""
CLINE = json.dumps(
    {"apiProvider": "openai", "openAiBaseUrl": BASE, "openAiApiKey": "KEY", "openAiModelId": "k3"}
)
DOTENV = """\
# the endpoint
export OPENAI_BASE_URL="https://gw.example/v1"
OPENAI_API_KEY=KEY   # mine
DATABASE_URL=postgres://x
OPENAI_MODEL='kimi-k3'
"""
CLAUDE = json.dumps(
    {"env": {"ANTHROPIC_BASE_URL": BASE, "ANTHROPIC_AUTH_TOKEN": "KEY", "ANTHROPIC_MODEL": "k3"}}
)
VSCODE = """
{
  // an editor's file
  "editor.fontSize": 12,
  "claudeCode.environmentVariables": [
    {"name": "ANTHROPIC_BASE_URL", "value": "https://gw.example/v1"},
    {"name": "ANTHROPIC_AUTH_TOKEN", "value": "KEY"},
    {"name": "ANTHROPIC_MODEL", "value": "k3"}
  ]
}
"""
# name of the file, its text, its dialect, the model's name, the protocol
FILES = {
    "codex": ("config.toml", CODEX, "kimi-k3", "responses"),
    "kimi-code": ("config.toml", KIMI, "kimi-k3", "openai"),
    "continue": ("config.yaml", CONTINUE, "kimi-k3", "openai"),
    "opencode": ("opencode.json", OPENCODE_JSON, "moonshotai/kimi-k3", "openai"),
    "crush": ("crush.json", CRUSH, "kimi-k3", "openai"),
    "litellm": ("litellm.yaml", LITELLM_YAML, "kimi-k3", "openai"),
    "cline": ("cline.json", CLINE, "k3", "openai"),
    "dotenv": (".env", DOTENV, "kimi-k3", "openai"),
    "claude-code": ("claude.json", CLAUDE, "k3", "anthropic"),
    "claude-code-vscode": ("settings.json", VSCODE, "k3", "anthropic"),
}
ENV = {"GW_API_KEY": "KEY"}


def key_of(loaded: Loaded) -> str | None:
    key = loaded.config.api.api_key
    return None if key is None else key.get_secret_value()


def codes(loaded: Loaded) -> list[str]:
    for note in loaded.messages:
        for lang in hints.LANGUAGES:
            texts = hints.title(note.code, lang, note.values)
            texts += hints.fix(note.code, lang, note.values)
            # A placeholder without a value would show in angle brackets.
            assert "<" not in texts, note
    return [note.code for note in loaded.messages]


@pytest.mark.parametrize("dialect", FILES)
def test_each_file_by_its_content(dialect: str, loaded: Loader) -> None:
    name, text, model, protocol = FILES[dialect]
    result = loaded(text, name, env=ENV)
    assert result.dialect == dialect
    assert result.config.api.base_url == BASE
    assert key_of(result) == "KEY"
    assert result.config.model.name == model
    assert result.config.link.protocol == protocol
    codes(result)
    shown = {row.key: row for row in show.rows(result)}
    assert str(shown["api.base_url"].origin).startswith(f"{name}:")
    json.dumps(show.to_json(result), allow_nan=False)


@pytest.mark.parametrize("dialect", FILES)
def test_the_name_does_not_matter(dialect: str, loaded: Loader) -> None:
    _, text, model, _ = FILES[dialect]
    result = loaded(text, "some-file", env=ENV)
    assert (result.dialect, result.config.model.name) == (dialect, model)


@pytest.mark.parametrize("dialect", FILES)
def test_convert_round_trip(dialect: str, loaded: Loader) -> None:
    name, text, _, _ = FILES[dialect]
    before = loaded(text, name, env=ENV)
    again = loaded(convert(before), "k3check.toml")
    api = before.config.api.model_copy(update={"api_key": None})
    assert again.config == before.config.model_copy(update={"api": api})


@pytest.mark.parametrize("dialect", FILES)
def test_no_output_shows_the_key(dialect: str, loaded: Loader) -> None:
    name, text, _, _ = FILES[dialect]
    # As a value of its own, not as the end of a variable's name.
    text = re.sub(r"(?<!_)KEY(?= |\")", CANARY, text)
    result = loaded(text, name, env={"GW_API_KEY": CANARY})
    assert key_of(result) == CANARY
    shown = repr(show.rows(result)) + json.dumps(show.to_json(result)) + convert(result)
    assert CANARY not in shown + repr(result) + repr(result.notes)
    assert CANARY in result.secrets


# --- Codex -------------------------------------------------------------------------------------


def test_codex_key_by_variable(loaded: Loader) -> None:
    result = loaded(CODEX, env=ENV)
    origin = result.origins["api.api_key"]
    assert str(origin) == "config.toml:7  model_providers.gw.env_key -> GW_API_KEY"
    assert result.config.api.max_retries == 4
    assert result.config.link.auth == "auto"  # a bearer, as for every API but Anthropic's
    assert codes(result) == []


def test_codex_variable_is_not_set(loaded: Loader) -> None:
    result = loaded(CODEX)
    assert key_of(result) is None
    note = result.absent["api.api_key"]
    assert note.code == "K3C-110"
    assert note.values == {
        "where": "config.toml:7  model_providers.gw.env_key", "variable": "GW_API_KEY",
    }  # fmt: skip
    # A variable's name is no secret; the message would be of no use without it.
    assert "GW_API_KEY" not in result.secrets


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('wire_api = "responses"', 'wire_api = "chat"', "K3L-064"),
        ('model_provider = "gw"', 'model_provider = "gx"', "K3L-058"),
        ('env_key = "GW_API_KEY"', f'env_key = "{CANARY}"', "K3L-059"),
        ("request_max_retries = 4", "requires_openai_auth = true", "K3C-119"),
        ("request_max_retries = 4", 'api_kee = "x"', "K3C-117"),
        ('env_key = "GW_API_KEY"', 'auth = { command = "vault" }', "K3C-116"),
        ('env_key = "GW_API_KEY"', "", "K3C-153"),
        ("https://gw.example/v1", "https://gw.example/api", "K3C-125"),
        ("request_max_retries = 4", "[model_providers.two]\nname = 'x'", "K3C-114"),
    ],
)
def test_codex_mistakes(old: str, new: str, code: str, loaded: Loader) -> None:
    result = loaded(CODEX.replace(old, new), env=ENV)
    assert codes(result) == [code]
    assert CANARY not in repr(result.notes) + json.dumps(show.to_json(result))


def test_codex_query_and_headers_are_sent(loaded: Loader) -> None:
    more = 'query_params = { "v" = "1 2" }\nhttp_headers = { "X-R" = "k" }\n'
    more += 'env_http_headers = { "X-T" = "GW_T", "X-U" = "GW_UNSET" }'
    env = {**ENV, "GW_T": "t"}
    result = loaded(CODEX.replace("request_max_retries = 4", more), env=env)
    assert result.client is not None
    assert result.client.url(BASE) == f"{BASE}/responses?v=1+2"
    assert result.config.api.headers == {"X-R": "k", "X-T": "t"}
    assert codes(result) == ["K3C-110"]


def test_codex_own_provider_defined_again(loaded: Loader) -> None:
    text = CODEX.replace('"gw"', '"openai"').replace("providers.gw", "providers.openai")
    assert codes(loaded(text, env=ENV)) == ["K3C-118"]


def test_codex_profile(loaded: Loader) -> None:
    text = 'profile = "other"\n' + CODEX + "[profiles.other]\nmodel = 'k3.1'\n"
    result = loaded(text, env=ENV)
    assert result.config.model.name == "k3.1"
    assert result.origins["model.name"].shadows == (("config.toml:3  model", "kimi-k3"),)
    # A profile is there to differ.
    assert codes(result) == []


def test_codex_login_key_is_beside_the_file(tmp_path: Path, loaded: Loader) -> None:
    login = {"OPENAI_API_KEY": "LOGIN", "tokens": None, "last_refresh": "z", "base_url": "x"}
    (tmp_path / "auth.json").write_text(json.dumps(login))
    assert key_of(loaded(CODEX)) is None
    text = CODEX.replace('env_key = "GW_API_KEY"', "requires_openai_auth = true")
    result = loaded(text)
    assert key_of(result) == "LOGIN"
    assert str(result.origins["api.api_key"]) == "auth.json:1  OPENAI_API_KEY"
    # Codex takes no address from there.
    assert result.config.api.base_url == BASE


def test_codex_bearer_token_gives_way_to_the_variable(loaded: Loader) -> None:
    text = CODEX + 'experimental_bearer_token = "TOKEN"\n'
    result = loaded(text, env=ENV)
    assert key_of(result) == "KEY"
    assert codes(result) == ["K3C-113"]
    assert key_of(loaded(text)) == "TOKEN"


# --- Claude Code -------------------------------------------------------------------------------


def claude(**env: Any) -> str:
    return json.dumps({"env": env})


@pytest.fixture
def claude_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Path]:
    """Every file that the client merges, by level; none is written yet."""
    for folder in ("home/.claude", "work/.claude"):
        (tmp_path / folder).mkdir(parents=True)
    managed = tmp_path / "managed-settings.json"
    monkeypatch.setattr(claude_code, "MANAGED", managed)
    return {
        "home": tmp_path / "home",
        "user": tmp_path / "home/.claude/settings.json",
        "project": tmp_path / "work/.claude/settings.json",
        "local": tmp_path / "work/.claude/settings.local.json",
        "managed": managed,
        "cwd": tmp_path / "work",
    }


def test_claude_code_files_by_precedence(claude_home: Mapping[str, Path]) -> None:
    env = {"HOME": str(claude_home["home"]), "ANTHROPIC_MODEL": "of-shell"}
    order = ("shell", "user", "project", "local", "managed")
    claude_home["project"].write_text(claude(ANTHROPIC_BASE_URL=BASE))
    path = Path(".claude/settings.json")
    for level in order:
        if level != "shell":
            body: dict[str, Any] = {"ANTHROPIC_MODEL": f"of-{level}"}
            if level == "project":
                body["ANTHROPIC_BASE_URL"] = BASE
            claude_home[level].write_text(claude(**body))
        result = load(path, cwd=claude_home["cwd"], env=env)
        assert result.config.model.name == f"of-{level}"
    shadows = [value for _, value in result.origins["model.name"].shadows]
    assert shadows == ["of-local", "of-project", "of-user", "of-shell"]
    assert (
        result.origins["model.name"].shadows[1][0] == ".claude/settings.json:1  env.ANTHROPIC_MODEL"
    )
    assert "K3C-113" in codes(result)
    # Whichever of the files is named, the client is the same.
    other = load(Path(".claude/settings.local.json"), cwd=claude_home["cwd"], env=env)
    assert other.config == result.config


def test_claude_code_file_elsewhere_is_that_of_settings(claude_home: Mapping[str, Path]) -> None:
    env = {"HOME": str(claude_home["home"])}
    claude_home["user"].write_text(claude(ANTHROPIC_MODEL="of-user"))
    (claude_home["cwd"] / "x.json").write_text(claude(ANTHROPIC_BASE_URL=BASE))
    result = load(Path("x.json"), cwd=claude_home["cwd"], env=env)
    assert result.origins["model.name"].where == "default"
    claude_home["managed"].write_text(claude(ANTHROPIC_BASE_URL="https://managed.example"))
    result = load(Path("x.json"), cwd=claude_home["cwd"], env=env)
    assert result.config.api.base_url == "https://managed.example"


def test_claude_code_key_over_all_files(claude_home: Mapping[str, Path]) -> None:
    """Variable by variable: the weaker file's token is still sent, beside the stronger's key."""
    claude_home["user"].write_text(claude(ANTHROPIC_AUTH_TOKEN="TOKEN"))
    claude_home["project"].write_text(claude(ANTHROPIC_API_KEY="KEY"))
    env = {"HOME": str(claude_home["home"])}
    result = load(Path(".claude/settings.json"), cwd=claude_home["cwd"], env=env)
    assert (key_of(result), result.config.link.auth) == ("TOKEN", "bearer")
    assert codes(result) == ["K3L-056"]


def test_claude_code_shell_fills_what_the_files_leave_out(loaded: Loader) -> None:
    env = {"ANTHROPIC_API_KEY": CANARY, "ANTHROPIC_BASE_URL": "https://shell.example"}
    result = loaded(claude(ANTHROPIC_BASE_URL=BASE), "s.json", env=env)
    assert result.config.api.base_url == BASE
    assert key_of(result) == CANARY
    assert str(result.origins["api.api_key"]) == "ANTHROPIC_API_KEY"
    assert result.config.link.auth == "x-api-key"
    assert CANARY in result.secrets
    assert codes(result) == ["K3L-057", "K3C-113"]


def test_claude_code_unreadable_file_beside(claude_home: Mapping[str, Path]) -> None:
    claude_home["project"].write_text(claude(ANTHROPIC_BASE_URL=BASE))
    claude_home["local"].write_text("{ // a comment\n}")
    result = load(Path(".claude/settings.json"), cwd=claude_home["cwd"], env={})
    (note,) = result.notes
    assert (note.code, note.values["code"]) == ("K3C-123", "K3C-013")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (claude(ANTHROPIC_BASE_URL=BASE, ANTHROPIC_MODEL="k3"), ["K3C-115"]),
        (
            claude(
                ANTHROPIC_BASE_URL=BASE,
                ANTHROPIC_MODEL="k3",
                ANTHROPIC_DEFAULT_HAIKU_MODEL="k3",
            ),
            ["K3C-193"],  # the background model is shown only
        ),
        (claude(ANTHROPIC_BASE_URL=BASE, API_TIMEOUT_MS=600000), ["K3L-057", "K3L-925"]),
        (json.dumps({"apiKeyHelper": "vault read k"}), ["K3C-116"]),
        (claude(ANTHROPIC_BASE_URL="https://${HOST}/anthropic"), ["K3L-057", "K3C-112"]),
    ],
)
def test_claude_code_notes(text: str, expected: list[str], loaded: Loader) -> None:
    assert codes(loaded(text, "s.json")) == expected


@pytest.mark.parametrize(
    ("model", "defaults", "asked"),
    [
        ("opus", {"OPUS": "kimi-k3"}, "kimi-k3"),
        ("Sonnet", {"SONNET": "kimi-k3[1m]"}, "kimi-k3"),
        ("opusplan", {"OPUS": "a", "SONNET": "b"}, "b"),
        ("haiku", {"HAIKU": "c"}, "c"),
        ("opus[1m]", {"OPUS": "d"}, "d"),
        ("kimi-k3[1m]", {}, "kimi-k3"),
        ("kimi-opus", {"OPUS": "a"}, "kimi-opus"),
        ("opus", {"SONNET": "b"}, None),
        (None, {"OPUS": "a", "SONNET": "a"}, "a"),
        (None, {"OPUS": "a", "SONNET": "b"}, None),
    ],
)
def test_claude_code_aliases(
    model: str | None, defaults: dict[str, str], asked: str | None, loaded: Loader
) -> None:
    env = {f"ANTHROPIC_DEFAULT_{name}_MODEL": value for name, value in defaults.items()}
    env |= {"ANTHROPIC_MODEL": model} if model else {}
    result = loaded(claude(ANTHROPIC_BASE_URL=BASE, **env), "s.json")
    request = request_from(result, OFFLINE, env={})
    assert request.model == asked
    if asked is None:
        assert result.absent["model.name"].code == ("K3C-155" if model else "K3L-057")


def test_claude_code_sends_both_keys(loaded: Loader) -> None:
    both = claude(
        ANTHROPIC_BASE_URL=BASE, ANTHROPIC_AUTH_TOKEN="T1234567", ANTHROPIC_API_KEY="K1234567"
    )
    result = loaded(both, "s.json")
    assert (key_of(result), result.config.link.auth) == ("T1234567", "bearer")
    assert result.config.api.headers == {"x-api-key": "K1234567"}
    assert "K1234567" not in repr(show.rows(result))
    helper = json.loads(claude(ANTHROPIC_BASE_URL=BASE)) | {"apiKeyHelper": "vault"}
    assert loaded(json.dumps(helper), "s.json").config.link.auth == "both"


# --- Kimi Code ---------------------------------------------------------------------------------


def test_kimi_code_reads_no_shell_but_the_old_client_does(tmp_path: Path) -> None:
    env = {"KIMI_API_KEY": "SHELL", "KIMI_BASE_URL": "https://shell.example/v1"}
    for folder, key in ((".kimi-code", "KEY"), (".kimi", "SHELL")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "config.toml").write_text(KIMI)
        result = load(Path(folder) / "config.toml", cwd=tmp_path, env=env)
        assert key_of(result) == key
    assert codes(result) == ["K3C-113", "K3C-113"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('default_model = "k3"', 'default_model = "k4"', ["K3C-124"]),
        ('provider = "moonshot"', 'provider = "moonshoot"', ["K3C-124"]),
        ('type = "kimi"', 'type = "vertexai"', ["K3C-122"]),
        ("https://gw.example/v1", "https://gw.example", ["K3C-125"]),
        ("[providers.moonshot]", "[providers.b]\ntype='openai'\n[providers.moonshot]", ["K3C-114"]),
        ('"KEY"', '"$GW_API_KEY"', ["K3C-112"]),
    ],
)
def test_kimi_code_notes(old: str, new: str, expected: list[str], loaded: Loader) -> None:
    assert codes(loaded(KIMI.replace(old, new))) == expected


@pytest.mark.parametrize(
    ("kind", "protocol"),
    [("kimi", "openai"), ("anthropic", "anthropic"), ("openai_responses", "responses")],
)
def test_kimi_code_wire(kind: str, protocol: str, loaded: Loader) -> None:
    result = loaded(KIMI.replace('type = "kimi"', f'type = "{kind}"'))
    assert result.config.link.protocol == protocol


def test_kimi_code_table_of_variables_gives_way(loaded: Loader) -> None:
    text = KIMI.replace('api_key = "KEY"\n', "")
    text += (
        '[providers.moonshot.env]\nKIMI_API_KEY = "INNER"\nKIMI_BASE_URL = "https://b.example/v1"\n'
    )
    result = loaded(text)
    assert (key_of(result), result.config.api.base_url) == ("INNER", BASE)
    assert codes(result) == ["K3C-113"]


# --- Continue, LiteLLM: YAML -------------------------------------------------------------------


def test_continue_unset_secret_is_flagged_and_not_sent(loaded: Loader) -> None:
    result = loaded(CONTINUE, "config.yaml")
    # Continue looks at stores of its own besides variables.
    assert codes(result) == ["K3C-151"]
    assert result.absent["api.api_key"].values["where"] == "config.yaml:9  models[0].apiKey"
    assert key_of(result) is None


def test_continue_prefers_the_model_that_speaks_of_kimi(loaded: Loader) -> None:
    other = "  - name: GPT\n    provider: openai\n    model: gpt-9\n"
    result = loaded(CONTINUE.replace("models:\n", "models:\n" + other), "config.yaml", env=ENV)
    assert result.config.model.name == "kimi-k3"
    assert result.notes[0].values["others"] == "GPT"


def test_litellm(loaded: Loader) -> None:
    result = loaded(LITELLM_YAML, "config.yaml", env=ENV)
    assert codes(result) == ["K3C-126"]
    assert result.config.api.max_retries == 2
    where = "config.yaml:7  model_list[0].litellm_params.api_key -> GW_API_KEY"
    assert str(result.origins["api.api_key"]) == where


def test_litellm_reads_the_prefix_own_variables(loaded: Loader) -> None:
    text = LITELLM_YAML.replace("      api_key: os.environ/GW_API_KEY\n", "")
    env = {"OPENAI_API_KEY": "SHELL", "OPENAI_API_BASE": "https://shell.example/v1"}
    result = loaded(text, "config.yaml", env=env)
    assert (key_of(result), result.config.api.base_url) == ("SHELL", BASE)
    result = loaded(text.replace("openai/", "bedrock/"), "config.yaml", env=env)
    assert key_of(result) is None
    assert result.config.model.name == "bedrock/kimi-k3"
    assert codes(result) == ["K3C-122"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("models:\n\t- x\n", "K3C-121"),
        ("models: [\n", "K3C-121"),
        ("a: 1\na: 2\n", "K3C-015"),
        ("a: !mine 1\n", "K3C-121"),
        ("a: 1\n---\nb: 2\n", "K3C-121"),
        ("- 1\n", "K3C-017"),
        ("# only\n", "K3C-007"),
        ("? [1]\n: 2\n", "K3C-121"),
        ("".join(f"{'  ' * i}a{i}:\n" for i in range(60)), "K3C-016"),
        ("[" * 5000, "K3C-016"),
        ("a: &a [1]\n" + "".join(f"b{i}: &b{i} [*{p}, *{p}]\n" for i, p in
         enumerate(["a", *[f"b{j}" for j in range(40)]])), "K3C-121"),
        ("a: 1\n", "K3C-020"),
        (f"api_key: *{CANARY}\n", "K3C-121"),
        (f"apiKey: {CANARY}: {CANARY}\n", "K3C-121"),
    ],
)  # fmt: skip
def test_yaml_mistakes(text: str, code: str, refused: Refuser) -> None:
    error = refused(text, "config.yaml")
    assert error.code == code
    assert CANARY not in everything(error)


def test_yaml_aliases_and_merges(loaded: Loader) -> None:
    text = LITELLM_YAML.replace(
        "model_list:", "x: &base {api_base: https://b.example/v1, top_p: 0.95}\nmodel_list:"
    )
    text = text.replace(
        "      api_base: https://gw.example/v1\n", "      <<: *base\n      top_p: 1.0\n"
    )
    result = loaded(text, "config.yaml", env=ENV)
    assert result.config.api.base_url == "https://b.example/v1"
    assert result.config.model.top_p == 1.0


def test_without_pyyaml_it_says_what_to_install(
    refused: Refuser, monkeypatch: pytest.MonkeyPatch
) -> None:
    # None is what makes an import fail as if the package were not there.
    monkeypatch.setitem(sys.modules, "yaml", None)
    for name in ("config.yaml", "no-name"):
        error = refused(LITELLM_YAML, name)
        assert error.code == "K3C-120"
        assert error.fix is not None
        assert "pip install pyyaml" in error.fix


def test_a_colon_in_toml_is_not_taken_for_yaml(refused: Refuser) -> None:
    assert refused("model_list: 1\n", "config.toml").code == "K3C-011"


# --- opencode, Crush, Cline --------------------------------------------------------------------


def test_opencode_origin_and_limits(loaded: Loader) -> None:
    result = loaded(OPENCODE_JSON, "opencode.json", env=ENV)
    assert result.config.model.max_output_tokens == 65536
    key = "opencode.json:9  provider.gw.options.apiKey -> GW_API_KEY"
    assert str(result.origins["api.api_key"]) == key
    assert codes(result) == []


def test_opencode_key_from_a_file(tmp_path: Path, loaded: Loader) -> None:
    text = OPENCODE_JSON.replace("{env:GW_API_KEY}", "{file:./key.txt}")
    result = loaded(text, "opencode.json")
    assert codes(result) == ["K3C-111"]
    (tmp_path / "key.txt").write_text(f"{CANARY}\n")
    result = loaded(text, "opencode.json")
    assert key_of(result) == CANARY
    assert CANARY not in repr(show.rows(result)) + convert(result)
    (tmp_path / "key.txt").write_text("two\nlines\n")
    assert codes(loaded(text, "opencode.json")) == ["K3C-111"]


def test_no_file_is_read_into_an_address(tmp_path: Path, loaded: Loader) -> None:
    (tmp_path / "secret").write_text(CANARY)
    text = OPENCODE_JSON.replace("https://gw.example/v1", "https://gw.example/{file:secret}")
    result = loaded(text, "opencode.json", env=ENV)
    assert codes(result) == ["K3C-111", "K3C-125"]
    assert CANARY not in str(result.config.api.base_url)


@pytest.mark.parametrize(
    ("package", "protocol"),
    [("@ai-sdk/anthropic", "anthropic"), ("@ai-sdk/openai", "responses")],
)
def test_opencode_wire(package: str, protocol: str, loaded: Loader) -> None:
    text = OPENCODE_JSON.replace("@ai-sdk/openai-compatible", package)
    assert loaded(text, "opencode.json", env=ENV).config.link.protocol == protocol


def test_comments_stay_a_mistake_where_the_client_refuses_them(refused: Refuser) -> None:
    assert refused('{"providers": {"a": {"base_url": "x"}} // no\n}', "x.json").code == "K3C-013"


def test_crush_command_is_not_run(loaded: Loader) -> None:
    result = loaded(CRUSH.replace("$GW_API_KEY", "$(cat key)"), "crush.json")
    assert codes(result) == ["K3C-116"]
    assert key_of(result) is None


def test_crush_large_model(loaded: Loader) -> None:
    data = json.loads(CRUSH)
    data["providers"]["other"] = {"type": "anthropic", "base_url": "https://o.example"}
    data["models"] = {"large": {"model": "k9", "provider": "other"}}
    result = loaded(json.dumps(data), "crush.json")
    assert result.config.model.name == "k9"
    assert result.config.link.protocol == "anthropic"
    assert codes(result) == ["K3C-114"]


def test_cline_needs_v1_and_names_another_provider(loaded: Loader) -> None:
    text = CLINE.replace("/v1", "")
    assert codes(loaded(text, "c.json")) == ["K3C-125"]
    assert codes(loaded(CLINE.replace('"openai"', '"bedrock"'), "c.json")) == ["K3C-122"]


def test_the_articles_settings_are_not_taken_for_clines(loaded: Loader) -> None:
    assert loaded('{"apiProvider": "x", "apiKey": "KEY"}', "s.json").dialect == "settings-json"


# --- .env --------------------------------------------------------------------------------------


def test_dotenv_syntax(loaded: Loader) -> None:
    text = 'A="x\\"y\nz"\n\n  export KIMI_API_KEY = "a b"  # c\nKIMI_BASE_URL=https://h/v1#part\n'
    result = loaded(text, ".env")
    assert key_of(result) == "a b"
    assert result.config.api.base_url == "https://h/v1#part"
    assert result.origins["api.api_key"].line == 4


def test_dotenv_shell_wins_for_what_the_file_names(loaded: Loader) -> None:
    env = {"OPENAI_API_KEY": "SHELL", "OPENAI_API_BASE": "https://old.example/v1"}
    result = loaded(DOTENV, ".env", env=env)
    assert key_of(result) == "SHELL"
    assert str(result.origins["api.api_key"]) == "OPENAI_API_KEY"
    assert result.config.api.base_url == BASE
    assert codes(result) == ["K3C-113"]


def test_dotenv_old_and_new_name_disagree(loaded: Loader) -> None:
    result = loaded(DOTENV + "OPENAI_API_BASE=https://old.example/v1\n", ".env")
    assert result.config.api.base_url == BASE
    (note,) = result.notes
    assert (note.code, note.values["others"]) == ("K3C-113", ".env:6  OPENAI_API_BASE")
    alone = "OPENAI_API_BASE=https://old.example/v1\nOPENAI_API_KEY=x\n"
    assert codes(loaded(alone, ".env")) == ["K3L-924"]


def test_dotenv_one_family_only(loaded: Loader) -> None:
    """No key may go to another company's address."""
    text = f"MOONSHOT_API_KEY={CANARY}\nANTHROPIC_BASE_URL=https://a.example\nANTHROPIC_API_KEY=A\n"
    result = loaded(text, ".env")
    assert (key_of(result), result.config.link.protocol) == ("A", "anthropic")
    assert result.config.link.auth == "x-api-key"
    assert codes(result) == ["K3C-114"]


def test_dotenv_references(loaded: Loader) -> None:
    text = "HOST=h.example\nKIMI_BASE_URL=https://${HOST}/v1\nKIMI_API_KEY=$NOWHERE\n"
    result = loaded(text, ".env")
    assert result.config.api.base_url == "https://h.example/v1"
    assert codes(result) == ["K3C-110"]


def test_dotenv_with_quotes_is_not_taken_for_toml(loaded: Loader) -> None:
    assert loaded('OPENAI_API_KEY="x"\n', ".env").dialect == "dotenv"
    assert loaded('{"OPENAI_API_KEY": "x"}', "auth.json").dialect == "codex-auth"


def test_an_env_file_of_others_is_not_ours(refused: Refuser) -> None:
    assert refused("TZ='x'\n", ".env").code == "K3C-020"


# --- all ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "forms", "result", "via", "expected"),
    [
        ("${A}", (BRACED,), "1", ("A",), []),
        ("x${A}y${B}", (BRACED,), "x1y2", ("A", "B"), []),
        ("${C:-7}", (BRACED,), "7", (), []),
        ("${C}", (BRACED,), "${C}", (), ["K3C-110"]),
        ("${E}", (BRACED,), "${E}", (), ["K3C-110"]),
        ("$A", (BARE,), "1", ("A",), []),
        ("pa$A", (BARE,), "pa$A", (), []),
        ("$A", (), "$A", (), ["K3C-112"]),
        ("os.environ/A", (LITELLM,), "1", ("A",), []),
        ("os.environ/A", (), "os.environ/A", (), ["K3C-112"]),
        ("{env:A}", (OPENCODE,), "1", ("A",), []),
        ("{file:a}", (FILE,), "{file:a}", (), ["K3C-111"]),
        ("plain", (BRACED, BARE), "plain", (), []),
    ],
)
def test_references(
    text: str, forms: tuple[str, ...], result: str, via: tuple[str, ...], expected: list[str]
) -> None:
    context = Context({"A": "1", "B": "2", "E": ""}, Path("/nonexistent"), forms)
    resolved = resolve(text, context, "here")
    assert (resolved.text, resolved.via) == (result, via)
    told = [*resolved.notes, *([resolved.unset] if resolved.unset else [])]
    assert [note.code for note in told] == expected


def test_a_reference_that_the_client_sends_as_it_stands(loaded: Loader) -> None:
    text = KIMI.replace('api_key = "KEY"', 'api_key = "$GW_API_KEY"')
    result = loaded(text, env=ENV)
    assert key_of(result) is None
    assert result.absent["api.api_key"].code == "K3C-112"


def test_a_reference_has_no_line_to_edit(loaded: Loader) -> None:
    """What stands in the file is not the value, so a repair must find no place for it."""
    text = OPENCODE_JSON.replace("https://gw.example/v1", "{env:GW}")
    origin = loaded(text, "o.json", env={**ENV, "GW": BASE}).origins["api.base_url"]
    assert origin.line is None
    assert str(origin) == "o.json:9  provider.gw.options.baseURL -> GW"


@pytest.mark.parametrize("dialect", FILES)
@pytest.mark.parametrize("bad", [None, 7, [], {}, "", True])
def test_any_type_in_any_place_is_an_error_or_loads(
    dialect: str, bad: object, tmp_path: Path
) -> None:
    """Every value of every file replaced in turn: no traceback of ours."""
    name, text, _, _ = FILES[dialect]
    if name == ".env":
        return
    (tmp_path / name).write_text(text)
    document = dialects.parse_text(Source(text, name))
    for path in list(document.positions):
        data = json.loads(json.dumps(document.data))
        node = data
        for part in path[:-1]:
            node = node[part]
        node[path[-1]] = bad
        (tmp_path / "f.json").write_text(json.dumps(data))
        try:
            result = load(Path("f.json"), cwd=tmp_path, env=ENV)
        except UsageError as error:
            everything(error).encode()
            continue
        convert(result).encode()
        json.dumps(show.to_json(result), allow_nan=False)


def test_the_page_of_dialects_is_up_to_date() -> None:
    from tests.config.page import PAGE, page

    assert PAGE.read_text("utf-8") == page(), "run: python -m tests.config.page"


def test_every_dialect_of_a_tool_has_a_file_here() -> None:
    known = {d.name for d in dialects.discover()}
    of_articles = {"k3check", "pyproject", "client-json", "serving-toml", "settings-json"}
    others = {case.truth["dialect"] for case in CASES}
    assert set(FILES) | of_articles | others | {"codex-auth", "model-config"} == known | {None}
