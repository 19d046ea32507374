"""Settings that are wrong before a packet is sent."""

from __future__ import annotations

import os
import subprocess
import unicodedata
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from k3check import hints
from k3check.link import check, lint
from k3check.link.request import LinkRequest, Secret
from k3check.link.wire.urls import Base
from k3check.model import Outcome
from k3check.report.listener import Silent

if TYPE_CHECKING:
    from pathlib import Path

KEY = "sk-canary-7Qm2vX9pLw4Zt8Kd3Rf6"
GOOD = LinkRequest(base_url="https://api.moonshot.ai/v1", api_key=Secret(KEY), model="kimi-k3")


def codes(**changes: Any) -> list[str]:
    if isinstance(changes.get("api_key"), str):
        changes["api_key"] = Secret(changes["api_key"])
    return [problem.code for problem in lint.check(replace(GOOD, **changes))]


def test_good_settings_have_no_problem() -> None:
    assert codes() == []


@pytest.mark.parametrize(
    ("base_url", "code", "corrected"),
    [
        ("api.moonshot.ai/v1", "K3L-002", "https://api.moonshot.ai/v1"),
        ("localhost:4000", "K3L-002", "http://localhost:4000"),
        ("https:/api.moonshot.ai/v1", "K3L-002", "https://api.moonshot.ai/v1"),
        ("wss://gw.test/v1", "K3L-003", "https://gw.test/v1"),
        ("https://taotoken.net/api?utm_source=blog", "K3L-004", "https://taotoken.net/api"),
        ("https://gw.test/?utm_source=blog", "K3L-004", "https://gw.test"),
        ("https://gw.test/v1#", "K3L-005", "https://gw.test/v1"),
        ("https://gw.test/v1#docs", "K3L-005", "https://gw.test/v1"),
        ("https://gw.test/v1/chat/completions", "K3L-006", "https://gw.test/v1"),
        ("https://gw.test/v1/chat/completions/", "K3L-006", "https://gw.test/v1"),
        ("https://gw.test/v1/v1", "K3L-007", "https://gw.test/v1"),
        ("https://api.moonshot.ai/anthropic", "K3L-010", "https://api.moonshot.ai/v1"),
        ("https://gw.test/anthropic/v1", "K3L-010", "https://gw.test/v1"),
        ("https://gw.test/v1/", "K3L-011", "https://gw.test/v1"),
        ("http://gw.test/v1", "K3L-012", "https://gw.test/v1"),
        ("https://u:p@gw.test/v1", "K3L-013", "https://gw.test/v1"),
        ("https://gw.test:99999/v1", "K3L-014", None),
        ("https://gw.test:0/v1", "K3L-014", None),
        ("https://gw .test/v1", "K3L-015", "https://gw.test/v1"),
        ("https://gw。test/v1", "K3L-015", "https://gw.test/v1"),
        ("https:///v1", "K3L-019", None),
        ("http://", "K3L-019", None),
        ("https://user:pw@/v1", "K3L-019", None),
        ("http://[::1", "K3L-033", "http://[::1]"),
        ("https://[::1/v1", "K3L-033", "https://[::1]/v1"),
        ("http://[::1:8000/v1", "K3L-033", None),
        ("http://a]b/v1", "K3L-033", None),
        ("https://gw.test/\x1b[31mv1", "K3L-034", "https://gw.test/v1"),
        ("https://gw.test/v1\x1b]8;;http://x\x07", "K3L-034", "https://gw.test/v1"),
        ("https://gw\x07.test/v1", "K3L-034", "https://gw.test/v1"),
        ("https://gw.test/v1\x00", "K3L-034", "https://gw.test/v1"),
        ("https://gw.test/v1\x7f", "K3L-034", "https://gw.test/v1"),
        ("https://gw.test/v1\x9b2J", "K3L-034", "https://gw.test/v1"),
        ("https://gw.test\n/v1", "K3L-034", "https://gw.test/v1"),
        ("https://gw.\u200btest/v1", "K3L-034", "https://gw.test/v1"),
        ("https://gw.test/v1\u202e", "K3L-034", "https://gw.test/v1"),
        ("https://gw.test/v1\ud800", "K3L-034", "https://gw.test/v1"),
        ("\x1b", "K3L-034", None),
        ("https://gw.test/a b/v1", "K3L-034", None),
        ("https://gw.test/a\\v1", "K3L-034", None),
        ("://gw.test/v1", "K3L-002", "https://gw.test/v1"),
        (" https://gw.test/v1\n", "K3L-016", "https://gw.test/v1"),
        ('"https://gw.test/v1"', "K3L-016", "https://gw.test/v1"),
        ("https://platform.moonshot.cn/console", "K3L-017", "https://api.moonshot.cn/v1"),
        ("https://your-gateway.test/v1", "K3L-018", None),
        ("https://${HOST}/v1", "K3L-018", None),
        ("https://api.example.com/v1", "K3L-018", None),
        ("https://gw.test/api", "K3L-008", None),
    ],
)
def test_base_url(base_url: str, code: str, corrected: str | None) -> None:
    problems = {p.code: p for p in lint.check(replace(GOOD, base_url=base_url))}
    assert code in problems
    if corrected is None:
        assert problems[code].fixed is None
    else:
        assert problems[code].fixed == corrected
        again = {p.code for p in lint.check(replace(GOOD, base_url=corrected))}
        assert code not in again


@pytest.mark.parametrize(
    "base_url",
    ["https://gw.test/v1", "http://127.0.0.1:4000/v1", "http://[::1]:4000/v1",
     "http://gateway:8080/v1", "http://10.0.0.7/v1", "https://open.test/api/paas/v4"],
)  # fmt: skip
def test_good_base_urls(base_url: str) -> None:
    assert codes(base_url=base_url) == []


@pytest.mark.parametrize(
    ("base_url", "route", "url"),
    [
        ("https://h/api", "openai", "https://h/api/v1/chat/completions"),
        ("https://h/api/", "openai", "https://h/api/v1/chat/completions"),
        ("https://h/v1", "openai", "https://h/v1/chat/completions"),
        ("https://h/v1/", "models", "https://h/v1/models"),
        ("https://h/api/paas/v4", "openai", "https://h/api/paas/v4/chat/completions"),
        ("https://h/api?utm=x", "openai", "https://h/api?utm=x/v1/chat/completions"),
        ("https://h/anthropic", "anthropic", "https://h/anthropic/v1/messages"),
        ("https://h/v1", "responses", "https://h/v1/responses"),
    ],
)
def test_effective_url(base_url: str, route: str, url: str) -> None:
    assert Base(base_url).url(route) == url


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("", "K3L-020"),
        ("  ", "K3L-020"),
        (f"{KEY}\n", "K3L-021"),
        (f" {KEY}", "K3L-021"),
        ("sk-canary 7Qm2vX9pLw4Zt8Kd3Rf6", "K3L-021"),
        (f'"{KEY}"', "K3L-022"),
        (f"“{KEY}”", "K3L-022"),
        (f"Bearer {KEY}", "K3L-023"),
        ("sk-your-key-here", "K3L-024"),
        ("sk-your-taotoken-key", "K3L-024"),
        ("sk-xxxxxxxx", "K3L-024"),
        ("YOUR_API_KEY", "K3L-024"),
        ("${MOONSHOT_API_KEY}", "K3L-024"),
        ("<key>", "K3L-024"),
        ("{env:KIMI}", "K3L-024"),
        ("os.environ/KIMI_KEY", "K3L-024"),
        ("sk-kimi-7Qm2vX9pLw4Zt8Kd3Rf6", "K3L-025"),
        ("sk-ant-api03-7Qm2vX9pLw4Zt8Kd3Rf6", "K3L-025"),
        ("sk-canary-7Qm2vX9–pLw4Zt8Kd3Rf6", "K3L-026"),
        ("sk-canary-７Qm2vX9pLw4Zt8Kd3Rf6", "K3L-026"),
        ("sk-canary…Rf6", "K3L-027"),
        ("sk-ca***********Rf6", "K3L-027"),
        ("sk-7Qm2v", "K3L-028"),
        ("7Qm2vX9pLw4Zt8Kd3Rf6x", "K3L-029"),
        ("MOONSHOT_API_KEY", "K3L-031"),
        ("https://api.moonshot.ai/v1", "K3L-032"),
    ],
)
def test_key(key: str, code: str) -> None:
    assert codes(api_key=key) == [code]


def test_of_a_key_not_even_its_length_is_told() -> None:
    (problem,) = lint.check(replace(GOOD, api_key=Secret("sk-7Qm2v")))
    for lang in hints.LANGUAGES:
        said = hints.title(problem.code, lang, problem.values)
        assert "16" in said
        assert "9" not in said


def test_a_key_is_put_into_a_variable_first_and_never_into_a_file() -> None:
    for lang in hints.LANGUAGES:
        fix = hints.fix("K3L-020", lang)
        assert "K3CHECK_API_KEY" in fix
        assert "--api-key-env" in fix
        assert "api_key" not in fix


def test_key_of_the_platform_on_the_code_plan() -> None:
    assert codes(base_url="https://api.kimi.com/coding/v1", model="k3") == ["K3L-030"]


@pytest.mark.parametrize(
    ("model", "code", "right"),
    [
        ("", "K3L-035", None),
        (" kimi-k3 ", "K3L-036", "kimi-k3"),
        ("Kimi-K3", "K3L-037", "kimi-k3"),
        ("kimi_k3", "K3L-038", "kimi-k3"),
        ("kimik3", "K3L-038", "kimi-k3"),
        ("kimi-k3[1m]", "K3L-039", "kimi-k3"),
        ("ｋimi-k3", "K3L-040", "kimi-k3"),
        ("kimi\x1b[31m-k3", "K3L-040", "kimi-k3"),
        ("kimi-k3\u200b", "K3L-040", "kimi-k3"),
        ("kimi–k3", "K3L-040", "kimi-k3"),
        ("moonshotai/kimi-k3-fast", "K3L-041", "kimi-k3-fast"),
        ("moonshotai/kimi-k3", "K3L-042", "kimi-k3"),
        ("your-model-name", "K3L-043", None),
    ],
)
def test_model(model: str, code: str, right: str | None) -> None:
    problems = lint.check(replace(GOOD, model=model))
    assert [p.code for p in problems] == [code]
    assert problems[0].fixed == right


@pytest.mark.parametrize("model", ["kimi-k2-0905", "gpt-5", "my-alias"])
def test_other_models_are_nobodys_typing_error(model: str) -> None:
    assert codes(model=model) == []


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"temperature": 0.6}, "K3L-045"),
        ({"top_p": 1.0}, "K3L-045"),
        ({"n": 2}, "K3L-045"),
        ({"max_output_tokens": 8192, "context_window": 4096}, "K3L-046"),
        ({"context_window": 2_000_000}, "K3L-047"),
        ({"context_window": 131_072}, "K3L-048"),
        ({"max_output_tokens": 256}, "K3L-049"),
        ({"timeout_s": 10}, "K3L-050"),
        ({"max_retries": 17}, "K3L-051"),
        ({"extra_body": {"expert_parallel": True}}, "K3L-052"),
    ],
)
def test_parameters(changes: dict[str, Any], code: str) -> None:
    assert code in codes(**changes)


def test_official_values_pass() -> None:
    assert codes(temperature=1.0, top_p=0.95, n=1, context_window=1_048_576) == []


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"env": {"HTTPS_PROXY": "foo://127.0.0.1:1"}}, "K3L-060"),
        ({"env": {"ALL_PROXY": "socks5://127.0.0.1:1"}}, "K3L-061"),
        ({"base_url": "http://127.0.0.1:4000/v1", "env": {"http_proxy": "http://p:1"}},
         "K3L-062"),
        ({"proxy": "http://a:1", "env": {"HTTPS_PROXY": "http://b:1"}}, "K3L-063"),
    ],
)  # fmt: skip
def test_proxy(changes: dict[str, Any], code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lint, "_has_socks", lambda: False)
    assert codes(**changes) == [code]


@pytest.mark.parametrize("missing", ["base_url", "api_key", "model"])
def test_claude_code_falls_back_to_its_login(missing: str) -> None:
    anthropic = replace(GOOD, base_url="https://gw.test/anthropic", protocol="anthropic")
    problems = lint.check(replace(anthropic, **{missing: None}))
    assert [p.code for p in problems] == ["K3L-057"]
    names = {"base_url": "BASE_URL", "api_key": "API_KEY", "model": "MODEL"}
    assert names[missing] in problems[0].values["missing"]


@pytest.mark.parametrize(
    ("base_url", "corrected"),
    [
        ("https://api.moonshot.ai/v1", "https://api.moonshot.ai/anthropic"),
        ("https://gw.test/anthropic/v1", "https://gw.test/anthropic"),
        ("https://gw.test/v1", "https://gw.test"),
    ],
)
def test_openai_base_for_claude_code(base_url: str, corrected: str) -> None:
    problems = lint.check(replace(GOOD, base_url=base_url, protocol="anthropic"))
    assert [(p.code, p.fixed) for p in problems] == [("K3L-009", corrected)]


@pytest.mark.skipif(os.name != "posix", reason="permission bits are POSIX")
def test_files_that_others_can_read(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f'api_key = "{KEY}"')
    file.chmod(0o644)
    assert codes(files=(str(file),)) == ["K3L-054"]
    file.chmod(0o600)
    assert codes(files=(str(file),)) == []


def test_files_under_version_control(tmp_path: Path) -> None:
    file = tmp_path / "sub" / "config.toml"
    file.parent.mkdir()
    file.write_text(f'api_key = "{KEY}"')
    file.chmod(0o600)
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True)
    assert codes(files=(str(file),)) == []
    subprocess.run([*git, "add", "."], check=True)
    assert codes(files=(str(file),)) == ["K3L-055"]


HOSTILE = ("http://", "http://[::1", "https://gw.test/\x1b[31mred\x1b[0m", "\x1b]0;title\x07",
           "https://gw.test/\x9b31m", "https://gw.test/v1\u202e\u200b", "https://g\ud800.test",
           "https://gw.test/v1\x00\x7f")  # fmt: skip


@pytest.mark.parametrize("base_url", HOSTILE)
@pytest.mark.parametrize("lang", hints.LANGUAGES)
def test_an_unusable_address_says_what_where_accepted_and_what_to_do(
    base_url: str, lang: str
) -> None:
    """And nothing of it drives the terminal."""
    request = replace(GOOD, base_url=base_url, origins={"api.base_url": "config.toml:2  base_url"},
                      probes=("lint", "chat"))  # fmt: skip
    found, chat = check(request, Silent())
    assert found.outcome is Outcome.FAIL
    assert chat.outcome is Outcome.SKIPPED  # nothing is sent
    (said,) = found.diagnoses
    title, fix = hints.title(said.code, lang, said.values), hints.fix(said.code, lang, said.values)
    assert "config.toml:2" in title
    assert "https://HOST/PATH" in title or "http://[ADDRESS]:PORT/PATH" in title
    assert "https://" in fix or "http://" in fix
    shown = title + fix + str(found.evidence) + "".join(str(v) for v in said.values.values())
    assert [c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Cs")] == []
    assert "effective_url" not in found.evidence


def test_no_text_shows_the_key_and_every_placeholder_is_filled() -> None:
    requests = [
        replace(GOOD, api_key=Secret(f"{KEY}\n"), base_url="api.moonshot.ai?x=1"),
        replace(GOOD, api_key=Secret(f"Bearer {KEY}"), base_url="https://u:p@gw.test/v1?x"),
        replace(GOOD, base_url=None, api_key=None, model=None),
    ]
    for request in requests:
        for problem in lint.check(request):
            for lang in hints.LANGUAGES:
                for text in (hints.title, hints.fix):
                    shown = text(problem.code, lang, problem.values)
                    assert "<" not in shown
                    assert KEY not in shown
                    assert "u:p@" not in shown
