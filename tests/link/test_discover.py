"""What is set up on a machine, tool by tool."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from k3check import hints
from k3check.link.discover import Machine, Setup, Value, discover
from tests.link.conftest import CANARY

if TYPE_CHECKING:
    from pathlib import Path

OTHER = "sk-other-9Zk4Tn8Wq2Lm6Vb3Xc5J"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    home, cwd = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    cwd.mkdir()
    return Machine(home, cwd, {})


def put(folder: Path, name: str, content: Any) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def found(machine: Machine) -> dict[str, Setup]:
    setups = {setup.tool: setup for setup in discover(machine)}
    for setup in setups.values():
        assert CANARY not in str(setup)
        assert OTHER not in str(setup)
        # Nor its beginning or its end.
        assert "sk-" not in str(setup)
        assert not {CANARY[-2:], OTHER[-2:]} & {v.shown[-2:] for v in shown(setup)}
        for remark in setup.remarks:
            for lang in hints.LANGUAGES:
                assert "<" not in hints.title(remark.code, lang, remark.values)
    return setups


def shown(setup: Setup) -> list[Value]:
    return [value for value in (setup.key, *setup.shadowed) if value is not None]


def codes(setup: Setup) -> list[str]:
    return [remark.code for remark in setup.remarks]


def test_nothing_is_there(machine: Machine) -> None:
    assert found(machine) == {}


def test_files_of_another_purpose_are_nobodys_setup(machine: Machine) -> None:
    put(machine.cwd, "config.toml", '[package]\nname = "x"\n')
    put(machine.cwd, "settings.json", {"editor.fontSize": 12})
    put(machine.cwd, ".vscode/settings.json", {"editor.fontSize": 12})
    put(machine.cwd, ".claude/settings.json", {"permissions": {}})
    put(machine.cwd, ".env", "DATABASE_URL=postgres://x\n")
    assert found(machine) == {}


def test_k3checks_own_configuration(machine: Machine) -> None:
    put(
        machine.cwd, "config.toml", f'[api]\nbase_url = "https://gw.test/api"\napi_key = "{CANARY}"'
    )
    setup = found(machine)["k3check"]
    assert setup.base_url is not None
    assert setup.base_url.origin.startswith("config.toml:2")
    assert setup.url == "https://gw.test/api/v1/chat/completions"
    assert setup.key is not None
    assert setup.key.shown == "***"


def test_claude_code_precedence(machine: Machine) -> None:
    env = {"ANTHROPIC_BASE_URL": "https://user.test", "ANTHROPIC_AUTH_TOKEN": CANARY}
    put(machine.home, ".claude/settings.json", {"env": env})
    put(machine.cwd, ".claude/settings.local.json",
        {"env": {"ANTHROPIC_BASE_URL": "https://gw.test/anthropic"}})  # fmt: skip
    with_shell = Machine(machine.home, machine.cwd, {"ANTHROPIC_AUTH_TOKEN": OTHER})
    setup = found(with_shell)["Claude Code"]
    assert setup.base_url is not None
    assert setup.base_url.shown == "https://gw.test/anthropic"
    assert setup.url == "https://gw.test/anthropic/v1/messages"
    assert setup.key is not None
    assert setup.key.origin == "~/.claude/settings.json:1  env.ANTHROPIC_AUTH_TOKEN"
    assert [v.origin for v in setup.shadowed] == [
        "~/.claude/settings.json:1  env.ANTHROPIC_BASE_URL",
        "ANTHROPIC_AUTH_TOKEN",
    ]
    # Both values that disagree are told, and that no model is set.
    assert codes(setup) == ["K3C-113", "K3C-113", "K3L-057"]


@pytest.mark.parametrize(("other", "origins"), [(CANARY, []), (OTHER, ["ANTHROPIC_AUTH_TOKEN"])])
def test_a_key_shadows_another_one_but_not_itself(
    other: str, origins: list[str], machine: Machine
) -> None:
    put(machine.home, ".claude/settings.json", {"env": {"ANTHROPIC_AUTH_TOKEN": CANARY}})
    shell = Machine(machine.home, machine.cwd, {"ANTHROPIC_AUTH_TOKEN": other})
    setup = found(shell)["Claude Code"]
    assert [v.origin for v in setup.shadowed] == origins
    assert [v.shown for v in shown(setup)] == ["***"] * (1 + len(origins))


@pytest.mark.parametrize(("other", "origins"), [(CANARY, []), (OTHER, ["ANTHROPIC_API_KEY"])])
def test_two_variables_of_one_client_are_compared_by_their_values(
    other: str, origins: list[str], machine: Machine
) -> None:
    env = {"ANTHROPIC_API_KEY": CANARY, "ANTHROPIC_AUTH_TOKEN": other}
    setup = found(Machine(machine.home, machine.cwd, env))["Anthropic SDK"]
    assert [v.origin for v in setup.shadowed] == origins
    assert codes(setup) == ["K3L-923"] * len(origins)


def test_claude_code_with_both_keys_and_an_openai_base(machine: Machine) -> None:
    env = {"ANTHROPIC_BASE_URL": "https://api.moonshot.ai/v1", "ANTHROPIC_API_KEY": CANARY,
           "ANTHROPIC_AUTH_TOKEN": OTHER, "ANTHROPIC_MODEL": "kimi-k3"}  # fmt: skip
    put(machine.home, ".claude/settings.json", {"env": env})
    setup = found(machine)["Claude Code"]
    assert codes(setup) == ["K3L-056", "K3C-115", "K3L-922"]
    assert setup.remarks[2].values["right"] == "https://api.moonshot.ai/anthropic"


def test_codex(machine: Machine) -> None:
    put(
        machine.home,
        ".codex/config.toml",
        """
model = "kimi-k3"
model_provider = "gw"
[model_providers.gw]
base_url = "https://gw.test/v1"
env_key = "GW_KEY"
wire_api = "chat"
requires_openai_auth = true
""",
    )
    put(machine.home, ".codex/auth.json", {"OPENAI_API_KEY": OTHER, "base_url": "https://x.test"})
    setup = found(machine)["Codex"]
    assert setup.url == "https://gw.test/v1/responses"
    assert codes(setup) == ["K3L-064", "K3C-049", "K3C-119", "K3C-110", "K3L-065"]
    assert setup.key is not None
    assert setup.key.origin == "~/.codex/auth.json:1  OPENAI_API_KEY"
    setup = found(Machine(machine.home, machine.cwd, {"GW_KEY": CANARY}))["Codex"]
    assert setup.key is not None
    assert setup.key.origin.endswith("env_key -> GW_KEY")


def test_codex_mistakes(machine: Machine) -> None:
    put(machine.home, ".codex/config.toml",
        'model = "k3"\nmodel_provider = "gw"\n'
        f'[model_providers.gw]\nbase_url = "https://gw.test/v1"\n'
        f'env_key = "{CANARY}"')  # fmt: skip
    assert codes(found(machine)["Codex"]) == ["K3L-059"]
    put(machine.home, ".codex/config.toml", 'model_provider = "missing"')
    put(machine.home, ".codex/auth.json", {"OPENAI_API_KEY": CANARY})
    assert codes(found(machine)["Codex"]) == ["K3L-058"]


def test_codex_login_alone(machine: Machine) -> None:
    put(machine.home, ".codex/auth.json", {"OPENAI_API_KEY": CANARY, "tokens": {"a": OTHER}})
    setup = found(machine)["Codex"]
    assert setup.wire == "responses"
    assert setup.key is not None
    assert setup.key.shown == "***"


def test_kimi_code_and_opencode(machine: Machine) -> None:
    put(
        machine.home,
        ".kimi-code/config.toml",
        f"""
default_model = "k"
[providers.kimi]
type = "kimi"
base_url = "https://api.kimi.com/coding/v1"
api_key = "{CANARY}"
[models.k]
provider = "kimi"
model = "k3"
""",
    )
    put(machine.cwd, "opencode.json", {"provider": {"gw": {
        "options": {"baseURL": "https://gw.test/v1", "apiKey": "{env:GW_KEY}"},
        "models": {"kimi-k3": {}}}}})  # fmt: skip
    setups = found(machine)
    kimi = setups["Kimi Code"]
    assert kimi.url == "https://api.kimi.com/coding/v1/chat/completions"
    assert kimi.model is not None
    assert kimi.model.shown == "k3"
    assert codes(setups["opencode"]) == ["K3C-110"]
    resolved = found(Machine(machine.home, machine.cwd, {"GW_KEY": CANARY}))["opencode"]
    assert resolved.key is not None
    assert resolved.key.origin == "opencode.json:1  provider.gw.options.apiKey -> GW_KEY"


def test_variables_and_dotenv(machine: Machine) -> None:
    put(
        machine.cwd,
        ".env",
        f'# x\nexport MOONSHOT_API_KEY="{CANARY}"\nMOONSHOT_BASE_URL=https://api.moonshot.cn/v1\n',
    )
    env = {"OPENAI_API_KEY": OTHER, "OPENAI_API_BASE": "https://gw.test/v1"}
    setups = found(Machine(machine.home, machine.cwd, env))
    assert codes(setups["OpenAI SDK"]) == ["K3L-924"]
    moonshot = setups[".env"]
    assert moonshot.url == "https://api.moonshot.cn/v1/chat/completions"


@pytest.mark.parametrize("content", ["{", "\0", '{"env": 5}', '{"env": {"ANTHROPIC_MODEL": []}}',
                                     "[" * 100_000, ""])  # fmt: skip
def test_broken_files_are_said_so_and_nothing_fails(content: str, machine: Machine) -> None:
    put(machine.home, ".claude/settings.json", content)
    put(machine.home, ".codex/config.toml", content)
    put(machine.home, ".kimi-code/config.toml", content)
    put(machine.home, ".continue/config.yaml", content)
    put(machine.cwd, "config.yaml", content)
    put(machine.cwd, "opencode.json", content)
    put(machine.cwd, "crush.json", content)
    put(machine.cwd, ".vscode/settings.json", content)
    put(machine.cwd, ".env", content)
    found(machine)


CONTINUE = f"""
models:
  - name: K3
    provider: openai
    model: kimi-k3
    apiBase: https://gw.test/v1
    apiKey: {CANARY}
"""
LITELLM = """
model_list:
  - model_name: k3
    litellm_params:
      model: moonshot/kimi-k3
      api_base: https://api.moonshot.ai/v1
      api_key: os.environ/GW_KEY
"""


def test_yaml_is_read_as_a_configuration_is(machine: Machine) -> None:
    pytest.importorskip("yaml", reason="YAML is an extra")
    put(machine.home, ".continue/config.yaml", CONTINUE)
    put(machine.cwd, "litellm_config.yaml", LITELLM)
    setups = found(Machine(machine.home, machine.cwd, {"GW_KEY": OTHER}))
    setup = setups["Continue"]
    assert setup.base_url is not None
    assert setup.base_url.origin == "~/.continue/config.yaml:6  models[0].apiBase"
    assert setup.url == "https://gw.test/v1/chat/completions"
    assert setup.key is not None
    assert setup.key.shown == "***"
    lite = setups["LiteLLM"]
    assert lite.model is not None
    assert lite.model.shown == "kimi-k3"
    assert lite.key is not None
    assert lite.key.origin.endswith("api_key -> GW_KEY")
    assert "K3C-126" in codes(lite)


def test_yaml_without_a_reader_is_named(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    put(machine.cwd, "litellm_config.yaml", LITELLM)
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert codes(found(machine)["LiteLLM"]) == ["K3L-926"]


def test_a_yaml_file_of_another_purpose_is_passed_over(machine: Machine) -> None:
    pytest.importorskip("yaml", reason="YAML is an extra")
    put(machine.cwd, "config.yaml", "name: something\nversion: 3\n")
    assert found(machine) == {}


def test_a_client_that_appends_as_it_stands_is_followed(machine: Machine) -> None:
    put(machine.home, ".codex/config.toml",
        'model_provider = "gw"\n[model_providers.gw]\nbase_url = "https://gw.test"\n')  # fmt: skip
    setup = found(machine)["Codex"]
    assert setup.url == "https://gw.test/responses"
    assert "K3C-125" in codes(setup)


def test_our_own_variables_say_nothing_about_other_tools(machine: Machine) -> None:
    text = 'model_provider = "gw"\n[model_providers.gw]\nbase_url = "https://gw.test/v1"\n'
    put(machine.home, ".codex/config.toml", text)
    ours = {"K3CHECK_BASE_URL": "https://ours.test/v1", "K3CHECK_API_KEY": CANARY}
    setups = found(Machine(machine.home, machine.cwd, ours))
    assert setups["k3check"].url == "https://ours.test/v1/chat/completions"
    assert setups["Codex"].url == "https://gw.test/v1/responses"
    assert setups["Codex"].key is None
