"""What is set up on a machine, tool by tool."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from k3check import hints
from k3check.link.discover import Machine, Setup, discover
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
        for remark in setup.remarks:
            for lang in hints.LANGUAGES:
                assert "<" not in hints.title(remark.code, lang, remark.values)
    return setups


def codes(setup: Setup) -> list[str]:
    return [remark.code for remark in setup.remarks]


def test_nothing_is_there(machine: Machine) -> None:
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
    assert setup.key.shown == "sk-…f6"


def test_claude_code_precedence(machine: Machine) -> None:
    env = {"ANTHROPIC_BASE_URL": "https://user.test", "ANTHROPIC_AUTH_TOKEN": CANARY}
    put(machine.home, ".claude/settings.json", {"env": env})
    put(machine.cwd, ".claude/settings.local.json",
        {"env": {"ANTHROPIC_BASE_URL": "https://gw.test/anthropic", "X": 5}})  # fmt: skip
    with_shell = Machine(machine.home, machine.cwd, {"ANTHROPIC_AUTH_TOKEN": OTHER})
    setup = found(with_shell)["Claude Code"]
    assert setup.base_url is not None
    assert setup.base_url.shown == "https://gw.test/anthropic"
    assert setup.url == "https://gw.test/anthropic/v1/messages"
    assert setup.key is not None
    assert setup.key.origin == ".claude/settings.json env.ANTHROPIC_AUTH_TOKEN"
    assert [v.origin for v in setup.shadowed] == [
        ".claude/settings.json env.ANTHROPIC_BASE_URL",
        "ANTHROPIC_AUTH_TOKEN",
    ]
    assert codes(setup) == ["K3L-925", "K3L-057", "K3L-923"]


def test_claude_code_with_both_keys_and_an_openai_base(machine: Machine) -> None:
    env = {"ANTHROPIC_BASE_URL": "https://api.moonshot.ai/v1", "ANTHROPIC_API_KEY": CANARY,
           "ANTHROPIC_AUTH_TOKEN": OTHER, "ANTHROPIC_MODEL": "kimi-k3"}  # fmt: skip
    put(machine.home, ".claude/settings.json", {"env": env})
    setup = found(machine)["Claude Code"]
    assert codes(setup) == ["K3L-056", "K3L-922"]
    assert setup.remarks[1].values["right"] == "https://api.moonshot.ai/anthropic"


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
""",
    )
    put(machine.home, ".codex/auth.json", {"OPENAI_API_KEY": OTHER, "base_url": "https://x.test"})
    setup = found(machine)["Codex"]
    assert setup.url == "https://gw.test/v1/responses"
    assert codes(setup) == ["K3L-921", "K3L-064", "K3L-065"]
    assert setup.key is not None
    assert setup.key.origin == ".codex/auth.json OPENAI_API_KEY"
    setup = found(Machine(machine.home, machine.cwd, {"GW_KEY": CANARY}))["Codex"]
    assert setup.key is not None
    assert setup.key.origin.endswith("env_key -> GW_KEY")


def test_codex_mistakes(machine: Machine) -> None:
    put(machine.home, ".codex/config.toml",
        f'model_provider = "gw"\n[model_providers.gw]\nbase_url = "https://gw.test/v1"\n'
        f'env_key = "{CANARY}"')  # fmt: skip
    assert codes(found(machine)["Codex"]) == ["K3L-059"]
    put(machine.home, ".codex/config.toml", 'model_provider = "missing"')
    put(machine.home, ".codex/auth.json", {"OPENAI_API_KEY": CANARY})
    assert codes(found(machine)["Codex"]) == ["K3L-058"]


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
    kimi = setups["Kimi Code (kimi)"]
    assert kimi.url == "https://api.kimi.com/coding/v1/chat/completions"
    assert kimi.model is not None
    assert kimi.model.shown == "k3"
    assert codes(setups["opencode (gw)"]) == ["K3L-921"]
    resolved = found(Machine(machine.home, machine.cwd, {"GW_KEY": CANARY}))["opencode (gw)"]
    assert resolved.key is not None
    assert resolved.key.origin == "opencode.json provider.gw.options.apiKey -> GW_KEY"


def test_variables_and_dotenv(machine: Machine) -> None:
    put(
        machine.cwd,
        ".env",
        f'# x\nexport MOONSHOT_API_KEY="{CANARY}"\nMOONSHOT_BASE_URL=https://api.moonshot.cn/v1\n',
    )
    env = {"OPENAI_API_KEY": OTHER, "OPENAI_API_BASE": "https://gw.test/v1"}
    setups = found(Machine(machine.home, machine.cwd, env))
    assert codes(setups["OpenAI SDK"]) == ["K3L-924"]
    moonshot = setups[".env (Moonshot)"]
    assert moonshot.url == "https://api.moonshot.cn/v1/chat/completions"


@pytest.mark.parametrize("content", ["{", "\0", '{"env": 5}', '{"env": {"ANTHROPIC_MODEL": []}}',
                                     "[" * 100_000, ""])  # fmt: skip
def test_broken_files_are_said_so_and_nothing_fails(content: str, machine: Machine) -> None:
    put(machine.home, ".claude/settings.json", content)
    put(machine.home, ".codex/config.toml", content)
    put(machine.home, ".kimi-code/config.toml", content)
    put(machine.cwd, "opencode.json", content)
    put(machine.cwd, ".env", content)
    found(machine)


def test_yaml_is_named_and_not_read(machine: Machine) -> None:
    put(machine.cwd, "litellm_config.yaml", "model_list: []")
    assert codes(found(machine)["LiteLLM"]) == ["K3L-926"]
