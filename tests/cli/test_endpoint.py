"""What the command line adds to the link check: corrections, discovery, cost, the ticket."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from k3check.model import Finding, Outcome
from tests.cli.conftest import finding

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Done, FakeRun

KEY = "sk-canary-0123456789abcdef"
TOML = f"""# my endpoint
[api]
base_url = "https://gw.test/v1?utm_source=x"  # from the blog
api_key = "{KEY}"
max_retries = 17 # many

[model]
name = 'Kimi-K3'
context_window = 262144
"""
# Only the spelling: what was not seen to work is not written, and a model never by guess.
CORRECTED = TOML.replace("https://gw.test/v1?utm_source=x", "https://gw.test/v1")
TOOLS = ("OPENAI", "ANTHROPIC", "KIMI", "MOONSHOT")


@pytest.fixture
def config() -> Path:
    path = Path("k3check.toml")
    path.write_text(TOML)
    path.chmod(0o600)
    return path


class FakeLink:
    """Stands for the endpoint's check: keeps the request, sends nothing."""

    request: Any = None

    def __call__(self, request: Any, listener: Any) -> list[Finding]:
        self.request = request
        return [Finding("link/chat", "link", None, None, Outcome.PASS, "one chat request")]


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> FakeLink:
    fake = FakeLink()
    monkeypatch.setattr("k3check.link.check", fake)
    return fake


def test_fix_shows_the_edit_then_writes_it_and_keeps_a_backup(
    config: Path, k3check: Callable[..., Done]
) -> None:
    done = k3check("link", "--offline", "--fix")
    assert done.code == 1  # what was checked is what was there before
    assert config.read_text() == CORRECTED
    assert Path("k3check.toml.bak").read_text() == TOML
    shown, _, said = done.err.partition("k3check: wrote ")
    assert '-base_url = "https://gw.test/v1?utm_source=x"  # from the blog' in shown
    assert '+base_url = "https://gw.test/v1"  # from the blog' in shown
    assert said == (
        "k3check.toml; the original is kept as k3check.toml.bak\n"
        'k3check: syntax only: "https://gw.test/v1" was not tried\n'
    )
    assert KEY not in done.out + done.err
    again = k3check("link", "--offline", "--fix")
    assert again.code == 0
    assert "nothing to correct in a file" in again.err
    assert config.read_text() == CORRECTED


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("temperature = 0.7", "temperature"),
        ("top_p = 0.5", "top_p"),
        ("context_window = 4096", "context window"),
    ],
)
def test_of_one_setting_there_is_one_sentence(
    line: str, word: str, tmp_path: Path, k3check: Callable[..., Done]
) -> None:
    (tmp_path / "k3check.toml").write_text(
        f'[api]\nbase_url = "https://gw.test/v1"\napi_key = "{KEY}"\n[model]\n{line}\n'
    )
    done = k3check("link", "--offline", "-v")
    text = " ".join(done.out.split())
    value = line.rpartition(" ")[2]
    assert text.count(f"{word} is {value}") == 1
    assert "should be" not in text
    assert "Remove the key" not in text
    assert f"model.{line.partition(' ')[0]}" not in text.replace("k3check.toml", "")
    # Where no endpoint is checked, the configuration's own note says it, once and in these words.
    shown = " ".join(k3check("config", "show").out.split())
    assert shown.count(f"is {value}; ") == 1


def test_without_fix_the_right_values_are_named_and_nothing_is_written(
    config: Path, k3check: Callable[..., Done]
) -> None:
    done = k3check("link", "--offline")
    text = " ".join(done.out.split())
    assert (
        'k3check.toml:3 api.base_url should be "https://gw.test/v1"; '
        "k3check link --fix writes it [K3C-094]" in text
    )
    assert config.read_text() == TOML
    assert list(Path().iterdir()) == [Path("k3check.toml")]
    checks = json.loads(k3check("link", "--offline", "--format", "json").out)["checks"]
    assert checks[0]["evidence"]["corrected"] == {
        "api.base_url": "https://gw.test/v1",
    }


def test_fix_writes_the_diff_beside_a_json_report_not_into_it(
    config: Path, k3check: Callable[..., Done]
) -> None:
    done = k3check("link", "--offline", "--fix", "-q", "--format", "json")
    json.loads(done.out)
    assert '+base_url = "https://gw.test/v1"' in done.err
    assert config.read_text() == CORRECTED


def test_a_value_of_a_variable_is_not_corrected_in_the_file(
    k3check: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f'[api]\napi_key = "{KEY}"\n'
    Path("k3check.toml").write_text(text)
    monkeypatch.setenv("K3CHECK_BASE_URL", "https://gw.test/v1?x=1")
    done = k3check("link", "--offline", "--fix")
    assert "it comes from K3CHECK_BASE_URL [K3C-095]" in " ".join(done.out.split())
    assert "nothing to correct in a file" in done.err
    assert Path("k3check.toml").read_text() == text


def test_a_value_that_is_written_otherwise_than_it_is_used_is_not_replaced(
    k3check: Callable[..., Done],
) -> None:
    text = json.dumps(
        {
            "model": "gw/Kimi-K3",
            "provider": {
                "gw": {
                    "npm": "@ai-sdk/openai-compatible",
                    "options": {"baseURL": "https://gw.test/v1", "apiKey": KEY},
                    "models": {"Kimi-K3": {}},
                }
            },
        },
        indent=1,
    )
    Path("opencode.json").write_text(text)
    done = k3check("link", "--offline", "--fix", "-c", "opencode.json")
    assert "nothing to correct in a file" in done.err
    assert Path("opencode.json").read_text() == text


def test_a_file_that_cannot_be_edited_safely_stays_as_it_is(k3check: Callable[..., Done]) -> None:
    text = (
        '{"model": "a/kimi-k3", // mine\n"provider": {"a": {"npm": "@ai-sdk/openai-compatible",\n'
        f'"options": {{"apiKey": "{KEY}",\n"baseURL": "https://gw.test/v1?x=1"}},\n'
        '"models": {"kimi-k3": {}}}}}\n'
    )
    Path("opencode.json").write_text(text)
    done = k3check("link", "--offline", "--fix", "-c", "opencode.json")
    assert done.code == 1
    assert "Correct opencode.json:4 " in done.err
    assert 'by hand: "https://gw.test/v1"' in done.err
    assert Path("opencode.json").read_text() == text
    assert list(Path().iterdir()) == [Path("opencode.json")]


def test_a_correction_that_cannot_be_written_is_a_message(
    config: Path, k3check: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(change: object) -> Path:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("k3check.link.repair.write", refuse)
    done = k3check("link", "--offline", "--fix")
    assert done.code == 2
    assert "K3C-099" in done.err
    assert "Permission denied" in done.err
    assert config.read_text() == TOML


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of nobody's, and no tool's variables."""
    for name in list(os.environ):
        if name.startswith(TOOLS):
            monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home


def test_discover_lists_what_each_tool_would_use(
    machine: Path, k3check: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    (machine / ".codex").mkdir()
    (machine / ".codex" / "auth.json").write_text(json.dumps({"OPENAI_API_KEY": KEY}))
    monkeypatch.setenv("OPENAI_BASE_URL", "https://gw.test/v1?x=1")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    done = k3check("link", "--discover")
    assert done.code == 0
    assert KEY not in done.out
    assert "\nOpenAI SDK (openai)\n" in done.out
    assert "Codex (responses)\n" in done.out
    assert "the base URL should read https://gw.test/v1" in " ".join(done.out.split())
    assert done.out.splitlines()[-1] == "2 tools are set up here"
    assert all(len(line) <= 80 for line in done.out.splitlines())
    data = json.loads(k3check("link", "--discover", "--format", "json").out)
    setups = {setup["tool"]: setup for setup in data["setups"]}
    assert set(setups) == {"Codex", "OpenAI SDK"}
    assert setups["OpenAI SDK"]["base_url"] == {
        "value": "https://gw.test/v1?x=1",
        "origin": "OPENAI_BASE_URL",
    }
    assert setups["Codex"]["base_url"] is None


def test_discover_on_a_machine_without_tools(machine: Path, k3check: Callable[..., Done]) -> None:
    done = k3check("link", "--discover")
    assert (done.code, done.out) == (0, "0 tools are set up here\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--discover", "--format", "html"), "text or json with --discover"),
        (("--discover", "--fix"), "--discover and --fix exclude"),
        (("--discover", "--model", "x"), "--discover and --model exclude"),
        (("chat", "--discover"), "--discover and PROBE exclude"),
        (("--demo", "--fix"), "--demo and --fix exclude"),
        (("--demo", "--proxy", "http://x"), "--demo and --proxy exclude"),
        (("--cacert", "missing.pem"), "missing.pem is not there"),
        (("--cacert", "."), "a directory"),
        (("--turns", "0"), "an integer from 1 to 100"),
        (("--needle-tokens", "1"), "an integer from 1000"),
        (("--demo", "--turns", "0"), "an integer from 1 to 100"),
    ],
)
def test_what_link_does_not_accept(
    arguments: tuple[str, ...], said: str, k3check: Callable[..., Done], endpoint: FakeLink
) -> None:
    done = k3check("link", *arguments)
    assert done.code == 2
    assert said in " ".join(done.err.split())
    assert endpoint.request is None


REAL = ("--base-url", "http://127.0.0.1:9/v1", "--api-key-env", "MY_KEY")


@pytest.fixture
def my_key(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MY_KEY", KEY)
    return KEY


@pytest.mark.usefixtures("my_key")
def test_options_reach_the_check(k3check: Callable[..., Done], endpoint: FakeLink) -> None:
    Path("root.pem").write_text("")
    done = k3check(
        "link",
        *REAL,
        *("--proxy", "http://proxy.test:8080"),
        *("--cacert", "root.pem"),
        *("--turns", "3"),
        *("--needle-tokens", "2000"),
    )
    assert done.code == 0
    request = endpoint.request
    assert (request.proxy, request.ca_file) == ("http://proxy.test:8080", "root.pem")
    assert (request.agent_turns, request.needle_tokens) == (3, 2000)
    assert request.api_key.reveal() == KEY


@pytest.mark.usefixtures("my_key")
def test_the_configuration_has_what_the_options_have(
    k3check: Callable[..., Done], endpoint: FakeLink
) -> None:
    Path("k3check.toml").write_text(
        '[link]\nproxy = "http://proxy.test"\nca_file = "root.pem"\nagent_turns = 4\n'
        "needle_tokens = 5000\n"
        "[model]\nn = 2\npresence_penalty = 0.5\nfrequency_penalty = -0.5\n"
    )
    assert k3check("link", *REAL).code == 0
    request = endpoint.request
    assert (request.proxy, request.ca_file) == ("http://proxy.test", "root.pem")
    assert (request.agent_turns, request.needle_tokens) == (4, 5000)
    assert (request.n, request.presence_penalty, request.frequency_penalty) == (2, 0.5, -0.5)


@pytest.mark.usefixtures("my_key")
def test_what_costs_more_than_usual_is_said_before(
    k3check: Callable[..., Done], endpoint: FakeLink
) -> None:
    full = k3check("link", *REAL, "--profile", "full")
    assert full.err.startswith("k3check: this run may send ")
    assert full.err.count("\n") == 1
    # the context, and an answer as long as the output limit (2048) lets it be
    assert "about 52048 tokens" in k3check("link", "needle", *REAL, "--needle-tokens", "50000").err
    assert "7 chargeable requests" in k3check("link", "agent", *REAL, "--turns", "7").err
    for cheap in ((), ("chat",), ("--profile", "quick"), ("--profile", "full", "--offline")):
        assert k3check("link", *REAL, *cheap).err == ""
    # without a key nothing is sent, whatever was asked for
    assert k3check("link", *REAL[:2], "--profile", "full").err == ""
    assert k3check("link", "--demo", "--profile", "full").err == ""


def test_markdown_begins_with_the_ticket_for_support(k3check: Callable[..., Done]) -> None:
    done = k3check("link", "--demo", "--format", "markdown")
    assert done.code == 0
    ticket, _, report = done.out.partition("\n## ✅ k3check: pass\n")
    assert "httpx " in ticket
    assert "- effective_url: `http://127.0.0.1:" in ticket
    assert "| link/chat | pass |" in ticket
    assert "| ✅ | `link/chat` |" in report


def test_a_saved_report_has_the_same_ticket(k3check: Callable[..., Done], tmp_path: Path) -> None:
    saved = k3check("link", "--demo", "--format", "json").out
    (tmp_path / "saved.json").write_text(saved)
    done = k3check("report", "saved.json", "--format", "markdown")
    assert done.code == 0
    ticket, _, report = done.out.partition("\n## ✅ k3check: pass\n")
    assert "- effective_url: `http://127.0.0.1:" in ticket
    assert ", httpx " in ticket
    assert "| link/tools | 1 | 20" in ticket
    assert "| ✅ | `link/chat` |" in report
    assert "## k3check link" not in k3check("report", "saved.json").out


def test_the_report_says_what_matters_for_a_connection(k3check: Callable[..., Done]) -> None:
    data = json.loads(k3check("link", "--demo", "--format", "json").out)
    assert {"python", "httpx", "openssl"} <= set(data["environment"])


def test_all_without_an_endpoint_says_how_to_check_operators_alone(
    k3check: Callable[..., Done], worker: FakeRun
) -> None:
    done = k3check("all")
    assert done.code == 1
    assert "to check the operators alone: k3check ops" in " ".join(done.out.split())


STEP = '[operators.kda_step]\ntarget = "k.py:f"\n'


def test_all_checks_operators_alone_where_only_they_are_configured(
    k3check: Callable[..., Done], worker: FakeRun, endpoint: FakeLink
) -> None:
    Path("k3check.toml").write_text(STEP)
    for more in ((), ("--offline",), ("--profile", "full")):
        done = k3check("all", *more)
        assert (done.code, done.err) == (0, "")
        assert "- link" in done.out
        assert "set K3CHECK_BASE_URL and K3CHECK_API_KEY" in " ".join(done.out.split())
    assert k3check("all", "-c", "k3check.toml", "--lang", "zh").code == 0
    data = json.loads(k3check("all", "--format", "json").out)
    assert [check["outcome"] for check in data["checks"]] == ["pass", "skipped"]
    assert [note["code"] for note in data["checks"][1]["notes"]] == ["K3C-141"]
    assert endpoint.request is None
    # The operators' result is the exit code: a failure is none the less, and no check is none.
    worker.findings = (finding(Outcome.FAIL),)
    assert k3check("all").code == 1
    worker.findings = (finding(Outcome.SKIPPED),)
    assert k3check("all").code == 3
    Path("k3check.toml").unlink()
    worker.findings = (finding(),)
    assert k3check("all", "--operator", "kda_step=k.py:f").code == 0
    assert endpoint.request is None


@pytest.mark.parametrize(
    ("file", "options"),
    [
        ('[api]\nbase_url = "http://127.0.0.1:9/v1"\n', ()),
        (f'[api]\napi_key = "{KEY}"\n', ()),
        ("", ("--model", "kimi-k3")),
        ("", ("--protocol", "anthropic")),
        ("", ("--base-url", "http://127.0.0.1:9/v1")),
        ("", ("--api-key-env", "MY_KEY")),
    ],
)
@pytest.mark.usefixtures("my_key", "worker")
def test_whatever_is_said_about_an_endpoint_has_it_checked(
    file: str, options: tuple[str, ...], k3check: Callable[..., Done], endpoint: FakeLink
) -> None:
    Path("k3check.toml").write_text(file + STEP)
    assert "K3C-141" not in k3check("all", *options, "-v").out
    assert endpoint.request is not None


@pytest.mark.usefixtures("worker")
def test_all_has_the_ticket_for_support_where_the_endpoint_failed(
    k3check: Callable[..., Done], tmp_path: Path
) -> None:
    failing = ("--base-url", "http://127.0.0.1:9/v1?x=1")
    done = k3check("all", *failing, "--format", "markdown")
    assert done.code == 1
    ticket, _, report = done.out.partition("\n## ❌ k3check: fail")
    assert ticket.startswith("## k3check link\n")
    assert "| link/lint | fail | " in ticket
    assert "K3L-004" in ticket
    assert "| ✅ | `kda_step/pass` |" in report
    (tmp_path / "saved.json").write_text(k3check("all", *failing, "--format", "json").out)
    assert "## k3check link" in k3check("report", "saved.json", "--format", "markdown").out
    passing = k3check("all", "--demo", "--format", "markdown")
    assert passing.code == 0
    assert passing.out.startswith("## ✅ k3check: pass")


@pytest.mark.parametrize("more", [(), ("--offline",), ("chat", "--model", "kimi-k3")])
def test_link_without_any_endpoint_is_an_error_of_usage(
    more: tuple[str, ...], k3check: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("K3CHECK_API_KEY", KEY)
    done = k3check("link", *more)
    assert (done.code, done.out) == (2, "")
    said = " ".join(done.err.split())
    assert "[K3C-140]" in said
    fix = said.partition(" fix ")[2]
    assert fix.startswith("Set the variables K3CHECK_BASE_URL and K3CHECK_API_KEY")
    assert "file" not in fix
    assert KEY not in done.err


def test_a_file_without_an_address_is_a_finding(k3check: Callable[..., Done]) -> None:
    Path("k3check.toml").write_text('[model]\nname = "kimi-k3"\n')
    done = k3check("link")
    assert done.code == 1
    assert "[K3L-001]" in done.out
    assert "operators alone" not in done.out


def test_built_in_operators_are_said_to_be_built_in(
    k3check: Callable[..., Done], worker: FakeRun, tmp_path: Path
) -> None:
    said = "no operator of yours was checked. Name one with --operator NAME=TARGET or an"
    for arguments in (("ops",), ("ops", "kda"), ("ops", "--demo"), ("ops", "-q"), ("all",)):
        out = k3check(*arguments).out
        assert said in " ".join(out.split())
        assert "(built-in operators only): " in out.splitlines()[-1]
    data = json.loads(k3check("ops", "--format", "json").out)
    notes = [note["code"] for check in data["checks"] for note in check["notes"]]
    assert notes.count("K3C-096") == 1
    (tmp_path / "saved.json").write_text(json.dumps(data))
    assert said in " ".join(k3check("report", "saved.json").out.split())
    assert "built-in operators only" not in k3check("ops", "--operator", "kda_step=a:b").out


@pytest.mark.usefixtures("my_key")
def test_variables_with_the_key_are_kept_from_the_worker(
    k3check: Callable[..., Done],
    worker: FakeRun,
    endpoint: FakeLink,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("A_COPY", KEY)
    assert k3check("all", *REAL).code == 0
    assert set(worker.request.hidden) == {"MY_KEY", "A_COPY"}
    assert k3check("ops").code == 0
    assert worker.request.hidden == ()
