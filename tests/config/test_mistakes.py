"""Unknown keys, wrong types, values out of range: where, found, accepted, did-you-mean."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from k3check.config.check import Setting, build
from k3check.config.describe import accepted, keys
from k3check.config.load import Override, load
from k3check.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.config.support import Refuser


@pytest.mark.parametrize(
    ("text", "code", "where", "found", "accepts", "fix"),
    [
        ("[kda]\ndk = 64", "K3C-021", "2  kda.dk", None, "d_k, d_v", 'Did you mean "d_k"?'),
        ("[api]\napiKey = 'x'\n", "K3C-021", "2  api.apiKey", None, "api_key", '"api_key"?'),
        ("[kda]\nd_k=1\n[flashkdaa]\nchunk_size=2", "K3C-021", "3  flashkdaa", None, "flashkda",
         '"flashkda"?'),
        ("[kdda]\nd_k = 64", "K3C-021", "1  kdda", None, "kda", '"kda"?'),
        ("[kda]\nd_k=1\n[model]\nbase_url='x'", "K3C-021", "4  model.base_url", None, "name",
         '"api.base_url"?'),
        ("[operators.kda_chnk]\ntarget='a:b'", "K3C-021", "1  operators.kda_chnk", None,
         "kda_chunk", '"kda_chunk"?'),
        ("[operators.kda_chunk]\ntaget='a:b'", "K3C-021", "2  operators.kda_chunk.taget", None,
         "target", '"target"?'),
        ("[kda]\nd_k = '64'", "K3C-022", "2  kda.d_k", '"64"', "an integer from 1 to 1048576",
         "without quotes"),
        ("[kda]\nd_k = 64.0", "K3C-022", "2  kda.d_k", "64.0", "an integer", None),
        ("[kda]\nd_k = true", "K3C-022", "2  kda.d_k", "true", "an integer", None),
        ("[kda]\nd_k = []", "K3C-022", "2  kda.d_k", "a list", "an integer", None),
        ("[kda]\nd_k = {a = 1}", "K3C-022", "2  kda.d_k", "a table", "an integer", None),
        ("api = 3\n[kda]\nd_k = 1", "K3C-022", "1  api", "an integer", "a table", None),
        ("[flashkda]\nuse_ut_transform = 1", "K3C-022", "2  flashkda.use_ut_transform", "1",
         "true or false", None),
        ("[flashkda]\nuse_ut_transform = 'yes'", "K3C-022", "2  flashkda.use_ut_transform",
         '"yes"', "true or false", "Write true or false, without quotes."),
        ("[flashkda]\nuse_ut_transform = 'true'", "K3C-022", "2  flashkda.use_ut_transform",
         '"true"', "true or false", "Write it without quotes."),
        ("[api]\ntimeout_seconds = 'a minute'", "K3C-022", "2  api.timeout_seconds",
         '"a minute"', "a number above 0",
         "Write a number above 0, at most 86400, without quotes."),
        ("[kda]\nd_k = '0'", "K3C-022", "2  kda.d_k", '"0"', "an integer",
         "Write an integer from 1 to 1048576, without quotes."),
        ("[kda]\nalpha_floor = 'nan'", "K3C-022", "2  kda.alpha_floor", '"nan"', "a number",
         "Write a number from 0 to 1, without quotes."),
        ("[kda]\nd_k = '6.5'", "K3C-022", "2  kda.d_k", '"6.5"', "an integer",
         "Write an integer from 1 to 1048576, without quotes."),
        ("[api]\nbase_url = 8000", "K3C-022", "2  api.base_url", "8000", "a text", "in quotes"),
        ("[api]\ntimeout_seconds = 0", "K3C-024", "2  api.timeout_seconds", "0",
         "a number above 0, at most 86400", None),
        ("[api]\ntimeout_seconds = -1.5", "K3C-024", "2  api.timeout_seconds", "-1.5", "", None),
        ("[api]\ntimeout_seconds = nan", "K3C-024", "2  api.timeout_seconds", "nan", "", None),
        ("[api]\ntimeout_seconds = inf", "K3C-024", "2  api.timeout_seconds", "inf", "", None),
        ("[api]\nmax_retries = 101", "K3C-024", "2  api.max_retries", "101",
         "an integer from 0 to 100", None),
        ("[kda]\nalpha_floor = 1.01", "K3C-024", "2  kda.alpha_floor", "1.01",
         "a number from 0 to 1", None),
        ("[moe]\nlatent_dim=1\ntop_k = 0", "K3C-024", "3  moe.top_k", "0", "an integer", None),
        ("[logging]\nlevel = 'Warn'", "K3C-026", "2  logging.level", '"Warn"',
         "one of DEBUG, INFO, WARNING, ERROR", '"WARNING"?'),
        ("[link]\nprotocol = 'anthropc'", "K3C-026", "2  link.protocol", '"anthropc"',
         "one of auto, openai, anthropic, responses", '"anthropic"?'),
        ("[operators.kda_chunk]\ndtype = 'bf16'", "K3C-026", "2  operators.kda_chunk.dtype",
         '"bf16"', "bfloat16", '"bfloat16"?'),
        ("[operators.kda_chunk]\ndevice = 'gpu'\ndtype=1", "K3C-022",
         "3  operators.kda_chunk.dtype", "1", "one of float64", None),
        ("[operators.kda_chunk]\ndevice = 'CUDA 1'", "K3C-026", "2  operators.kda_chunk.device",
         '"CUDA 1"', "auto, cpu, cuda, cuda:1", '"cuda"?'),
        ("[operators.kda_chunk]\noptions = 1", "K3C-022", "2  operators.kda_chunk.options", "1",
         "a table", None),
        ("[operators]\nkda_chunk = 'a:b'", "K3C-022", "2  operators.kda_chunk", "a text",
         "a table", None),
        ("[kda]\nalpha_floor = 0.9\nalpha_ceil = 0.5", "K3C-025", "2  kda.alpha_floor", None,
         None, None),
        ("[moe]\nnum_routed_experts = 8\ntop_k = 9", "K3C-025", "3  moe.top_k", None, None, None),
    ],
)  # fmt: skip
def test_one_mistake(
    text: str,
    code: str,
    where: str,
    found: str | None,
    accepts: str | None,
    fix: str | None,
    refused: Refuser,
) -> None:
    error = refused(text)
    assert error.code == code
    assert error.where == f"config.toml:{where}"
    assert error.found == found
    assert error.what
    assert error.fix
    if accepts is not None:
        assert accepts in (error.accepted or "")
    if fix is not None:
        assert fix in error.fix
    assert error.detail is None


def test_other_dialects_name_their_own_keys(refused: Refuser) -> None:
    error = refused('{"baseUrl": "x",\n "modelConfig": {"contextWindw": 1}}', "settings.json")
    assert error.code == "K3C-021"
    assert error.where == "settings.json:2  modelConfig.contextWindw"
    assert error.fix == 'Did you mean "contextWindow"?'
    error = refused('{"baseUrl": "x",\n "modelConfig": {"contextWindow": "1"}}', "settings.json")
    assert error.where == "settings.json:2  modelConfig.contextWindow"


def test_all_mistakes_are_shown_at_once(refused: Refuser) -> None:
    error = refused("[kda]\nd_k = '64'\nd_v = 0\n[api]\nmax_retries = -1\n")
    assert error.where == "config.toml:2  kda.d_k"
    assert error.detail is not None
    assert "config.toml:3  kda.d_v" in error.detail
    assert "config.toml:5  api.max_retries" in error.detail
    assert "an integer from 0 to 100" in error.detail


def test_hundreds_of_mistakes_are_counted(refused: Refuser) -> None:
    error = refused("[kda]\nd_k=1\n" + "".join(f"zz{i} = 1\n" for i in range(300)))
    assert error.detail is not None
    assert "and 299 more" in error.detail
    assert len(error.detail.split("\n")) < 60


def test_options_and_variables_are_checked_alike(tmp_path: Path) -> None:
    def refuse(key: str, value: object, origin: str) -> UsageError:
        with pytest.raises(UsageError) as caught:
            load(cwd=tmp_path, env={}, overrides={key: Override(value, origin)})
        return caught.value

    error = refuse("operators.kda_chnk.target", "a:b", "--operator")
    assert (error.code, error.where) == ("K3C-021", "--operator")
    assert error.fix == 'Did you mean "kda_chunk"?'
    error = refuse("operators.kda_chunk.dtype", "bf16", "--dtype")
    assert (error.code, error.where) == ("K3C-026", "--dtype")
    error = refuse("validation.numerical_tolerance", math.nan, "--tolerance")
    assert (error.code, error.where) == ("K3C-024", "--tolerance")
    error = refuse("operators.a.b.c.target", "a:b", "--operator")
    assert error.code == "K3C-021"
    error = refuse("api.base_url", "\ud800", "--base-url")
    assert error.code == "K3C-022"


@pytest.mark.parametrize("key", keys())
def test_every_key_says_what_it_accepts(key: str) -> None:
    assert accepted(key)
    # No key of ours accepts a list of lists, so each can be asked for its error.
    with pytest.raises(UsageError) as caught:
        build({key: Setting([["x"]], "here")})
    assert caught.value.code == "K3C-022"
    assert caught.value.accepted == accepted(key)
