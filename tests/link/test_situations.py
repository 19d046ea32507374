"""Situations from public reports and further ones: the truth, and nothing wrong at ``high``."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from k3check import cli
from tests.link.situations import Server, cases, model_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VARIABLES = ("K3CHECK_API_KEY", "K3CHECK_BASE_URL", "K3CHECK_MODEL", "HTTP_PROXY", "HTTPS_PROXY",
             "ALL_PROXY", "NO_PROXY", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY",
             "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_MODEL", "OPENAI_API_KEY",
             "OPENAI_BASE_URL")  # fmt: skip


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("k3check.link.wire.retry.time.sleep", lambda _: None)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


def filled(value: Any, origin: str) -> Any:
    return json.loads(json.dumps(value).replace("{origin}", origin))


def run(
    case: dict[str, Any], server: Server, patch: pytest.MonkeyPatch, folder: Path, *more: str
) -> tuple[int, dict[str, Any], bytes]:
    """The exit code, the report, and the configuration file's bytes afterwards."""
    client = filled(case["client"], server.origin)
    server.play(case | {"model": model_of(client)})
    patch.chdir(folder)
    for name in VARIABLES:
        patch.delenv(name, raising=False)
        patch.delenv(name.lower(), raising=False)
    patch.setenv("HOME", str(folder))
    arguments = ["link", "--format", "json", "--output", "report.json", *more]
    file = folder / "none"
    if client["given_by"] == "flags":
        patch.setenv("K3CHECK_API_KEY", client["key"])
        arguments += ["--base-url", client["base_url"], "--model", client["model"],
                      "--protocol", client["protocol"]]  # fmt: skip
    else:
        file = folder / client["file"]["name"]
        file.write_text(json.dumps(client["file"]["json"], indent=2))
        file.chmod(0o600)
        arguments += ["-c", str(file)]
    patch.setattr("sys.argv", ["k3check", *arguments])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    code = stopped.value.code
    assert isinstance(code, int)
    report = json.loads((folder / "report.json").read_text("utf-8"))
    return code, report, file.read_bytes() if file.exists() else b""


def told(report: dict[str, Any]) -> list[str]:
    """What the report says: the primary diagnoses, and all with high confidence."""
    texts = []
    for check in report["checks"]:
        for number, one in enumerate(check["diagnoses"]):
            if number == 0 or one["confidence"] == "high":
                hint = check["hint"]["text"] if number == 0 and check["hint"] else ""
                texts.append(f"{one['slug']}\n{one['title']}\n{hint}")
    return texts


def problems(case: dict[str, Any], server: Server, report: dict[str, Any]) -> list[str]:
    """What is wrong with a report."""
    found = []
    if report["summary"]["verdict"] != case["verdict"]:
        found.append(f"verdict {report['summary']['verdict']}")
    outcomes = {check["id"]: check["outcome"] for check in report["checks"]}
    for name, outcome in case.get("checks", {}).items():
        got = outcomes.get(name)
        good = got in ("pass", "acceptable") if outcome == "pass" else got == outcome
        if not good:
            found.append(f"{name} {got}")
    if "requests" in case and max(len(server.requests), server.connections) > case["requests"]:
        found.append(f"{server.connections} connections")
    said = " ".join(told(report))
    for quoted in re.findall(r"(?:\{origin\}|https?://)[\w./:-]*\w|^model \S+", case["fix"]):
        right = quoted.removeprefix("model ").replace("{origin}", server.origin)
        if case["verdict"] == "fail" and right not in said:
            found.append(f"does not name {right}")
    for pattern in case["must_not_say"]:
        exact = pattern.replace("{origin}", re.escape(server.origin))
        found += [
            f"says {pattern}: {t}" for t in told(report) if re.search(exact, t, re.IGNORECASE)
        ]
    return found


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_situation(
    case: dict[str, Any], server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code, report, _ = run(case, server, monkeypatch, tmp_path)
    assert problems(case, server, report) == []
    assert code == (1 if case["verdict"] == "fail" else 0)


@pytest.mark.parametrize(
    "case",
    [c for c in cases() if c["client"]["given_by"] == "file"],
    ids=lambda case: case["id"],
)
def test_fix_writes_what_was_seen_to_work_and_nothing_else(
    case: dict[str, Any], server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _, _, after = run(case, server, monkeypatch, tmp_path, "--fix")
    before = json.dumps(filled(case["client"]["file"]["json"], server.origin), indent=2)
    right = re.search(r"\{origin\}\S*", case["fix"])
    if right is None or case["fix"] == "nothing":
        assert after == before.encode()
        return
    assert after != before.encode()
    code, report, again = run(
        case | {"client": case["client"] | {"file": case["client"]["file"] | {
            "json": json.loads(after)}}}, server, monkeypatch, tmp_path, "--fix",
    )  # fmt: skip
    assert (code, report["summary"]["verdict"]) == (0, "pass")
    assert json.loads(again) == json.loads(after)
