"""The official SDKs as a cross-check: what we pass, they can use; what we fail, they cannot."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.peers.running import CANARY, link
from tests.peers.servers import clean_env, in_venv

if TYPE_CHECKING:
    from k3check.link.demo import DemoServer
    from tests.peers.configs import Nginx
    from tests.peers.conftest import Endpoint

CLIENT = Path(__file__).with_name("sdk_client.py")
WORD = "k3-sdk"


def sdk(kind: str, base_url: str, key: str, model: str = "kimi-k3") -> dict[str, Any]:
    """What an SDK makes of an endpoint."""
    done = subprocess.run(
        [in_venv("python"), str(CLIENT), kind, base_url, model],
        check=True,
        capture_output=True,
        text=True,
        env=clean_env({"SDK_KEY": key}),
        timeout=90,
    )
    return dict(json.loads(done.stdout))


def usable_by_openai(base_url: str, key: str) -> None:
    used = sdk("openai", base_url, key)
    assert used.get("error") is None, used
    assert used["text"].strip() == WORD
    assert used["streamed"].strip() == WORD
    assert used["finish"] == "stop"
    assert used["tokens"] > 0
    assert [name for name, _ in used["tools"]] == ["book_room"]
    assert isinstance(used["tools"][0][1]["room"], str)
    assert "kimi-k3" in used["models"]


def test_demo_with_openai(demo: DemoServer, tmp_path: Path) -> None:
    assert link(tmp_path, demo.base_url, key=demo.api_key).code == 0
    usable_by_openai(demo.base_url, demo.api_key)


def test_litellm_with_openai(litellm: Endpoint, tmp_path: Path) -> None:
    assert link(tmp_path, litellm.base_url, key=litellm.key).code == 0
    usable_by_openai(litellm.base_url, litellm.key)


def test_demo_with_anthropic(demo: DemoServer, tmp_path: Path) -> None:
    root = demo.base_url.removesuffix("/v1")
    assert link(tmp_path, root, key=demo.api_key, options=("--protocol", "anthropic")).code == 0
    used = sdk("anthropic", root, demo.api_key)
    assert used.get("error") is None, used
    assert used["text"].strip() == WORD
    assert used["tokens"] > 0
    assert used["streamed"].strip() == WORD
    assert used["finish"] == "end_turn"
    assert used["tools"] == [["book_room", {"room": "Curie"}]]


def test_demo_with_responses(demo: DemoServer, tmp_path: Path) -> None:
    options = ("--protocol", "responses")
    assert link(tmp_path, demo.base_url, key=demo.api_key, options=options).code == 0
    used = sdk("responses", demo.base_url, demo.api_key)
    assert used.get("error") is None, used
    assert used["text"].strip() == used["streamed"].strip() == WORD
    assert used["finish"] == "completed"
    assert used["tools"] == [["book_room", {"room": "Curie"}]]


def test_litellm_with_anthropic(litellm: Endpoint, tmp_path: Path) -> None:
    ran = link(tmp_path, litellm.root, key=litellm.key, options=("--protocol", "anthropic"))
    assert ran.code == 0
    assert sdk("anthropic", litellm.root, litellm.key)["text"].strip() == WORD


@pytest.mark.parametrize(
    ("kind", "options"), [("openai", ()), ("anthropic", ("--protocol", "anthropic"))]
)
def test_a_refused_key_is_refused_to_them_too(
    demo: DemoServer, tmp_path: Path, kind: str, options: tuple[str, ...]
) -> None:
    base = demo.base_url if kind == "openai" else demo.base_url.removesuffix("/v1")
    assert link(tmp_path, base, key=CANARY, options=options).code == 1
    assert sdk(kind, base, CANARY) == {"error": "AuthenticationError"}


def test_a_query_in_the_base_breaks_them_too(demo: DemoServer, tmp_path: Path) -> None:
    base = demo.base_url + "?utm_source=x"
    assert link(tmp_path, base, key=demo.api_key).code == 1
    assert sdk("openai", base, demo.api_key)["error"] == "NotFoundError"


def test_a_redirect_that_the_sdk_follows_is_told_all_the_same(
    nginx: Nginx, demo: DemoServer, tmp_path: Path
) -> None:
    """With a certificate that nobody trusts behind it, following ends in the SDK's own words."""
    assert link(tmp_path, nginx.base("moved301"), key=demo.api_key).codes() == ["K3L-290"]
    assert sdk("openai", nginx.base("moved301"), demo.api_key) == {"error": "APIConnectionError"}
