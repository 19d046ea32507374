"""The renderers' golden files: which there are, and how to write them again.

After an intended change: ``python tests/report/golden.py``, then read the difference.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from k3check import __version__, hints
from k3check.report.explain import as_text
from k3check.report.formats import Options, Verbosity, render
from k3check.report.terminal import Look

FOLDER = Path(__file__).with_name("golden")

GOLDENS: dict[str, tuple[str, Options]] = {
    "text.txt": ("text", Options()),
    "text-verbose.txt": ("text", Options(verbosity=Verbosity.VERBOSE)),
    "text-quiet.txt": ("text", Options(verbosity=Verbosity.QUIET)),
    "text-ascii.txt": ("text", Options(look=Look(ascii=True))),
    "text-colour.txt": ("text", Options(look=Look(colour=True))),
    "text-zh.txt": ("text", Options(lang="zh")),
    "report.json": ("json", Options()),
    "junit.xml": ("junit", Options()),
    "github.txt": ("github", Options()),
    "markdown.md": ("markdown", Options()),
    "page.html": ("html", Options()),
}


def stable(text: str) -> str:
    """Text without what changes with every release."""
    return text.replace(__version__, "0.0.0")


def main() -> None:
    """Write every golden file."""
    spec = importlib.util.spec_from_file_location(
        "conftest", Path(__file__).with_name("conftest.py")
    )
    assert spec is not None
    assert spec.loader is not None
    fixture = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fixture)
    hints._entries = lambda: fixture.ENTRIES
    hints._one = fixture.ENTRIES.get
    for file, (name, options) in GOLDENS.items():
        (FOLDER / file).write_text(stable(render(name, fixture.REPORT, options)), "utf-8")
    explained = as_text(hints.get("K3O-901"), "en", Look())
    (FOLDER / "explain.txt").write_text(stable(explained), "utf-8")


if __name__ == "__main__":
    main()
