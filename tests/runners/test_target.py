"""Targets are loaded, and whatever is wrong with one is said."""

from __future__ import annotations

import sys

import pytest

from k3check.errors import UsageError
from k3check.nouns.request import CandidateSpec
from k3check.runners import importing
from k3check.runners.target import load_target


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory; modules and the path are put back afterwards."""
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.setattr(importing, "_loaded_files", {})
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def load(folder, target):
    spec = CandidateSpec("kda_chunk", target=target, origin="--operator")
    return load_target(spec, str(folder))


def failure(folder, target):
    with pytest.raises(UsageError) as caught:
        load(folder, target)
    error = caught.value
    assert error.where.startswith("--operator")
    assert error.fix.endswith(".") or error.fix.endswith('":`.')
    assert "<" not in error.what, "a placeholder without a value"
    return error


def write(folder, path, text):
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


KERNEL = (
    "def chunk_kda():\n    return 'chunk'\n\n\nclass Box:\n    def f(self):\n        return 'box'\n"
)


def test_a_file_next_to_its_helper(folder):
    write(folder, "kernels_a/helper_a.py", "VALUE = 41\n")
    write(
        folder, "kernels_a/kda_a.py", "import helper_a\n\n\ndef f():\n    return helper_a.VALUE\n"
    )
    assert load(folder, "kernels_a/kda_a.py:f")() == 41
    assert load(folder, str(folder / "kernels_a/kda_a.py") + ":f")() == 41


def test_a_module_of_the_working_directory(folder):
    write(folder, "pkg_b/ops.py", KERNEL)
    assert load(folder, "pkg_b.ops:chunk_kda")() == "chunk"


def test_nested_attributes(folder):
    write(folder, "mod_c.py", KERNEL + "\nbox = Box()\n")
    assert load(folder, "mod_c:box.f")() == "box"
    assert load(folder, "mod_c.py:box.f")() == "box"


def test_relative_imports_in_a_package(folder):
    write(folder, "pkg_d/__init__.py", "")
    write(folder, "pkg_d/sub/__init__.py", "")
    write(folder, "pkg_d/util.py", "VALUE = 2\n")
    write(folder, "pkg_d/sub/k.py", "from ..util import VALUE\n\n\ndef f():\n    return VALUE\n")
    assert load(folder, "pkg_d/sub/k.py:f")() == 2


def test_relative_imports_without_init(folder):
    write(folder, "pkg_e/util_e.py", "VALUE = 3\n")
    write(folder, "pkg_e/k.py", "from .util_e import VALUE\n\n\ndef f():\n    return VALUE\n")
    assert load(folder, "pkg_e/k.py:f")() == 3


def test_a_file_is_loaded_once(folder):
    write(folder, "mod_f.py", "def f(): ...\ndef g(): ...\n")
    first = load(folder, "mod_f.py:f")
    second = load(folder, "./mod_f.py:g")
    third = load(folder, "mod_f:f")
    assert first.__globals__ is second.__globals__ is third.__globals__


def test_files_of_one_name_in_two_folders(folder):
    write(folder, "x/twin_g.py", "def f():\n    return 'x'\n")
    write(folder, "y/twin_g.py", "def f():\n    return 'y'\n")
    assert load(folder, "x/twin_g.py:f")() == "x"
    assert load(folder, "y/twin_g.py:f")() == "y"
    assert load(folder, "x/twin_g.py:f")() == "x"


def test_a_file_named_like_an_imported_module(folder):
    write(folder, "json.py", "def f():\n    return 'mine'\n")
    target = load(folder, "json.py:f")
    assert target() == "mine"
    assert sys.modules["json"].__name__ == "json"
    assert sys.modules[target.__module__].f is target


@pytest.mark.parametrize(
    "target",
    [
        "",
        ":",
        "f",
        "a.b",
        ":f",
        "mod:",
        "mod:1x",
        "mod:a..b",
        "mod.py:a b",
        "a b:f",
        "..:f",
        "\0:f",
    ],
)
def test_what_is_no_target(folder, target):
    assert failure(folder, target).code in ("K3C-060", "K3C-061", "K3C-066")


def test_a_missing_function_name_lists_the_files_functions(folder):
    write(folder, "k.py", KERNEL)
    error = failure(folder, "k.py")
    assert error.code == "K3C-060"
    assert error.accepted == "k.py:chunk_kda"


def test_a_folder(folder):
    write(folder, "vectors/q.safetensors", "")
    for target in ("vectors", "vectors/", "./vectors:f", "."):
        error = failure(folder, target)
        assert error.code == "K3C-066"
        assert "path/file.py:function" in error.accepted


def test_a_missing_file_suggests_its_neighbour(folder):
    write(folder, "kernels/kda_chunk.py", KERNEL)
    error = failure(folder, "kernels/kda_chnk.py:chunk_kda")
    assert error.code == "K3C-061"
    assert error.fix == "Write kernels/kda_chunk.py:chunk_kda."
    error = failure(folder, "kernels/kda_chunk:chunk_kda")
    assert error.fix == "Write kernels/kda_chunk.py:chunk_kda."
    assert "does not exist" in failure(folder, "nowhere/k.py:f").found
    assert failure(folder, "x" * 300 + ".py:f").code == "K3C-061"


def test_another_kind_of_file(folder):
    write(folder, "k/kda.cu", "")
    assert failure(folder, "k/kda.cu:f").code == "K3C-067"


def test_a_missing_module_suggests_its_neighbour(folder):
    write(folder, "kernels_h/kda.py", KERNEL)
    error = failure(folder, "kernels_h.kdaa:chunk_kda")
    assert (error.code, error.fix) == ("K3C-062", "Write kernels_h.kda:chunk_kda.")
    assert failure(folder, "kernel_h.kda:f").fix == "Write kernels_h.kda:f."
    assert failure(folder, "json.nothing_like_it:f").code == "K3C-062"


def test_a_missing_dependency_is_the_imports_failure(folder):
    write(folder, "mod_i.py", "import no_such_triton\n")
    for target in ("mod_i.py:f", "mod_i:f"):
        error = failure(folder, target)
        assert error.code == "K3C-063"
        assert error.found == "ModuleNotFoundError: No module named 'no_such_triton'"
        assert 'mod_i.py", line 1, in <module>\n    import no_such_triton' in error.detail
        assert "k3check/run" not in error.detail
        assert "importlib" not in error.detail


def test_a_syntax_error_shows_its_line(folder):
    write(folder, "mod_j.py", "def f(:\n")
    error = failure(folder, "mod_j.py:f")
    assert error.code == "K3C-063"
    assert "def f(:" in error.detail
    assert not error.detail.startswith("Traceback")


def test_an_import_that_failed_fails_again(folder):
    write(folder, "mod_k.py", "raise RuntimeError('no GPU')\n")
    for _ in range(2):
        assert failure(folder, "mod_k.py:f").found == "RuntimeError: no GPU"


def test_sys_exit_in_an_import(folder):
    write(folder, "mod_l.py", "import sys\n\nsys.exit(4)\n")
    error = failure(folder, "mod_l.py:f")
    assert (error.code, error.found) == ("K3C-068", "SystemExit: 4")
    assert "sys.exit(4)" in error.detail


def test_a_missing_attribute(folder):
    write(folder, "mod_m.py", KERNEL)
    error = failure(folder, "mod_m.py:chunk_kdaa")
    assert (error.code, error.fix) == ("K3C-064", "Write mod_m.py:chunk_kda.")
    error = failure(folder, "mod_m:zzz")
    assert error.accepted == "chunk_kda or Box"
    assert failure(folder, "mod_m:Box.ff").fix == "Write mod_m:Box.f."


def test_a_modules_getattr_that_raises(folder):
    write(folder, "mod_n.py", "def __getattr__(name):\n    raise RuntimeError(name)\n")
    assert failure(folder, "mod_n.py:f").found == "RuntimeError: f"


def test_what_cannot_be_called(folder):
    write(folder, "mod_o.py", KERNEL + "\nTABLE = [1]\n")
    error = failure(folder, "mod_o.py:TABLE")
    assert (error.code, error.found) == ("K3C-065", "TABLE is a list")
    assert "chunk_kda" in error.accepted
