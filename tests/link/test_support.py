"""The summary for a ticket."""

from __future__ import annotations

import json
import re
import shlex
import unicodedata

from k3check.link import check, support
from k3check.link.demo import DemoServer
from k3check.link.request import LinkRequest, Secret
from k3check.link.support import environment, summary
from k3check.model import Finding, Report
from k3check.report.formats import Options, Verbosity, render
from k3check.report.listener import Silent
from k3check.report.saved import parse
from k3check.report.terminal import Look
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
    text = summary(findings, "en", environment())
    assert CANARY not in text
    assert f"http://127.0.0.1:{port}/v1/chat/completions" in text
    assert "K3L-288 service.error" in text
    assert "req-77" in text
    stamp = r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
    for number in (1, 2):
        row = rf"\| link/chat \| {number} \| {stamp} \| 500 \| service.error \| [\d.]+ \| "
        assert re.search(row, text), text
    assert all(f"{name} {value}" in text for name, value in environment().items())
    assert "$K3CHECK_API_KEY" in text
    assert summary(findings, "zh", environment()) != text
    # The same from the JSON, which is all that a ticket's reader may have.
    again = parse(as_json(report_of(findings)), "report.json")
    assert summary(again.findings, "en", again.environment) == text


def report_of(findings: list[Finding]) -> Report:
    return Report(findings, "2026-07-14T12:00:00Z", 1.0, environment=environment())


def as_json(report: Report) -> str:
    return render("json", report, Options("en", Verbosity.NORMAL, Look()))


def test_every_attempt_is_listed_of_checks_that_pass_too() -> None:
    with DemoServer() as demo:
        findings = check(LinkRequest(demo.base_url, Secret(demo.api_key), demo.model), Silent())
    text = summary(findings, "en", environment())
    for name in ("chat", "stream", "tools"):
        assert re.search(
            rf"\| link/{name} \| 1 \| 20\S+Z \| 200 \| ok \| .* \| `[0-9a-f]+` \|", text
        )
    assert demo.api_key not in text


def test_without_a_link_check_there_is_none() -> None:
    assert summary([], "en", environment()) == ""


def test_a_saved_report_that_somebody_changed_drives_no_terminal() -> None:
    with FaultyServer([error(500, "x", "x")]) as server:
        made = LinkRequest(server.base_url, Secret(CANARY), "kimi-k3", max_retries=0,
                           timeout_s=5, probes=("chat",))  # fmt: skip
        findings = check(made, Silent())
    data = json.loads(as_json(report_of(findings)))
    evil = "\x1b[31m|`<b>\u202e\x9b2J\n# x"
    chat = data["checks"][1]
    chat["evidence"] |= {"curl": evil, "excerpt": evil, "family": evil}
    chat["evidence"]["attempts"] = [dict.fromkeys(support._ATTEMPT, evil), 7, {}]
    data["environment"]["httpx"] = evil
    again = parse(json.dumps(data), "report.json")
    text = summary(again.findings, "en", again.environment)
    assert [c for c in text if unicodedata.category(c) in ("Cc", "Cf") and c != "\n"] == []
    rows = [line for line in text.splitlines() if line.startswith("| link/chat | ")]
    assert [row.count("|") for row in rows] == [4, 9, 9]


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
