from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from k3check import hints
from k3check.checking.from_config import OpsOptions, noted, remarks, request
from k3check.config.load import load
from k3check.errors import UsageError
from k3check.model import Finding, Outcome
from k3check.nouns.request import OpsRequest
from k3check.operators import OPERATORS, SUITES

if TYPE_CHECKING:
    from pathlib import Path

    from k3check.config.loaded import Loaded

CONFIG = """
[operators.kda_chunk]
target = "kernels/kda.py:chunk_kda"
convention = "fla"
semantics = "k3"
dtype = "bfloat16"
state_dtype = "float32"
device = "cuda"
options = { safe_gate = true }
timeout = 300.0

[operators.attn_res]
target = "pkg.attn:attn_res"

[validation]
numerical_tolerance = 1e-3

[kda]
d_k = 64
"""


@pytest.fixture
def configured(tmp_path: Path) -> Loaded:
    (tmp_path / "k3check.toml").write_text(CONFIG)
    return load(cwd=tmp_path, env={})


@pytest.fixture
def bare(tmp_path: Path) -> Loaded:
    (tmp_path / "empty").mkdir()
    return load(cwd=tmp_path / "empty", env={})


def test_without_anything_every_built_in_is_checked(bare: Loaded) -> None:
    asked = request(bare, OpsOptions())
    assert asked.candidates == {}
    assert not asked.only_configured
    assert asked.tolerance is None
    assert remarks(asked, bare, OpsOptions()) == ()  # the findings say so, see below


def found(operator: str | None, suite: str = "kda") -> Finding:
    return Finding(f"{operator}/x", suite, operator, "x", Outcome.PASS, "t")


def test_findings_without_an_operator_of_the_users_say_so(bare: Loaded, configured: Loaded) -> None:
    built_in, yours = found("kda_step"), found("kda_chunk")
    noted_codes = [
        [n.code for n in f.notes] for f in noted(request(bare, OpsOptions()), [yours] * 2)
    ]
    assert noted_codes == [["K3C-096"], []]
    asked = request(configured, OpsOptions())
    assert noted(asked, [built_in, yours]) == [built_in, yours]
    # one is configured, but what was asked for leaves it out
    assert [n.code for n in noted(asked, [built_in])[0].notes] == ["K3C-096"]
    # a recipe alone is no operator
    only = request(bare, OpsOptions(semantics=("kda_chunk=article",)))
    assert [n.code for n in noted(only, [yours])[0].notes] == ["K3C-096"]
    assert noted(asked, []) == []


def test_an_operator_from_the_file_arrives_as_it_is_described(configured: Loaded) -> None:
    spec = request(configured, OpsOptions()).candidates["kda_chunk"]
    assert (spec.target, spec.convention, spec.semantics) == (
        "kernels/kda.py:chunk_kda",
        "fla",
        "k3",
    )
    assert (spec.dtype, spec.state_dtype, spec.device) == ("bfloat16", "float32", "cuda")
    assert spec.options == {"safe_gate": True}
    assert "k3check.toml" in spec.origin
    assert "operators.kda_chunk" in spec.origin


def test_settings_reach_the_worker_and_everything_survives_the_wire(configured: Loaded) -> None:
    asked = request(configured, OpsOptions(seed=7, profile="quick", suites=("kda",)))
    assert asked.settings["kda"]["d_k"] == 64
    assert OpsRequest.from_json(asked.to_json()) == asked


def test_configured_operators_are_checked_alone_unless_suites_are_named(configured: Loaded) -> None:
    alone = request(configured, OpsOptions())
    assert alone.only_configured
    (note,) = remarks(alone, configured, OpsOptions())
    assert note.code == "K3C-090"
    assert note.values == {"names": "kda_chunk, attn_res", "suites": "flashkda attnres"}
    whole = request(configured, OpsOptions(suites=("kda",)))
    assert not whole.only_configured
    assert remarks(whole, configured, OpsOptions()) == ()


def test_options_override_the_file(configured: Loaded) -> None:
    asked = request(
        configured,
        OpsOptions(
            operators=("kda_chunk=other:f", "kda_step=my=odd.py:g"),
            conventions=("plain", "kda_step=flashkda"),
            semantics=("article", "attn_res=k3"),
            dtype="torch.float32",
            device="cpu",
            tolerance="auto",
            timeout_s=5.0,
        ),
    )
    chunk, step, attn = (asked.candidates[n] for n in ("kda_chunk", "kda_step", "attn_res"))
    assert (chunk.target, chunk.convention, chunk.semantics) == ("other:f", "plain", "article")
    assert (chunk.dtype, chunk.state_dtype, chunk.device) == ("float32", "float32", "cpu")
    assert chunk.options == {"safe_gate": True}
    assert chunk.origin == "--operator kda_chunk=other:f"
    assert (step.target, step.convention) == ("my=odd.py:g", "flashkda")
    assert (attn.target, attn.semantics) == ("pkg.attn:attn_res", "k3")
    assert asked.default.dtype == "float32"
    assert asked.tolerance is None
    assert asked.timeout_s == 5.0


def test_semantics_of_a_built_in_can_be_chosen(bare: Loaded) -> None:
    asked = request(bare, OpsOptions(semantics=("kda_chunk=kimi-linear",)))
    spec = asked.candidates["kda_chunk"]
    assert (spec.target, spec.semantics) == (None, "kimi-linear")
    assert asked.only_configured
    for_all = request(bare, OpsOptions(semantics=("article",)))
    assert for_all.default.semantics == "article"
    assert not for_all.only_configured


@pytest.mark.parametrize(
    ("tolerance", "expected"), [(None, 1e-3), ("auto", None), ("1e-2", 1e-2), ("1", 1.0)]
)
def test_tolerance(tolerance: str | None, expected: float | None, configured: Loaded) -> None:
    assert request(configured, OpsOptions(tolerance=tolerance)).tolerance == expected


@pytest.mark.parametrize(
    ("written", "size"),
    [(None, None), ("2GiB", 2**31), ("512M", 2**29), ("1.5 gb", 3 * 2**29), ("1TiB", 2**40)],
)
def test_a_limit_of_memory(configured: Loaded, written: str | None, size: int | None) -> None:
    assert request(configured, OpsOptions(memory_limit=written)).memory_limit == size


def test_the_longest_configured_timeout_holds_without_an_option(configured: Loaded) -> None:
    assert request(configured, OpsOptions()).timeout_s == 300.0


@pytest.mark.parametrize("suite", SUITES)
def test_every_suite_is_accepted(suite: str, bare: Loaded) -> None:
    assert request(bare, OpsOptions(suites=(suite, suite))).suites == (suite,)


@pytest.mark.parametrize(
    ("options", "code", "fix"),
    [
        ({"suites": ("flash",)}, "K3C-080", "flashkda"),
        ({"suites": ("attn_res",)}, "K3C-080", "attnres"),
        ({"operators": ("kda_steps=a:b",)}, "K3C-081", "kda_step"),
        ({"operators": ("=a:b",)}, "K3C-082", "NAME=VALUE"),
        ({"operators": ("kda_step=",)}, "K3C-082", "NAME=VALUE"),
        ({"operators": ("a:b",)}, "K3C-082", "NAME=VALUE"),
        ({"operators": ("kda_step=a:b", "kda_step=a:b")}, "K3C-082", "once"),
        ({"conventions": ("fla", "plain")}, "K3C-082", "NAME=VALUE"),
        ({"conventions": ("kda_step=",)}, "K3C-082", "NAME=VALUE"),
        ({"conventions": ("kda_step=fla",)}, "K3C-091", "--operator kda_step"),
        ({"semantics": ("kda_step=k3", "kda_step=k3")}, "K3C-082", "once"),
        ({"semantics": ("nope=k3",)}, "K3C-081", "operator names"),
        ({"dtype": "half"}, "K3C-083", "float16"),
        ({"state_dtype": "fp32"}, "K3C-083", "float32"),
        ({"device": "GPU"}, "K3C-083", "cuda"),
        ({"device": "cuda:"}, "K3C-083", "value"),
        ({"tolerance": "inf"}, "K3C-083", "value"),
        ({"tolerance": "small"}, "K3C-083", "value"),
        ({"timeout_s": float("inf")}, "K3C-083", "value"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    options: dict[str, Any], code: str, fix: str, bare: Loaded
) -> None:
    with pytest.raises(UsageError) as caught:
        request(bare, OpsOptions(**options))
    assert caught.value.code == code
    assert fix in str(caught.value.fix)


def test_every_operator_belongs_to_a_suite() -> None:
    assert set(OPERATORS.values()) <= set(SUITES)


def test_only_what_is_taken_is_named_as_a_target() -> None:
    said = hints.get("K3C-082").sections["what"]["en"]
    assert "path/file.py:function" in said
    assert "folder" not in said  # one of tensor files is for k3check vectors
