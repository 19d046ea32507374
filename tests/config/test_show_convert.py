"""`config show`, `convert`, `schema` and `init`."""

from __future__ import annotations

import json
import stat
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from k3check.config import init, schema, show
from k3check.config.convert import convert
from k3check.config.describe import keys
from k3check.config.load import Override, load
from k3check.config.models import Config, LinkConfig
from k3check.errors import UsageError
from tests.config.support import ARTICLES, Loader

if TYPE_CHECKING:
    from k3check.config.loaded import Loaded

NAMES = sorted(path.name for path in ARTICLES.iterdir())


def without_key(config: Config) -> Config:
    return config.model_copy(update={"api": config.api.model_copy(update={"api_key": None})})


@pytest.mark.parametrize("name", NAMES)
def test_convert_round_trip(name: str, loaded: Loader) -> None:
    before = load(ARTICLES / name, cwd=ARTICLES, env={})
    text = convert(before)
    after = loaded(text)
    assert after.dialect == "k3check"
    assert after.config == without_key(before.config)
    assert "sk-your" not in text
    assert "K3CHECK_API_KEY" in text
    assert f"# Converted from {name} ({before.dialect})." in text
    jsonschema.validate(tomllib.loads(text), schema.schema())


def test_convert_leaves_out_every_secret_and_says_so(loaded: Loader) -> None:
    text = json.dumps(
        {
            "base_url": "https://user:hunter22@example.org/v1",
            "extra_body": {
                "access_token": "t0ken-t0ken",
                "nested": [{"password": "pa55word"}, {"ok": 1}],
                "nothing": None,
                "pin_secret": 918273,
                "number": 1e400,
            },
        }
    ).replace("Infinity", "1e400")
    converted = convert(loaded(text, "client.json"))
    for secret in ("hunter22", "t0ken", "pa55word", "918273"):
        assert secret not in converted
    assert "# Not written: client.extra_body.access_token." in converted
    again = loaded(converted).config
    assert again.api.base_url == "https://example.org/v1"
    assert again.client.extra_body == {"nested": [{}, {"ok": 1}], "number": float("inf")}


def test_convert_of_a_file_with_a_key_alone_still_loads(loaded: Loader) -> None:
    converted = convert(loaded('{"OPENAI_API_KEY": "sk-abcdef"}', "auth.json"))
    assert loaded(converted).config == Config(link=LinkConfig(protocol="responses"))


def test_convert_keeps_empty_operators_and_options(loaded: Loader) -> None:
    text = "[operators.kda_step]\n[operators.kda_chunk.options]\nlower_bound = -5.0\n"
    before = loaded(text)
    assert loaded(convert(before)).config == before.config


JSONABLE = st.recursive(
    st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text("abcxyz .\"'\n=#", max_size=5), JSONABLE, max_size=4))
def test_convert_round_trip_of_any_free_table(body: dict[str, Any]) -> None:
    overrides = {"client.extra_body": Override(body, "--x")}
    nowhere = Path("/nonexistent")
    before = load(cwd=nowhere, env={}, overrides=overrides)
    parsed = tomllib.loads(convert(before))
    assert Config.model_validate(parsed) == before.config


def test_show_rows_cover_every_key(loaded: Loader) -> None:
    result = loaded('[kda]\nd_k = 64\n[operators.kda_chunk]\ntarget = "a:b"\n')
    rows = {row.key: row for row in show.rows(result)}
    plain = {key for key in keys() if not key.startswith("operators.")}
    own = {key for key in keys() if key.startswith("operators.kda_chunk.")}
    assert set(rows) == plain | own
    assert rows["kda.d_k"].value == "64"
    assert not rows["kda.d_k"].is_default
    assert str(rows["kda.d_k"].origin) == "config.toml:2  kda.d_k"
    assert rows["flashkda.use_ut_transform"].value == "true"
    assert rows["kda.d_v"].value == "not set"
    assert rows["kda.d_v"].is_default
    assert rows["operators.kda_chunk.target"].value == "a:b"


def test_show_as_json(loaded: Loader) -> None:
    text = '{"base_url": "x", "extra_body": {"a": 1e999, "api_key": "abcdefgh"}}'
    data = show.to_json(loaded(text, "client.json"))
    data = json.loads(json.dumps(data, allow_nan=False))
    values = {entry["key"]: entry for entry in data["values"]}
    assert data["dialect"] == "client-json"
    assert values["client.extra_body"]["value"] == {"a": "inf", "api_key": "***"}
    assert values["api.base_url"]["origin"] == {
        "where": "client.json", "key": "base_url", "line": 1,
    }  # fmt: skip
    assert values["api.timeout_seconds"]["value"] == 120.0


def test_the_schema_is_valid_and_strict() -> None:
    spec = schema.schema()
    jsonschema.Draft202012Validator.check_schema(spec)
    validator = jsonschema.Draft202012Validator(spec)
    assert validator.is_valid(tomllib.loads((ARTICLES / "config.toml").read_text()))
    assert validator.is_valid({"operators": {"kda_chunk": {"target": "a:b"}}})
    for wrong in (
        {"kdda": {}},
        {"kda": {"dk": 1}},
        {"kda": {"d_k": "1"}},
        {"kda": {"d_k": 0}},
        {"operators": {"kda_chnk": {}}},
        {"operators": {"kda_chunk": {"dtype": "bf16"}}},
    ):
        assert not validator.is_valid(wrong)


def test_init_writes_a_private_file_that_loads(tmp_path: Path) -> None:
    path = tmp_path / "k3check.toml"
    init.write_starter(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    result: Loaded = load(cwd=tmp_path, env={})
    assert result.path == path
    assert result.config.model.name == "kimi-k3"


def test_the_starters_commented_operator_is_valid_too(loaded: Loader) -> None:
    head, _, tail = init.starter().partition("# [operators.")
    active = head + "[operators." + tail.replace("\n# ", "\n")
    operator = loaded(active).config.operators["kda_chunk"]
    assert operator.options == {"safe_gate": True, "lower_bound": -5.0}


def test_the_examples_commented_operator_is_valid_too(loaded: Loader) -> None:
    text = (Path(__file__).parents[2] / "examples" / "config.toml").read_text("utf-8")
    head, _, tail = text.partition("# [operators.")
    active = head + "[operators." + tail.replace("\n# ", "\n")
    operator = loaded(active).config.operators["kda_chunk"]
    assert operator.target == "examples/operators/my_kda.py:kda_chunk"


def test_init_never_overwrites_unasked(tmp_path: Path) -> None:
    path = tmp_path / "k3check.toml"
    path.write_text("mine")
    with pytest.raises(UsageError) as caught:
        init.write_starter(path)
    assert caught.value.code == "K3C-027"
    assert path.read_text() == "mine"
    init.write_starter(path, force=True)
    assert path.read_text("utf-8") == init.starter()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["k3check.toml"]


def test_init_does_not_write_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "k3check.toml").symlink_to("precious")
    with pytest.raises(UsageError):
        init.write_starter(tmp_path / "k3check.toml")
    init.write_starter(tmp_path / "k3check.toml", force=True)
    assert (tmp_path / "precious").read_text() == "mine"


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("name", ["no/such/folder.toml", "x" * 4000, "a\0b"])
def test_init_where_nothing_can_be_written(name: str, force: bool, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        init.write_starter(tmp_path / name, force=force)
    assert caught.value.code == "K3C-028"
    assert list(tmp_path.iterdir()) == []


def test_init_force_on_a_folder(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError) as caught:
        init.write_starter(tmp_path / "folder", force=True)
    assert caught.value.code == "K3C-028"
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
