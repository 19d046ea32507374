"""What a configuration's client would send is what is sent: path, query, headers and model.

The server is healthy at the one place where the client asks and knows nothing else, so a request
that differs fails; and a configuration that is wrong for its client fails as the client does.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from k3check import cli
from tests.link.situations import Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEY = "sk-madeup0000000000000000000000000000000000000000"
OTHER = "sk-madeup1111111111111111111111111111111111111111"
MISSING = {"status": 404, "headers": {"content-type": "application/json"}, "body": {"error": "no"}}


def opencode(package: str, base: str, **options: Any) -> dict[str, Any]:
    given = {"baseURL": base, "apiKey": KEY, **options}
    provider = {"npm": f"@ai-sdk/{package}", "options": given, "models": {"kimi-k3": {}}}
    return {"model": "p/kimi-k3", "provider": {"p": provider}}


def router(url: str, **more: Any) -> dict[str, Any]:
    provider = {"name": "p", "api_base_url": url, "api_key": KEY, "models": ["kimi-k3"], **more}
    return {"Providers": [provider], "Router": {"default": "p,kimi-k3"}}


def crush(kind: str, base: str) -> dict[str, Any]:
    provider = {"type": kind, "base_url": base, "api_key": KEY, "models": [{"id": "kimi-k3"}]}
    return {
        "providers": {"p": provider},
        "models": {"large": {"provider": "p", "model": "kimi-k3"}},
    }


def claude(base: str, **env: str) -> dict[str, Any]:
    return {"env": {"ANTHROPIC_BASE_URL": base, "ANTHROPIC_MODEL": "kimi-k3", **env}}


COPILOT = {"github.copilot.chat.customOAIModels": {"kimi-k3": {"url": "{origin}"}}}
BEARER = f"header authorization=Bearer {KEY}"
X_KEY = f"header x-api-key={KEY}"
# the file, the path where its client asks, what the request has
RIGHT = {
    "opencode": (opencode("openai-compatible", "{origin}/api"), "/api/chat/completions", [BEARER]),
    "opencode-headers": (
        opencode("openai-compatible", "{origin}/v1", headers={"X-Route": "kimi"}),
        "/v1/chat/completions",
        ["header x-route=kimi"],
    ),
    "opencode-anthropic": (opencode("anthropic", "{origin}/a/v1"), "/a/v1/messages", [X_KEY]),
    "opencode-openai": (opencode("openai", "{origin}/v1"), "/v1/responses", [BEARER]),
    "router": (router("{origin}/odd/chat/completions"), "/odd/chat/completions", [BEARER]),
    "router-anthropic": (
        router("{origin}/a/messages", transformer={"use": ["Anthropic"]}),
        "/a/messages",
        [BEARER],
    ),
    "crush-anthropic": (crush("anthropic", "{origin}/v1"), "/v1/messages", [X_KEY]),
    "claude-both": (
        claude("{origin}", ANTHROPIC_AUTH_TOKEN=KEY, ANTHROPIC_API_KEY=OTHER),
        "/v1/messages",
        [BEARER, f"header x-api-key={OTHER}"],
    ),
    "claude-headers": (
        claude("{origin}", ANTHROPIC_AUTH_TOKEN=KEY, ANTHROPIC_CUSTOM_HEADERS="X-Team: k3"),
        "/v1/messages",
        [BEARER, "header x-team=k3"],
    ),
    "copilot": (COPILOT, "/v1/chat/completions", [BEARER]),
}
# the file, and the only path that the server has: not where the client asks
WRONG = {
    "opencode-without-version": (
        opencode("openai-compatible", "{origin}"),
        "/v1/chat/completions",
    ),
    "opencode-anthropic-root": (opencode("anthropic", "{origin}/a"), "/a/v1/messages"),
    "router-base-alone": (router("{origin}/v1"), "/v1/chat/completions"),
    "claude-version-twice": (claude("{origin}/v1", ANTHROPIC_AUTH_TOKEN=KEY), "/v1/messages"),
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("k3check.link.wire.retry.time.sleep", lambda _: None)
    for name in ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY", "K3CHECK_API_KEY", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def run(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("sys.argv", ["k3check", *arguments])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return int(stopped.value.code or 0)


def serve(server: Server, path: str, has: list[str]) -> None:
    when = {"method": "POST", "path": path, "has": [*has, "model=kimi-k3"]}
    models = {"method": "GET", "path": "*/models"}
    answers = [{"when": when, "answer": "healthy"}, {"when": models, "answer": "healthy"}]
    server.play({"answers": answers, "otherwise": MISSING, "model": "kimi-k3"})


def put(data: dict[str, Any], server: Server, folder: Path) -> str:
    file = folder / "client.json"
    file.write_text(json.dumps(data).replace("{origin}", server.origin))
    file.chmod(0o600)
    return file.name


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_one_passes(
    name: str, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, path, has = RIGHT[name]
    serve(server, path, has)
    if name == "copilot":  # its key is in the editor's store
        monkeypatch.setenv("K3CHECK_API_KEY", KEY)
    file = put(data, server, tmp_path)
    before = (tmp_path / file).read_bytes()
    assert run(["link", "-c", file, "--fix"], monkeypatch) == 0
    assert {r.target.partition("?")[0] for r in server.requests if r.method == "POST"} == {path}
    assert (tmp_path / file).read_bytes() == before


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_one_fails_as_the_client_does(
    name: str, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, path = WRONG[name]
    serve(server, path, [])
    assert run(["link", "-c", put(data, server, tmp_path)], monkeypatch) == 1


def test_a_query_of_the_client(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(server, "/v1/responses", [BEARER])
    monkeypatch.setenv("GW_KEY", KEY)
    (tmp_path / "config.toml").write_text(
        'model = "kimi-k3"\nmodel_provider = "gw"\n[model_providers.gw]\nname = "gw"\n'
        f'base_url = "{server.origin}/v1"\nenv_key = "GW_KEY"\nquery_params = {{ v = "7" }}\n'
    )
    assert run(["link", "-c", "config.toml"], monkeypatch) == 0
    assert {r.target for r in server.requests if r.method == "POST"} == {"/v1/responses?v=7"}


def test_a_local_server_without_a_key(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(server, "/v1/chat/completions", [])
    data = crush("openai", "{origin}/v1")
    del data["providers"]["p"]["api_key"]
    assert run(["link", "-c", put(data, server, tmp_path)], monkeypatch) == 0
    assert not any("authorization" in request.headers for request in server.requests)


def test_the_option_header_and_the_keys_other_place(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(server, "/v1/chat/completions", ["header x-route=kimi", BEARER])
    monkeypatch.setenv("K3CHECK_API_KEY", KEY)
    arguments = ["link", "--base-url", f"{server.origin}/v1", "--model", "kimi-k3"]
    assert run(arguments, monkeypatch) == 1
    assert run([*arguments, "--header", "X-Route=kimi"], monkeypatch) == 0
    own = f'[api]\nbase_url = "{server.origin}/v1"\nheaders = {{ X-Route = "kimi" }}\n'
    (tmp_path / "k3check.toml").write_text(own + '[model]\nname = "kimi-k3"\n')
    assert run(["link"], monkeypatch) == 0
