"""docs/measured.md: its script runs, and the page has a row for everything that it measures."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "measured.md"


@pytest.fixture(scope="module")
def script():
    found = importlib.util.spec_from_file_location("measured", ROOT / "docs" / "make_measured.py")
    module = importlib.util.module_from_spec(found)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "measured", module)  # its dataclasses look themselves up there
        patch.syspath_prepend(str(ROOT))
        found.loader.exec_module(module)
        yield module


def columns(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_subject_gives_the_pages_rows(script, dtype):
    """The numbers depend on the processor; what stands beside them does not."""
    subject = script.Subject("situ_glu", "k3check", "built-in")
    made = [columns(line) for line in script.rows(subject, dtype)]
    assert [row[:5] for row in made] == [["situ_glu", "k3check", "built-in", made[0][3], "output"]]
    written = [columns(line)[:5] for line in PAGE.read_text("utf-8").splitlines()]
    assert made[0][:5] in written
    error, baseline, limit = (float(cell) for cell in made[0][6:])
    assert 0 <= error < limit
    assert baseline < limit


# Importing flash-linear-attention warns of accelerators and of what torch means to drop.
@pytest.mark.filterwarnings("ignore")
def test_every_subject_is_on_the_page(script):
    written = {tuple(columns(line)[:3]) for line in PAGE.read_text("utf-8").splitlines()}
    for subject in script.subjects():
        assert (subject.operator, subject.convention, subject.what) in written
