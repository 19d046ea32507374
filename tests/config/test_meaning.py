"""Every key of a configuration is obeyed, compared with the released model, or told."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from k3check.checking import from_config
from k3check.config import facts, meaning
from k3check.config.describe import keys
from k3check.config.load import load
from k3check.errors import UsageError
from k3check.operators import SUITES

if TYPE_CHECKING:
    from collections.abc import Callable

    from k3check.config.loaded import Loaded


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], Loaded]:
    """Load a config.toml of this text."""

    def make(text: str) -> Loaded:
        (tmp_path / "config.toml").write_text(text)
        return load(Path("config.toml"), cwd=tmp_path, env={})

    return make


def test_every_key_has_one_use() -> None:
    uses = {key: meaning.use_of(key) for key in keys()}
    counted = Counter("read" if "." in use else use for use in uses.values())
    assert (counted["compared"], counted["told"]) == (43, 16), counted
    assert counted["read"] == len(uses) - 43 - 16
    read = [key for listed in meaning.READ.values() for key in listed]
    assert len(read) == len(set(read))
    assert not set(read) & set(meaning.UNREAD)
    assert not set(meaning.UNREAD) & facts.COMPARED
    assert {*read, *meaning.UNREAD, *facts.COMPARED} == set(keys())


@pytest.mark.parametrize("module", meaning.READ)
def test_what_is_said_to_read_a_key_names_it(module: str) -> None:
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).read_text("utf-8")
    for key in meaning.READ[module]:
        name = key.rpartition(".")[2]
        assert f".{name}" in source or f'"{name}"' in source or f"{name}:" in source, key


VALUES = {
    "api.provider": '"x"', "model.path": '"/w"', "kda.beta_init": "0.5",
    "flashkda.prefill_parallel": "true", "logging.level": '"DEBUG"', "logging.log_dir": '"d"',
    "serving.host": '"h"', "serving.port": "1", "attention.type": '"t"', "cache.strategy": '"s"',
    "cache.checkpoint_interval": "64", "cache.affinity_scheduling": "true",
    "client.stream": "true",
    "client.background_model": '"m"', "client.agent": "{ a = 1 }", "client.permissions": "{}",
}  # fmt: skip


@pytest.mark.parametrize("key", meaning.UNREAD)
def test_what_nobody_reads_is_told_to_who_sets_it(
    key: str, written: Callable[[str], Loaded]
) -> None:
    section, _, name = key.partition(".")
    loaded = written(f"[{section}]\n{name} = {VALUES[key]}\n")
    (note,) = [note for note in loaded.notes if note.code == "K3C-193"]
    assert note.values["keys"] == key
    assert not [n for n in written("[link]\nauth = 'bearer'\n").notes if n.code == "K3C-193"]


def test_a_comparison_is_not_switched_off_in_silence(written: Callable[[str], Loaded]) -> None:
    text = "[validation]\ncompare_with_reference = {}\n"
    assert [n.code for n in written(text.format("false")).notes] == ["K3C-194"]
    assert not written(text.format("true")).notes


@pytest.mark.parametrize(("key", "suite"), meaning.SWITCHES.items())
def test_a_suite_that_is_switched_off_is_not_run_and_told(
    key: str, suite: str, written: Callable[[str], Loaded]
) -> None:
    section, _, name = key.partition(".")
    loaded = written(f"[{section}]\n{name} = false\n")
    plain = from_config.OpsOptions()
    asked = from_config.request(loaded, plain)
    assert set(asked.suites) == {*SUITES} - {suite}
    (note,) = from_config.remarks(asked, loaded, plain)
    assert (note.code, note.values["suite"], note.values["key"]) == ("K3C-192", suite, key)
    assert "config.toml:2" in note.values["where"]
    by_name = from_config.OpsOptions(suites=[suite])
    asked = from_config.request(loaded, by_name)
    assert asked.suites == (suite,)
    assert from_config.remarks(asked, loaded, by_name) == ()


def test_an_operator_of_a_suite_that_is_off_is_not_run(written: Callable[[str], Loaded]) -> None:
    off = "[validation]\nenable_flashkda = false\n"
    loaded = written(f"{off}[operators.kda_chunk]\ntarget = 'a:b'\n")
    asked = from_config.request(loaded, from_config.OpsOptions())
    assert asked.only_configured
    assert not asked.candidates
    named = from_config.OpsOptions(operators=["kda_chunk=c:d"])
    assert from_config.request(loaded, named).candidates["kda_chunk"].target == "c:d"


def test_a_table_without_a_target_is_refused(written: Callable[[str], Loaded]) -> None:
    loaded = written("[operators.kda_chunk]\n[operators.kda_step]\ndtype = 'float32'\n")
    with pytest.raises(UsageError) as caught:
        from_config.request(loaded, from_config.OpsOptions())
    assert caught.value.code == "K3C-191"
    assert "kda_step" in str(caught.value.detail)
    with pytest.raises(UsageError) as caught:
        from_config.request(loaded, from_config.OpsOptions(operators=["kda_chunk=a:b"]))
    assert "kda_step" in str(caught.value)


@pytest.mark.parametrize(
    ("line", "code", "meant"),
    [
        ("convention = 'flaa'", "K3C-101", '"fla"'),
        ("convention = 'Flash-KDA'", "K3C-101", '"flash_kda"'),
        ("semantics = 'kimi_linear'", "K3C-100", '"kimi-linear"'),
        ("semantics = 'zzz'", "K3C-100", "Choose one of the accepted semantics."),
    ],
)
def test_an_unknown_name_is_refused_when_the_file_is_read(
    line: str, code: str, meant: str, written: Callable[[str], Loaded]
) -> None:
    with pytest.raises(UsageError) as caught:
        written(f"[operators.kda_chunk]\ntarget = 'a:b'\n{line}\n")
    assert caught.value.code == code
    assert caught.value.where == f"config.toml:3  operators.kda_chunk.{line.partition(' ')[0]}"
    assert meant in str(caught.value.fix)
