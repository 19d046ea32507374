"""Real configurations of many tools: read as what they are, asked as their clients ask, untouched.

``public_cases`` were handed to us with their truth; ``clients`` are further formats that nobody
handed us, some of them of tools that are not read at all. In both ``expected.json`` says what is
true: dialect, base, model, where the key comes from (a code where no setting holds it), and what
must not be said.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from k3check import cli
from k3check.config.load import load
from k3check.errors import UsageError
from k3check.link.request import request_from

if TYPE_CHECKING:
    from k3check.config.loaded import Loaded

_HERE = Path(__file__).parent
# What the handed truth leaves out.
_URLS = {
    "litellm/config.yaml": "https://api.fireworks.ai/inference/v1/chat/completions",
    "claude-code/settings.local.json": "https://api.moonshot.ai/anthropic/v1/messages",
    "codex/config.toml": "https://api.moonshot.ai/v1/responses",
    "kimi-code/config.toml": "https://api.kimi.com/coding/v1/chat/completions",
    "opencode/opencode.json": "https://api.moonshot.ai/v1/chat/completions",
    "openclaw/openclaw.json": "https://api.moonshot.ai/v1/chat/completions",
    "claude-code-router/config.json": "https://api.moonshot.ai/v1/chat/completions",
    "vscode/settings.json": "https://models.example/v1/chat/completions",
    "zed/settings.json": "https://router.example/v1/chat/completions",
    "crush/crush.json": "https://openrouter.ai/api/v1/chat/completions",
    "kilo/config.json": "https://models.example/api/v4/responses",
}
_DIALECTS = {"vscode/settings.json": "vscode-oaicopilot"}
# The router's setting is the whole URL; its truth names the base behind it.
_BASES = {"claude-code-router/config.json": _URLS["claude-code-router/config.json"]}
_KEYS = {
    "litellm/config.yaml": "FIREWORKS_API_KEY",
    "claude-code/settings.local.json": "K3C-116",
    "codex/config.toml": "K3C-153",
    "kimi-code/config.toml": "K3C-150",
    "opencode/opencode.json": "K3C-110",
    "openclaw/openclaw.json": "MOON_KEY",
    "claude-code-router/config.json": "Providers[0].api_key",
    "vscode/settings.json": "K3C-151",
    "zed/settings.json": "K3C-151",
    "crush/crush.json": "providers.openrouter.api_key",
    "kilo/config.json": "providers[0].openAiNativeApiKey",
}


@dataclass(frozen=True)
class Case:
    """One configuration and what is true of it."""

    folder: str
    name: str
    truth: dict[str, Any]

    @property
    def path(self) -> Path:
        return _HERE / self.folder / self.name

    @property
    def env(self) -> dict[str, str]:
        found: dict[str, str] = self.truth.get("env", {})
        return found


def _cases(folder: str) -> list[Case]:
    expected = json.loads((_HERE / folder / "expected.json").read_text())
    return [Case(folder, name, truth) for name, truth in expected.items()]


def _whole(case: Case) -> Case:
    name, truth = case.name, dict(case.truth)
    truth.setdefault("request_url", _URLS.get(name))
    truth["dialect"] = _DIALECTS.get(name, truth["dialect"])
    truth["base_url"] = _BASES.get(name, truth.get("base_url"))
    truth["key_from"] = _KEYS.get(name, truth.get("key_from"))
    return Case(case.folder, name, truth)


CASES = [*map(_whole, _cases("public_cases")), *_cases("clients")]
KNOWN = [case for case in CASES if case.truth["dialect"]]
UNKNOWN = [case for case in CASES if not case.truth["dialect"]]
OFFLINE = type("Asked", (), {"probes": (), "offline": True, "profile": None})()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and working folder with nothing in it, and no variable of an endpoint's."""
    for name in [n for n in os.environ if n.endswith("_KEY") or n.startswith("K3CHECK_")]:
        monkeypatch.delenv(name)
    return tmp_path


def put(case: Case, place: Path) -> Path:
    """The case's file and its neighbours, readable by their owner alone."""
    for file in case.path.parent.iterdir():
        if file.is_file():
            copy = place / file.name
            shutil.copy(file, copy)
            copy.chmod(0o600)
    return place / case.path.name


def loaded(case: Case, place: Path) -> Loaded:
    env = {"HOME": str(place / "home"), **case.env}
    return load(Path(put(case, place).name), cwd=place, env=env)


def test_every_file_has_its_truth() -> None:
    for folder in ("public_cases", "clients"):
        files = {
            str(file.relative_to(_HERE / folder).parent)
            for file in (_HERE / folder).rglob("*")
            if file.is_file() and file.name != "expected.json"
        }
        assert files == {str(Path(case.name).parent) for case in CASES if case.folder == folder}


@pytest.mark.parametrize("case", KNOWN, ids=lambda case: case.name)
def test_a_client_asks_as_it_asks(case: Case, place: Path) -> None:
    found = loaded(case, place)
    request = request_from(found, OFFLINE, env={})
    truth = case.truth
    assert found.dialect == truth["dialect"]
    assert request.base_url == truth["base_url"]
    assert request.address().url(request.protocol) == truth["request_url"]
    assert request.model == truth["model"]
    assert dict(request.headers) == truth.get("headers", {})
    if re.fullmatch(r"K3C-\d+", truth["key_from"]):
        assert request.api_key is None
        assert found.absent["api.api_key"].code == truth["key_from"]
    else:
        assert found.origins["api.api_key"].key.endswith(truth["key_from"])
        assert request.api_key is not None


@pytest.mark.parametrize("case", KNOWN, ids=lambda case: case.name)
def test_the_verdict_offline_and_the_file_after_fix(
    case: Case, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = put(case, place)
    before = file.read_bytes()
    monkeypatch.chdir(place)
    for name, value in {"HOME": str(place / "home"), **case.env}.items():
        monkeypatch.setenv(name, value)
    code = _run(["link", "--offline", "-c", file.name, "--fix"], monkeypatch)
    out = capsys.readouterr()
    told = " ".join((out.out + out.err).split())
    assert code == {"pass": 0, "fail": 1}[case.truth["verdict_offline"]], told
    for words in case.truth.get("must_not_say", ()):
        assert not re.search(words, told, re.IGNORECASE), (words, told)
    assert "sk-" not in told
    assert file.read_bytes() == before


@pytest.mark.parametrize("case", UNKNOWN, ids=lambda case: case.name)
def test_a_tool_that_is_not_read_is_told_so(case: Case, place: Path) -> None:
    with pytest.raises(UsageError) as caught:
        loaded(case, place)
    error = caught.value
    assert error.code == "K3C-020"
    assert "--base-url" in str(error.fix)
    for words in case.truth["must_not_say"]:
        assert not re.search(words, f"{error.what} {error.fix}", re.IGNORECASE)
    assert "sk-" not in repr(error)


@pytest.mark.parametrize(
    "name", ["claude-code/settings.local.json", "kimi-code/config.toml", "zed/settings.json"]
)
def test_a_run_that_must_send_says_where_the_key_is(
    name: str, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = next(case for case in CASES if case.name == name)
    file = put(case, place)
    monkeypatch.chdir(place)
    monkeypatch.setenv("HOME", str(place / "home"))
    assert _run(["link", "-c", file.name], monkeypatch) == 2
    assert "K3CHECK_API_KEY" in capsys.readouterr().err


def _run(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("sys.argv", ["k3check", *arguments])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return int(stopped.value.code or 0)
