"""How long it takes to check a user's operator, and to name the mistake in a wrong one.

Prints, each beside what it is measured against (one run of each in turn, several times):

* ``k3check ops --operator ...`` with the quick and the full profile, against importing torch and
  the target: at most 3 and 60 seconds more;
* the same for an operator with one mistake: what the diagnosis adds in the quick profile, at most
  5 seconds.

Run it from the repository's root on an idle machine: ``python benchmarks/ops.py [ROUNDS]``.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
RIGHT = "examples/operators/my_kda.py:kda_chunk"
WRONG = "docs/broken_kda.py:recurrent_kda"
QUICK_S, FULL_S, DIAGNOSIS_S = 3.0, 60.0, 5.0


def seconds(arguments: list[str], expected: int) -> float:
    """Wall time of one Python process.

    Raises:
        SystemExit: it ended otherwise than expected, so that its time means nothing.
    """
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    took = time.perf_counter() - began
    if done.returncode != expected:
        raise SystemExit(f"{' '.join(arguments)} exited with {done.returncode}\n{done.stderr}")
    return took


def ops(target: str, profile: str, operator: str, *more: str) -> list[str]:
    """The command that checks one operator."""
    checked = f"{operator}={target}"
    return ["-m", "k3check", "ops", "--operator", checked, "--profile", profile, "-q", *more]


def importing(target: str) -> list[str]:
    """Importing torch and the target alone."""
    path = target.split(":")[0]
    return ["-c", f"import torch, runpy; runpy.run_path({path!r})"]


def main() -> None:
    """Measure and print."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    rows = (
        ("quick, right operator", ops(RIGHT, "quick", "kda_chunk"), 0, QUICK_S),
        ("full, right operator", ops(RIGHT, "full", "kda_chunk"), 0, FULL_S),
        ("quick, wrong operator named",
         ops(WRONG, "quick", "kda_recurrent", "--convention", "fla"), 1, QUICK_S + DIAGNOSIS_S),
    )  # fmt: skip
    for title, command, expected, limit in rows:
        target = RIGHT if RIGHT in " ".join(command) else WRONG
        seconds(command, expected)  # the first run fills the file cache
        pairs = [(seconds(command, expected), seconds(importing(target), 0)) for _ in range(rounds)]
        ours = statistics.median(a for a, _ in pairs)
        alone = statistics.median(b for _, b in pairs)
        more = ours - alone
        print(f"{title:<28} {ours:6.2f} s, imports alone {alone:5.2f} s", end="")
        print(f": {more:5.2f} s more, at most {limit:g}")


if __name__ == "__main__":
    main()
