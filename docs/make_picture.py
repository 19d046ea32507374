"""Draw docs/failing-report.svg: a real failing run, as rich shows it in a terminal.

The operator under test is ``docs/broken_kda.py``. Run it from the repository's root after a change
of the report's looks: ``python docs/make_picture.py``. Nothing in the picture is written by hand.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

from k3check.report import saved
from k3check.report.formats import Options
from k3check.report.formats.text import print_report
from k3check.report.terminal import WIDTH, Look

HERE = Path(__file__).parent
ARGUMENTS = [
    "ops",
    "--operator",
    "kda_recurrent=docs/broken_kda.py:recurrent_kda",
    "--convention",
    "fla",
    "--profile",
    "quick",
]


def main() -> None:
    """Run k3check, and export what it would have printed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        command = [sys.executable, "-m", "k3check", *ARGUMENTS, "--format", "json"]
        done = subprocess.run([*command, "--output", str(path), "-q"], cwd=HERE.parent, check=False)
        if done.returncode != 1:
            raise SystemExit(f"the broken operator should fail: exit code {done.returncode}")
        report = saved.read(path)
    console = Console(
        record=True,
        width=WIDTH,
        file=io.StringIO(),
        force_terminal=True,
        color_system="standard",
        markup=False,
        highlight=False,
        emoji=False,
    )
    print_report(console, report, Options(look=Look(colour=True)))
    title = f"k3check {' '.join(ARGUMENTS[:3])} --convention fla"
    svg = console.export_svg(title=title, theme=MONOKAI, unique_id="k3check")
    # the picture must not ask a server for its font
    svg = re.sub(r"\n *@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    (HERE / "failing-report.svg").write_text(svg + "\n", "utf-8")


if __name__ == "__main__":
    main()
