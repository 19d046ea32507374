"""Keys inside addresses and models' ids are found; addresses and ids are not taken for keys."""

from __future__ import annotations

import pytest

from k3check.masking.address import hide_in_urls, looks_like_key, secrets_in_address

OPAQUE = "9f86d081884c7d659a2feaa0c55ad015"
FORMS = (
    "http://{}@h/v1",
    "http://u:{}@h/v1",
    "http://{}:x@h/v1",
    "http://h/v1?api_key={}",
    "http://h/v1?a=b&Access-Token={}",
    "http://h/v1?q={}",
    "http://h/{}/v1",
    "http://h/v1#{}",
    "http://h/v1#/x?key={}",
    "h/{}/v1",
    "{}@h",
    "https://{}",
    "{}",
    " {} ",
    "Bearer {}",
    "moonshotai/{}",
    "http://h/v1?auth=Bearer%20{}",
)
KEYS = (
    "sk-canary-7f3a91c04be2d655",
    "sk-ant-api03-aB3dE6gH9jK2",
    "gsk_aB3dE6gH9jK2mN5pQ8",
    "hf_aB3dE6gH9jK2mN5pQ8",
    "xai-aB3dE6gH9jK2mN5pQ8",
    "AIzaSyB3dE6gH9jK2mN5pQ8",
    OPAQUE,
)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_found_wherever_it_stands(key: str, form: str) -> None:
    found = secrets_in_address(form.format(key))
    assert key in found
    assert key.lower() in found  # as a host is shown


@pytest.mark.parametrize(
    ("url", "secret"),
    [
        ("http://h/?sig=hunter22", "hunter22"),
        ("http://h/?password=hunter%2D22", "hunter-22"),
        ("http://h/?x-api-key=hunter22", "hunter22"),
        ("http://me:hunter22@h/", "hunter22"),
        ("me:hunter22@proxy:3128", "hunter22"),
    ],
)
def test_a_secrets_name_is_enough(url: str, secret: str) -> None:
    assert secret in secrets_in_address(url)
    assert secret not in hide_in_urls(url) or "://" not in url


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "https://api.moonshot.ai/v1?utm_source=newsletter",
        "https://api.moonshot.ai/anthropic",
        "https://h.test/openai/deployments/kimi-k3-2026-08-06/chat/completions?api-version=2024-10-21",
        "https://h.test/v1?monkey=bananas&tokenizer=default&author=somebody",
        "http://[::1]:8000/v1",
        "https://task-force.example.test/disk-space/v1",
        "moonshotai/Kimi-K3-Instruct-0905",
        "accounts/fireworks/models/kimi-k3-instruct",
        "kimi-for-coding",
        "hf_models_of_somebody",
    ],
)
def test_what_is_no_key_stays(text: str | None) -> None:
    assert secrets_in_address(text) == ()
    if text:
        assert hide_in_urls(text) == text
        assert not looks_like_key(text)
