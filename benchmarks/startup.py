"""How long k3check takes to start, beside what it cannot avoid importing.

Prints two comparisons, each measured side by side (one run of each in turn, several times):

* ``k3check --help`` against importing typer, rich, httpx and pydantic: a ratio, at most 1.3;
* ``k3check ops --demo`` against importing torch: a difference, at most 4 seconds.

Run it on an idle machine: ``python benchmarks/startup.py [ROUNDS]``.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time

HELP_RATIO = 1.3
DEMO_EXTRA_S = 4.0


def seconds(command: list[str], cwd: str) -> float:
    """Wall time of one run.

    Raises:
        SystemExit: the command failed, so that its time means nothing.
    """
    began = time.perf_counter()
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    took = time.perf_counter() - began
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} exited with {done.returncode}\n{done.stderr}")
    return took


def side_by_side(ours: list[str], theirs: list[str], rounds: int) -> tuple[float, float]:
    """Median wall times of two commands, run in turn so that both see the same machine."""
    with tempfile.TemporaryDirectory() as empty:
        for command in (ours, theirs):  # the first run fills the file cache
            seconds(command, empty)
        times = [(seconds(ours, empty), seconds(theirs, empty)) for _ in range(rounds)]
    return statistics.median(a for a, _ in times), statistics.median(b for _, b in times)


def main() -> None:
    """Measure and print."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    python = [sys.executable]
    ours, theirs = side_by_side(
        [*python, "-m", "k3check", "--help"],
        [*python, "-c", "import typer, rich, httpx, pydantic"],
        rounds * 2,
    )
    print(f"k3check --help        {ours:.3f} s, imports alone {theirs:.3f} s")
    print(f"                      ratio {ours / theirs:.2f}, at most {HELP_RATIO}")
    ours, theirs = side_by_side(
        [*python, "-m", "k3check", "ops", "--demo"], [*python, "-c", "import torch"], rounds
    )
    print(f"k3check ops --demo    {ours:.2f} s, import torch {theirs:.2f} s")
    print(f"                      ratio {ours / theirs:.2f}, extra {ours - theirs:.2f} s,", end="")
    print(f" at most {DEMO_EXTRA_S} s")


if __name__ == "__main__":
    main()
