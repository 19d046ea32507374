"""LiteLLM's proxy: with its own mock answers, and in front of services that fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from tests.peers.running import CANARY, link, traces

if TYPE_CHECKING:
    from pathlib import Path

    from tests.peers.configs import Nginx
    from tests.peers.conftest import Endpoint

QUICK = ("--profile", "quick")
DEFAULT = ["lint", "transport", "chat", "stream", "tools"]


def test_a_working_model_passes_everything(litellm: Endpoint, tmp_path: Path) -> None:
    ran = link(tmp_path, litellm.base_url, key=litellm.key)
    assert ran.code == 0
    outcomes = ran.outcomes
    if ran.codes("stream") == ["K3L-507"]:
        # On a busy machine the pieces of a stream may arrive late and all at once: a warning.
        outcomes["stream"] = "pass"
    assert outcomes == dict.fromkeys(DEFAULT, "pass")
    assert ran.checks["chat"]["evidence"]["family"] == "litellm"


def test_mock_answers_pass_and_are_called_canned(litellm: Endpoint, tmp_path: Path) -> None:
    ran = link(tmp_path, litellm.base_url, key=litellm.key, model="mock")
    assert ran.code == 0
    assert ran.codes() == ["K3L-613"]
    # A mock's plain answer always counts ten tokens of prompt, its stream counts them really.
    assert set(ran.codes("stream")) == {"K3L-523", "K3L-613"}
    assert ran.codes("tools") == ["K3L-642"]


def test_the_articles_base_without_version_works(litellm: Endpoint, tmp_path: Path) -> None:
    ran = link(tmp_path, litellm.root, key=litellm.key, options=QUICK)
    assert ran.outcomes["chat"] == "pass"


def test_wrong_key(litellm: Endpoint, tmp_path: Path) -> None:
    ran = link(tmp_path, litellm.base_url, key=CANARY)
    assert ran.code == 1
    assert ran.codes() == ["K3L-209"]
    assert ran.attempts() == [(400, "auth.litellm-no-db")]
    assert ran.outcomes["stream"] == "skipped"


@pytest.mark.parametrize("format_", ["text", "markdown", "github", "html", "junit"])
def test_the_key_is_in_no_format(litellm: Endpoint, tmp_path: Path, format_: str) -> None:
    # link() looks for the key in what it prints; here for what it writes as well.
    report = tmp_path / "report"
    ran = link(tmp_path, litellm.base_url, format_=format_, options=("--output", str(report)))
    assert ran.code == 1
    text = report.read_text("utf-8")
    assert "K3L-209" in text
    assert not any(trace in text for trace in traces(CANARY))
    assert report.stat().st_mode & 0o077 == 0


def test_no_key_arrives(litellm: Endpoint, nginx: Nginx, tmp_path: Path) -> None:
    """nginx in between takes the header away; LiteLLM answers with a plain 500."""
    ran = link(tmp_path, nginx.base("keyless"), key=litellm.key)
    assert ran.attempts() == [(500, "auth.litellm-no-key")]


def test_nothing_listens(litellm: Endpoint, dead_port: int, tmp_path: Path) -> None:
    ran = link(tmp_path, f"http://127.0.0.1:{dead_port}/v1", key=litellm.key)
    assert ran.codes("transport") == ["K3L-103"]
    assert ran.outcomes["chat"] == "skipped"


@pytest.mark.parametrize("base", ["/v1?utm_source=x", "/?utm_source=x", "/api?utm_source=x"])
def test_with_a_query_in_the_base_nothing_is_sent(
    litellm: Endpoint, tmp_path: Path, base: str
) -> None:
    ran = link(tmp_path, litellm.root + base, key=litellm.key)
    assert ran.code == 1
    assert ran.codes("lint") == ["K3L-004"]
    assert ran.outcomes["chat"] == "skipped"


def test_a_wrong_path_finds_the_right_one(litellm: Endpoint, tmp_path: Path) -> None:
    ran = link(tmp_path, litellm.root + "/api", key=litellm.key)
    assert ran.attempts() == [(404, "path.not-found-json")]
    assert ran.codes() == ["K3L-703"]
    assert litellm.base_url in ran.checks["chat"]["hint"]["text"]


def test_the_endpoint_pasted_with_a_slash(litellm: Endpoint, tmp_path: Path) -> None:
    ran = link(tmp_path, litellm.base_url + "/chat/completions/", key=litellm.key)
    assert ran.codes() == ["K3L-703"]


def test_its_redirect_is_not_followed(litellm: Endpoint, nginx: Nginx, tmp_path: Path) -> None:
    """LiteLLM answers a slash behind the route with 307 to its address without one."""
    ran = link(tmp_path, nginx.base("slashed"), key=litellm.key)
    assert ran.attempts() == [(307, "redirect.path")]


@pytest.mark.parametrize(
    ("model", "status", "slug"),
    [
        ("nope", 400, "model.litellm-unknown"),
        ("mock-rate", 429, "limit.other"),
        ("mock-error", 500, "service.error"),
        ("mock-window", 400, "context.exceeded"),
        ("page", 500, "gateway.upstream-not-json"),
        ("nginx", 502, "gateway.upstream-failed"),
        ("dead", 500, "gateway.upstream-dead"),
        ("no-choices", 200, "choices.empty"),
        ("blank", 200, "budget.thinking"),
        ("quota", 429, "quota.exhausted"),
        ("rpm", 429, "limit.requests-per-minute"),
    ],
)
def test_failures(litellm: Endpoint, tmp_path: Path, model: str, status: int, slug: str) -> None:
    ran = link(tmp_path, litellm.base_url, key=litellm.key, model=model, options=QUICK)
    assert ran.code == 1
    assert ran.attempts() == [(status, slug)]
    assert [d["slug"] for d in ran.checks["chat"]["diagnoses"]] == [slug]


def provoke(litellm: Endpoint, model: str) -> None:
    """Ask once for a model whose upstream refuses LiteLLM's key: its cooldown begins."""
    got = httpx.post(
        f"{litellm.base_url}/chat/completions",
        headers={"authorization": f"Bearer {litellm.key}"},
        json={"model": model, "messages": [{"role": "user", "content": "x"}]},
        timeout=30,
    )
    assert got.status_code == 401


def test_a_refused_upstream_key(litellm: Endpoint, tmp_path: Path) -> None:
    """The caller's key is right: what is refused is the one that LiteLLM sends on."""
    ran = link(tmp_path, litellm.base_url, key=litellm.key, model="refused", options=QUICK)
    assert ran.attempts() == [(401, "gateway.upstream-key")]
    assert ran.codes() == ["K3L-287"]


def test_the_cooldown_that_hides_it(litellm: Endpoint, tmp_path: Path) -> None:
    provoke(litellm, "refused-2")
    ran = link(tmp_path, litellm.base_url, key=litellm.key, model="refused-2", options=QUICK)
    assert ran.attempts() == [(429, "limit.litellm-cooldown")]


def test_the_cooldown_waited_for(litellm: Endpoint, tmp_path: Path) -> None:
    """Asked once more after LiteLLM's own Retry-After, the cause behind it is told."""
    provoke(litellm, "refused-3")
    ran = link(tmp_path, litellm.base_url, key=litellm.key, model="refused-3", retries=2,
               options=QUICK)  # fmt: skip
    assert ran.attempts() == [(429, "limit.litellm-cooldown"), (401, "gateway.upstream-key")]
    assert ran.codes() == ["K3L-287"]
    assert ran.checks["chat"]["evidence"]["attempts"][1]["waited"] >= 5.0


def test_anthropic_wire(litellm: Endpoint, tmp_path: Path) -> None:
    ran = link(tmp_path, litellm.root, key=litellm.key, options=("--protocol", "anthropic"))
    assert ran.code == 0
    for name in ("messages", "stream", "tools"):
        assert ran.codes(name) == []


def test_anthropic_wire_of_a_mock_that_does_not_stream(litellm: Endpoint, tmp_path: Path) -> None:
    """LiteLLM's mocks answer a stream on this route with plain JSON."""
    ran = link(tmp_path, litellm.root, key=litellm.key, model="mock",
               options=("--protocol", "anthropic"))  # fmt: skip
    assert ran.code == 1
    assert ran.codes("messages") == ["K3L-613"]
    assert ran.codes("stream") == ["K3L-417"]
    assert ran.codes("tools") == ["K3L-642"]


def test_responses_wire_goes_on_without_a_field_that_litellm_does_not_know(
    litellm: Endpoint, tmp_path: Path
) -> None:
    """LiteLLM refuses ``reasoning.effort`` of a model that its price list does not know."""
    ran = link(tmp_path, litellm.base_url, key=litellm.key, options=("--protocol", "responses"))
    assert ran.code == 0
    assert ran.outcomes["responses"] == "pass"
    assert ran.notes("responses") == ["K3L-907"]
