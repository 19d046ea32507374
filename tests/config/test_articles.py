"""The six files of the articles load as they stand, each by its own dialect."""

from __future__ import annotations

from pathlib import Path

import pytest

from k3check.config.load import load
from tests.config.support import ARTICLES, Loader

# From the files themselves, read by eye: (file, dialect, key, value, line).
STATED = [
    ("config.toml", "k3check", "api.base_url", "https://taotoken.net/api", 3),
    ("config.toml", "k3check", "api.timeout_seconds", 120.0, 5),
    ("config.toml", "k3check", "kda.d_k", 4096, 16),
    ("config.toml", "k3check", "flashkda.bind_dplr_to_k", True, 27),
    ("config.toml", "k3check", "attn_residuals.block_size", 10, 32),
    ("config.toml", "k3check", "moe.sparsity_ratio", 56.0, 40),
    ("config.toml", "k3check", "logging.log_chunk_boundary", True, 47),
    ("settings.json", "settings-json", "api.provider", "taotoken", 2),
    ("settings.json", "settings-json", "model.context_window", 1048576, 6),
    ("settings.json", "settings-json", "validation.numerical_tolerance", 1e-3, 11),
    ("settings.json", "settings-json", "moe.balancing", "quantile", 14),
    ("settings.json", "settings-json", "logging.log_dir", "./logs/kimi-k3-ops", 15),
    ("client.json", "client-json", "model.max_output_tokens", 8192, 5),
    ("client.json", "client-json", "client.stream", True, 8),
    ("client.json", "client-json", "model.top_p", 0.95, 7),
    ("codex-auth.json", "codex-auth", "api.base_url", "https://taotoken.net/api", 1),
    ("codex-auth.json", "codex-auth", "model.name", "kimi-k3", 1),
    ("claude-code-settings.json", "claude-code", "api.base_url", "https://taotoken.net/api", 3),
    ("claude-code-settings.json", "claude-code", "model.name", "kimi-k3", 5),
    ("claude-code-settings.json", "claude-code", "link.protocol", "anthropic", 2),
    ("claude-code-settings.json", "claude-code", "link.auth", "x-api-key", 4),
    ("serving.toml", "serving-toml", "serving.port", 8000, 3),
    ("serving.toml", "serving-toml", "api.base_url", "https://taotoken.net/api", 7),
    ("serving.toml", "serving-toml", "model.context_window", 131072, 9),
    ("serving.toml", "serving-toml", "attn_residuals.block_size", 12, 18),
    ("serving.toml", "serving-toml", "attn_residuals.enabled", True, 17),
    ("serving.toml", "serving-toml", "moe.num_routed_experts", 896, 21),
    ("serving.toml", "serving-toml", "cache.checkpoint_interval", 4096, 32),
]
KEYS = {
    "config.toml": "sk-your-key-here",
    "settings.json": "sk-your-key-here",
    "client.json": "sk-your-taotoken-key",
    "codex-auth.json": "sk-your-taotoken-key",
    "claude-code-settings.json": "sk-your-taotoken-key",
    "serving.toml": "sk-your-taotoken-key",
}


@pytest.mark.parametrize(("name", "dialect", "key", "value", "line"), STATED)
def test_values_and_their_lines(
    name: str, dialect: str, key: str, value: object, line: int
) -> None:
    loaded = load(ARTICLES / name, cwd=ARTICLES, env={})
    section, field = key.split(".")
    assert loaded.dialect == dialect
    assert getattr(getattr(loaded.config, section), field) == value
    assert loaded.origins[key].line == line


@pytest.mark.parametrize("name", KEYS)
def test_the_key_is_read_as_a_secret(name: str) -> None:
    config = load(ARTICLES / name, cwd=ARTICLES, env={}).config
    assert config.api.api_key is not None
    assert config.api.api_key.get_secret_value() == KEYS[name]
    assert KEYS[name] not in repr(config)


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("disguise", ["config.toml", "settings.json", "some.txt", "noending"])
def test_recognised_from_content_whatever_the_name(
    name: str, disguise: str, loaded: Loader
) -> None:
    plain = load(ARTICLES / name, cwd=ARTICLES, env={})
    disguised = loaded((ARTICLES / name).read_bytes(), disguise)
    assert disguised.dialect == plain.dialect
    assert disguised.config == plain.config


def test_free_tables_are_kept_whole() -> None:
    client = load(ARTICLES / "client.json", cwd=ARTICLES, env={}).config.client
    assert client.extra_body == {
        "context_length": 131072,
        "cache_strategy": "kda_aware_prefix",
        "expert_parallel": True,
        "quantization": "mxfp4_moe_mxfp8_act",
    }


@pytest.mark.parametrize("name", ["config.toml", "settings.json"])
def test_the_examples_are_the_articles_files(name: str) -> None:
    examples = Path(__file__).parents[2] / "examples"
    ours = load(examples / name, cwd=examples, env={})
    assert ours.config == load(ARTICLES / name, cwd=ARTICLES, env={}).config
