"""The summary for a ticket."""

from __future__ import annotations

import shlex

from k3check.link import check
from k3check.link.request import LinkRequest, Secret
from k3check.link.support import environment, summary
from k3check.report.listener import Silent
from tests.link.catalogue import error
from tests.link.conftest import CANARY
from tests.link.faulty import FaultyServer


def test_summary_holds_what_support_asks_for() -> None:
    bad = error(500, f"oops | `{CANARY}`", "x", headers=(("X-Request-Id", "req-77"),))
    with FaultyServer([bad]) as server:
        made = LinkRequest(base_url=server.base_url, api_key=Secret(CANARY), model="kimi-k3",
                           timeout_s=5, max_retries=1, backoff_s=0.01)  # fmt: skip
        findings = check(made, Silent())
        port = server.port
    text = summary(findings)
    assert CANARY not in text
    assert f"http://127.0.0.1:{port}/v1/chat/completions" in text
    assert "K3L-288 service.error" in text
    assert "req-77" in text
    assert "| 1 | 500 | service.error |" in text
    assert "| 2 | 500 | service.error |" in text
    assert all(f"{name} {value}" in text for name, value in environment().items())
    assert "$K3CHECK_API_KEY" in text
    assert summary(findings, "zh") != text


def test_the_curl_command_is_one_command() -> None:
    with FaultyServer([error(500, "x", "x")]) as server:
        base = server.base_url + "/it's;ls&y"
        key = Secret(CANARY)
        made = LinkRequest(base, key, "kimi-k3", timeout_s=5, max_retries=0, probes=("chat",))
        findings = check(made, Silent())
    command = findings[1].evidence["curl"]
    words = shlex.split(command)
    assert words[0] == "curl"
    assert words[words.index("POST") + 1].endswith("/chat/completions")
    assert "Authorization: Bearer $K3CHECK_API_KEY" in words
    assert CANARY not in command
