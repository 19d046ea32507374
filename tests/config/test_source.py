"""Bytes: every way in which a file cannot be read has a code of its own."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from k3check.config import source
from k3check.config.load import load
from k3check.errors import UsageError

if TYPE_CHECKING:
    from tests.config.support import Loader, Refuser

GOOD = '[api]\nbase_url = "https://example.org"\n'


def refuse(path: Path) -> UsageError:
    with pytest.raises(UsageError) as caught:
        load(path, cwd=path.parent, env={})
    return caught.value


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"", "K3C-007"),
        (b" \n\t\r\n", "K3C-007"),
        (b"\xef\xbb\xbf", "K3C-007"),
        (b"# only a comment\n", "K3C-007"),
        (GOOD.encode("utf-16"), "K3C-008"),
        (GOOD.encode("utf-16-le"), "K3C-008"),
        (GOOD.encode("utf-16-be"), "K3C-008"),
        (GOOD.encode("utf-32"), "K3C-008"),
        ("# 配置\n".encode("gbk"), "K3C-009"),
        (b'[api]\nbase_url = "x\0"\n', "K3C-010"),
        (b"#" * (source.MAX_BYTES + 1), "K3C-006"),
    ],
)
def test_bytes_that_are_no_configuration(raw: bytes, code: str, refused: Refuser) -> None:
    error = refused(raw)
    assert error.code == code
    assert error.where is not None
    assert error.where.startswith("config.toml")


def test_the_largest_file_is_read(loaded: Loader) -> None:
    text = GOOD + "#" * (source.MAX_BYTES - len(GOOD))
    assert loaded(text).config.api.base_url == "https://example.org"


def test_bad_utf8_names_the_line(refused: Refuser) -> None:
    error = refused(b"[api]\n# \xff\n")
    assert error.where == "config.toml:2"
    assert error.found == "byte 0xff"


def test_bom_is_read_with_a_note(loaded: Loader) -> None:
    result = loaded(b"\xef\xbb\xbf" + GOOD.encode())
    assert result.config.api.base_url == "https://example.org"
    assert [note.code for note in result.notes] == ["K3C-030"]
    assert result.origins["api.base_url"].line == 2


def test_windows_line_ends(loaded: Loader) -> None:
    result = loaded(GOOD.replace("\n", "\r\n"))
    assert result.origins["api.base_url"].line == 2


def test_missing_explicit_file(tmp_path: Path) -> None:
    error = refuse(tmp_path / "nowhere.toml")
    assert error.code == "K3C-001"
    assert refuse(tmp_path / "a\0b").code == "K3C-001"
    (tmp_path / "file").write_text("x")
    assert refuse(tmp_path / "file" / "below.toml").code == "K3C-001"


def test_a_folder(tmp_path: Path) -> None:
    assert refuse(tmp_path).code == "K3C-002"


def test_a_name_too_long_and_a_circle_of_links(tmp_path: Path) -> None:
    assert refuse(tmp_path / ("x" * 4000)).code == "K3C-005"
    loop = tmp_path / "loop.toml"
    loop.symlink_to(loop)
    assert refuse(loop).code == "K3C-005"


def test_a_pipe_and_a_socket_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert refuse(tmp_path / "pipe").code == "K3C-004"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        assert refuse(tmp_path / "s").code == "K3C-004"


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config.toml"
    path.write_text(GOOD)
    path.chmod(0)
    if os.access(path, os.R_OK):
        # Permissions do not bind the superuser: let the operating system's refusal be played.
        def refuse_open(self: Path, *args: object, **kwargs: object) -> object:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "open", refuse_open)
    assert stat.S_IMODE(path.stat().st_mode) == 0
    assert refuse(path).code == "K3C-003"


def test_a_strange_name_can_be_shown(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"new\nline\x1b[31m\xff.toml")
    path.write_text("[api]\nbase_url = 3\n")
    where = refuse(path).where
    assert where is not None
    assert where.isprintable()
    where.encode("utf-8")
