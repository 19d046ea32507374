from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from k3check.errors import UsageError
from k3check.report import output


def test_a_report_is_written_whole_and_for_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("old")
    path.chmod(0o644)
    output.write(path, "neu ✓\n")
    assert path.read_text("utf-8") == "neu ✓\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["report.json"]


def test_a_symbolic_link_is_followed(tmp_path: Path) -> None:
    real = tmp_path / "real.txt"
    link = tmp_path / "link.txt"
    link.symlink_to(real)
    output.write(link, "x")
    assert link.is_symlink()
    assert real.read_text() == "x"


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.json"
    path.write_text("old")

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError) as caught:
        output.write(path, "new")
    assert caught.value.code == "K3C-088"
    assert caught.value.found == "No space left on device"
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["report.json"]


@pytest.mark.parametrize("name", ["missing/report.json", ".", "file/report.json"])
def test_impossible_places_are_refused_before_the_work(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError) as caught:
        output.check(tmp_path / name)
    assert caught.value.code == "K3C-088"


def test_a_device_is_written_to_as_it_is() -> None:
    output.write(Path(os.devnull), "x")
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize("name", ["a" * 300, "x/" * 3000 + "y", "nul\0"])
def test_a_name_that_no_file_can_have_is_refused_early(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        output.check(tmp_path / name)
    assert caught.value.code == "K3C-088"


def test_the_longest_name_of_any_alphabet_is_written(tmp_path: Path) -> None:
    path = tmp_path / ("失" * 85)  # 255 bytes, as many as file systems take
    output.write(path, "x")
    assert path.read_text() == "x"
