"""Write docs/limits.md: how near correct operators come to their limits, in any order of summation.

    python docs/make_limits.py [--seeds N] [--operator NAME ...] [--seconds S]

Every operator's built-in goes through its cases in every precision, with one seed after the other,
its sums in torch's own order and in four others, under every environment that changes the order of
torch's sums. The exit status is 1 if one of them fails. ``--seconds`` ends a row's seeds early, and
the page says how many there were.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from itertools import product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

PAGE = ROOT / "docs" / "limits.md"
DTYPES = ("float64", "float32", "bfloat16", "float16")
OWN = "torch's own"
#: what changes the order of torch's sums on a CPU
ENVIRONMENTS = tuple(
    {"ATEN_CPU_CAPABILITY": capability, "MKL_CBWR": branch, "OMP_NUM_THREADS": threads}
    for capability, branch, threads in product(("", "avx2"), ("", "COMPATIBLE"), ("1", "2"))
)
INTRODUCTION = """\
# How near correct operators come to their limits

A limit must hold for every legal order of summation: of threads, vector widths, libraries and
accelerators. It is `2 x baseline + floor`; where a result lies just beyond that, the baseline's
error in any order is derived from the length of the sums and the size of their terms
(`k3check/compare/orders.py` has the derivation) and takes its place.

Built-in operators, their cases of the full profile, with torch's own order of summation and four
others ({orders}), each seed under one of {environments} environments (`ATEN_CPU_CAPABILITY` unset
and avx2, `MKL_CBWR` unset and COMPATIBLE, one and two threads). *Nearest* is the largest distance
in units of its limit, in torch's own order and in any other; above 1 it would be a false alarm.

torch {torch}. *This page is written by `docs/make_limits.py`.*

| operator | precision | seeds | comparisons | nearest, own order | nearest, other orders | false alarms |
|---|---|---|---|---|---|---|
"""  # noqa: E501 - a table's head is one line


def run(names: list[str], seeds: list[int], seconds: float) -> None:
    """Run some seeds in this process's environment; one line of JSON for each operator and dtype.

    The other orders take turns: a seed is run in torch's own and in one of them.
    """
    from tests.limits.summing import ORDERS, summed
    from tests.operators.harness import findings_for, operator_of

    for name, dtype in product(names, DTYPES):
        operator = operator_of(name)
        cases = {case.name for case in operator.cases if case.profile != "stress"}
        row: dict[str, Any] = {"operator": name, "dtype": dtype, "seeds": 0, "comparisons": 0}
        row |= {"own": 0.0, "other": 0.0, "alarms": []}
        began = time.perf_counter()
        for seed in seeds:
            if time.perf_counter() - began > seconds:
                break
            other = list(ORDERS)[seed // len(ENVIRONMENTS) % len(ORDERS)]
            for order in (None, other):
                target = None if order is None else summed(operator.builtin({}), order)
                found = findings_for(name, target, dtype=dtype, seed=seed, only=cases)
                for case, one in found.items():
                    if str(one.outcome) == "skipped":
                        continue
                    row["comparisons"] += 1
                    if str(one.outcome) != "pass":
                        row["alarms"].append([case, seed, order or OWN])
                    shares = [one.metrics[k] / limit for k, limit in one.limits.items() if limit]
                    key = "own" if order is None else "other"
                    row[key] = max([row[key], *shares])
            row["seeds"] += 1
        sys.stdout.write(json.dumps(row) + "\n")
        sys.stdout.flush()


def rows(names: list[str], seeds: int, seconds: float) -> list[dict[str, Any]]:
    """The rows of all environments, added up."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for number, environment in enumerate(ENVIRONMENTS):
        mine = [str(seed) for seed in range(seeds) if seed % len(ENVIRONMENTS) == number]
        settings = {name: value for name, value in environment.items() if value}
        command = [sys.executable, __file__, "--run", *mine, "--operator", *names]
        command += ["--seconds", str(seconds / len(ENVIRONMENTS))]
        kept = {k: v for k, v in os.environ.items() if k not in environment}
        done = subprocess.run(
            command, env=kept | settings, stdout=subprocess.PIPE, text=True, check=True
        )
        for line in done.stdout.splitlines():
            row = json.loads(line)
            total = found.setdefault((row["operator"], row["dtype"]), defaultdict(int, alarms=[]))
            for key in ("seeds", "comparisons"):
                total[key] += row[key]
            for key in ("own", "other"):
                total[key] = max(total[key], row[key])
            total["alarms"] += row["alarms"]
    return [{"operator": o, "dtype": d, **row} for (o, d), row in sorted(found.items())]


def page(found: list[dict[str, Any]]) -> str:
    """The page."""
    import torch

    from tests.limits.summing import ORDERS

    version = torch.__version__.partition("+")[0]
    head = INTRODUCTION.format(
        orders=", ".join(ORDERS), environments=len(ENVIRONMENTS), torch=version
    )
    lines = [
        f"| {row['operator']} | {row['dtype']} | {row['seeds']} | {row['comparisons']} "
        f"| {row['own']:.2f} | {row['other']:.2f} | {len(row['alarms'])} |"
        for row in found
    ]
    return head + "\n".join(lines) + "\n"


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=56)
    parser.add_argument("--operator", nargs="*", default=[])
    parser.add_argument("--seconds", type=float, default=600.0, help="for a row, at most")
    parser.add_argument("--run", nargs="*", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run is not None:
        run(given.operator, given.run, given.seconds)
        return
    from k3check.operators import families

    names = given.operator or [op.name for family in families() for op in family.operators]
    found = rows(names, given.seeds, given.seconds)
    PAGE.write_text(page(found), encoding="utf-8")
    alarms = [(row["operator"], row["dtype"], *one) for row in found for one in row["alarms"]]
    for alarm in alarms:
        sys.stdout.write(f"false alarm: {alarm}\n")
    sys.exit(bool(alarms))


if __name__ == "__main__":
    main()
