"""Where values come from: search order, variables, options, and what they shadow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from k3check.config.describe import keys
from k3check.config.load import SEARCHED, Override, load
from k3check.errors import UsageError
from tests.config.support import CANARY, Loader

if TYPE_CHECKING:
    from pathlib import Path


def write(folder: Path, name: str, url: str) -> None:
    texts = {
        "settings.json": f'{{"baseUrl": "{url}"}}',
        "pyproject.toml": f'[tool.k3check.api]\nbase_url = "{url}"\n',
    }
    (folder / name).write_text(texts.get(name, f'[api]\nbase_url = "{url}"\n'))


def test_search_order(tmp_path: Path) -> None:
    for name in SEARCHED:
        write(tmp_path, name, f"https://{name}")
    for name in ("k3check.toml", "config.toml", "settings.json", "pyproject.toml"):
        result = load(cwd=tmp_path, env={})
        assert result.config.api.base_url == f"https://{name}"
        assert result.path == tmp_path / name
        (tmp_path / name).unlink()
    assert load(cwd=tmp_path, env={}).path is None


def test_no_file_is_no_error(tmp_path: Path) -> None:
    result = load(cwd=tmp_path, env={})
    assert (result.path, result.dialect, result.notes) == (None, None, ())
    assert result.config.api.base_url is None
    assert {origin.where for origin in result.origins.values()} == {"default"}


def test_every_leaf_has_an_origin(tmp_path: Path) -> None:
    origins = load(cwd=tmp_path, env={}).origins
    assert set(origins) == {key for key in keys() if not key.startswith("operators.")}


def test_other_tools_files_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('baseURL = "x"\ntitle = "A site"\n[params]\na = 1\n')
    (tmp_path / "settings.json").write_text('{"editor.fontSize": 12}')
    (tmp_path / "pyproject.toml").write_text("broken [ toml")
    result = load(cwd=tmp_path, env={})
    assert result.path is None
    assert [n.code for n in result.notes] == ["K3C-031", "K3C-031"]


def test_a_misspelt_one_of_ours_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[kdda]\nd_k = 64\n")
    with pytest.raises(UsageError, match="kdda"):
        load(cwd=tmp_path, env={})


@pytest.mark.parametrize("text", ["[kdda\n", "[x]\ny = 1\n"])
def test_k3check_toml_must_be_ours(text: str, tmp_path: Path) -> None:
    (tmp_path / "k3check.toml").write_text(text)
    with pytest.raises(UsageError):
        load(cwd=tmp_path, env={})


def test_a_broken_pyproject_that_names_us_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.k3check.kda]\nd_k = \n")
    with pytest.raises(UsageError) as caught:
        load(cwd=tmp_path, env={})
    assert caught.value.where == "pyproject.toml:2:7"


def test_variables_then_options(loaded: Loader) -> None:
    env = {
        "K3CHECK_BASE_URL": "https://variable",
        "K3CHECK_MODEL": "k3",
        "OPENAI_BASE_URL": "https://not-ours",
    }
    overrides = {"api.base_url": Override("https://option", "--base-url")}
    result = loaded('[api]\nbase_url = "https://file"\n', env=env, overrides=overrides)
    origin = result.origins["api.base_url"]
    assert result.config.api.base_url == "https://option"
    assert str(origin) == "--base-url"
    assert origin.shadows == (
        ("K3CHECK_BASE_URL", "https://variable"),
        ("config.toml:2  api.base_url", "https://file"),
    )
    assert result.config.model.name == "k3"
    assert str(result.origins["model.name"]) == "K3CHECK_MODEL"


def test_a_shadowed_key_is_masked(loaded: Loader) -> None:
    text = f'[api]\napi_key = "{CANARY}"\n'
    result = loaded(text, env={"K3CHECK_API_KEY": "another-key-of-mine-123"})
    assert result.config.api.api_key is not None
    assert result.config.api.api_key.get_secret_value() == "another-key-of-mine-123"
    (where, value), *rest = result.origins["api.api_key"].shadows
    assert (where, rest) == ("config.toml:2  api.api_key", [])
    assert CANARY not in value
    assert value == "***"


def test_an_empty_variable_does_not_hide_the_file(loaded: Loader) -> None:
    result = loaded('[api]\napi_key = "file"\n', env={"K3CHECK_API_KEY": ""})
    assert result.config.api.api_key is not None
    assert result.config.api.api_key.get_secret_value() == "file"
    assert [n.code for n in result.notes] == ["K3C-032"]


def test_an_operator_has_an_origin(loaded: Loader, tmp_path: Path) -> None:
    text = '\n[operators.kda_chunk]\ntarget = "k.py:f"\n[operators.kda_step]\n'
    result = loaded(text)
    assert str(result.origins["operators.kda_chunk"]) == "config.toml:2  [operators.kda_chunk]"
    assert result.origins["operators.kda_chunk.target"].line == 3
    assert result.origins["operators.kda_chunk.dtype"].where == "default"
    assert set(result.config.operators) == {"kda_chunk", "kda_step"}
    assert result.config.operators["kda_step"].target is None
    overrides = {"operators.attn_res.target": Override("a:b", "--operator")}
    result = load(cwd=tmp_path / "nowhere", env={}, overrides=overrides)
    assert str(result.origins["operators.attn_res"]) == "--operator"
    assert result.config.operators["attn_res"].target == "a:b"


def test_settings_leave_out_what_is_not_set(loaded: Loader) -> None:
    settings = loaded("[kda]\nd_k = 64\n").config.settings()
    assert settings["kda"] == {"d_k": 64}
    assert settings["flashkda"]["use_ut_transform"] is True
    assert set(settings) == {
        "model", "kda", "flashkda", "attn_residuals", "moe", "mla", "attention", "logging",
        "validation",
    }  # fmt: skip
