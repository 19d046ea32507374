"""Whatever a file holds: loading ends well, or in a UsageError that can be printed."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from k3check.config import show
from k3check.config.convert import convert
from k3check.config.describe import keys
from k3check.config.load import Override, load
from k3check.errors import UsageError
from tests.config.support import everything

ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(10**30), 10**30)
    | st.floats()
    | st.text(st.characters(), max_size=8)
    | st.sampled_from(["k3", "auto", "cuda:0", "\ud800", "\0", "1e5"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
OUR_KEYS = st.sampled_from(
    [
        *keys(),
        "baseUrl", "apiKey", "model", "base_url", "api_key", "extra_body", "env.ANTHROPIC_MODEL",
        "env.ANTHROPIC_AUTH_TOKEN", "env.API_TIMEOUT_MS", "agent", "modelConfig.temperature",
        "server.port", "model.base_url", "tool.k3check.kda.d_k", "operatorValidation", "moe",
        "operators", "operators.kda_chunk", "kdda.x", "tokens", "OPENAI_API_KEY",
    ]
)  # fmt: skip
SETTINGS = st.dictionaries(OUR_KEYS, ANY, max_size=6)


def try_to_load(raw: bytes, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / name).write_bytes(raw)
        for path in (Path(name), None):
            try:
                result = load(path, cwd=Path(folder), env={"K3CHECK_MODEL": "k3"})
            except UsageError as error:
                everything(error).encode("utf-8")
                continue
            json.dumps(show.to_json(result), allow_nan=False).encode("utf-8")
            repr(show.rows(result)).encode("utf-8")
            convert(result).encode("utf-8")


def nested(flat: dict[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key, value in flat.items():
        *parents, last = key.split(".")
        node = data
        for part in parents:
            child = node.get(part)
            if not isinstance(child, dict):
                child = node[part] = {}
            node = child
        node[last] = value
    return data


@given(st.binary(max_size=200), st.sampled_from(["config.toml", "settings.json", "k3check.toml"]))
def test_any_bytes(raw: bytes, name: str) -> None:
    try_to_load(raw, name)


TOKENS = ["[", "]", "{", "}", '"', "'", '"""', "=", ":", ",", "\n", "#", "//", "\\", ".", " "]
TOKENS += ["api", "api_key", "kda", "d_k", "1", "-1", "nan", "true", "1979-05-27", "\\u0000", "é"]


@given(st.lists(st.sampled_from(TOKENS), max_size=30), st.sampled_from(["", "{", "[api]\n"]))
def test_any_sequence_of_tokens(tokens: list[str], start: str) -> None:
    try_to_load((start + "".join(tokens)).encode(), "config.toml")


@given(SETTINGS)
@settings(max_examples=200)
def test_any_values_in_json(flat: dict[str, Any]) -> None:
    try_to_load(json.dumps(nested(flat)).encode("utf-8", "surrogatepass"), "settings.json")


def without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_null(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [without_null(v) for v in value if v is not None]
    return value


@given(SETTINGS)
@settings(max_examples=200)
def test_any_values_in_toml(flat: dict[str, Any]) -> None:
    raw = tomli_w.dumps(without_null(nested(flat))).encode("utf-8", "surrogatepass")
    try_to_load(raw, "k3check.toml")


@given(st.dictionaries(st.sampled_from(keys()) | st.text(max_size=20), ANY, max_size=4))
def test_any_overrides(values: dict[str, Any]) -> None:
    overrides = {key: Override(value, "--option") for key, value in values.items()}
    try:
        result = load(cwd=Path("/nonexistent"), env={}, overrides=overrides)
    except UsageError as error:
        everything(error).encode("utf-8")
        return
    json.dumps(show.to_json(result), allow_nan=False).encode("utf-8")


@given(st.text(st.characters(), max_size=10), st.text(st.characters(), max_size=10))
def test_any_variables(url: str, model: str) -> None:
    env = {"K3CHECK_BASE_URL": url, "K3CHECK_API_KEY": model, "K3CHECK_MODEL": model}
    try:
        result = load(cwd=Path("/nonexistent"), env=env)
    except UsageError as error:
        everything(error).encode("utf-8")
        return
    repr(show.rows(result)).encode("utf-8")
