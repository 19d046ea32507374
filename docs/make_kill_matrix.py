"""Run the kill matrix and write docs/kill-matrix.md.

    python docs/make_kill_matrix.py [--jobs N] [--operator NAME ...] [--fast] [--keep FOLDER]

Every known mistake of every operator becomes a wrong candidate that goes through the ordinary
checks; correct candidates of every legal kind go through them too. The exit status is 1 if a
number is below what it must be. It takes about half an hour with two jobs; with ``--keep`` each
job's trials are kept in a folder, and a run that was stopped goes on from there.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import pickle
import sys
import time
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
# One thread each: the tensors are small, and the jobs share the cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from tests.kill_matrix import matrix, right, summary  # noqa: E402 - the path comes first

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PAGE = ROOT / "docs" / "kill-matrix.md"
DTYPES = ("float32", "bfloat16")


INTRODUCTION = """\
Written by `python docs/make_kill_matrix.py`. Every mistake that k3check knows becomes a wrong
candidate: its formula in the arithmetic of the recipe. The candidate goes through the checks as a
user's operator would, and must fail (*by quick*, *by full*); then the diagnosis must say which
mistake it is (*named*): as the only one (*alone*), or in the group of mistakes that give the same
results on all inputs. Correct candidates must pass without a diagnosis."""


def wrong_jobs(names: Sequence[str]) -> list[tuple[Any, ...]]:
    """(form, dtype, profiles, one chunk size only) of everything to try, the longest first."""
    found = []
    for name in names:
        for form in matrix.forms(matrix.operators()[name]):
            if form.direct:
                found.append((form, DTYPES[0], ("full",), True))
            else:
                found += [(form, dtype, ("quick", "full"), False) for dtype in DTYPES]
    return sorted(found, key=lambda job: (job[3], not job[0].operator.startswith("kda_c")))


def run_wrong(job: tuple[Any, ...], keep: Path | None = None) -> list[matrix.Trial]:
    """The trials of one job, from the folder if they are there."""
    form, dtype, profiles, once = job
    kept = None if keep is None else keep / f"{form.label.replace(' · ', '-')}-{dtype}.pickle"
    if kept is not None and kept.exists():
        found: list[matrix.Trial] = pickle.loads(kept.read_bytes())  # noqa: S301 - our own
        return found
    chosen = (
        matrix.one_size(matrix.faults_of(matrix.operators()[form.operator], form, dtype))
        if once
        else lambda _fault: True
    )
    trials = matrix.everything(form, dtype, profiles, chosen)
    if kept is not None:
        kept.write_bytes(pickle.dumps(trials))
    return trials


def run_right(name: str) -> tuple[int, int, list[str]]:
    """(candidates, comparisons, what went wrong) of an operator's correct candidates."""
    count, comparisons, bad = 0, 0, []
    for variant in right.variants(matrix.operators()[name]):
        findings = variant.findings("full")
        count += 1
        comparisons += matrix.compared(findings)
        if wrong := matrix.failures(findings):
            bad.append(f"{variant.where}: {wrong}")
    return count, comparisons, bad


def percent(part: int, whole: int) -> str:
    """``183 of 184``, with a percentage unless it is all."""
    if part == whole:
        return f"{whole} (100 %)"
    return f"{part} of {whole} ({100 * part / whole:.1f} %)"


def table(trials: Iterable[matrix.Trial]) -> list[str]:
    """One row a form and dtype."""
    rows: dict[tuple[str, str, str, str], dict[str, list[matrix.Trial]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for t in trials:
        rows[t.form.operator, t.form.semantics, t.form.convention, t.dtype][t.profile].append(t)
    lines = [
        "| operator | semantics | form | dtype | tried | by quick | by full | named | alone |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for key, by in sorted(rows.items()):
        full = summary.Count.of(by["full"])
        quick = summary.Count.of(by["quick"]) if by["quick"] else None
        found = percent(quick.detected, quick.trials) if quick else ""
        lines.append(
            f"| {' | '.join(key)} | {full.trials} | {found} "
            f"| {percent(full.detected, full.trials)} | {percent(full.named, full.detected)} "
            f"| {full.alone} |"
        )
    return lines


def totals(trials: Sequence[matrix.Trial]) -> list[str]:
    """The numbers over everything, per dtype and profile."""
    lines = [
        "| dtype | profile | wrong candidates | found | named, alone or in its group | alone |",
        "|---|---|---|---|---|---|",
    ]
    for dtype in DTYPES:
        for profile in ("quick", "full"):
            some = [t for t in trials if (t.dtype, t.profile) == (dtype, profile)]
            if not some:
                continue
            count = summary.Count.of(some)
            lines.append(
                f"| {dtype} | {profile} | {count.trials} | "
                f"{percent(count.detected, count.trials)} | "
                f"{percent(count.named, count.detected)} | "
                f"{percent(count.alone, count.detected)} |"
            )
    return lines


def listed(title: str, items: Sequence[str]) -> list[str]:
    """A headed list; what is empty says so."""
    return ["", f"## {title}", "", *([f"- {item}" for item in items] or ["None."])]


def page(trials: Sequence[matrix.Trial], correct: dict[str, tuple[int, int, list[str]]]) -> str:
    """The whole page."""
    main = [t for t in trials if not t.form.direct]
    others = [t for t in trials if t.form.direct]
    count = sum(n for n, _, _ in correct.values())
    comparisons = sum(n for _, n, _ in correct.values())
    full = [t for t in trials if t.profile == "full"]
    slugs = Counter(t.slug for t in full)
    return "\n".join(
        [
            "# Kill matrix",
            "",
            INTRODUCTION,
            "",
            f"{len(slugs)} mistakes, {len(full)} wrong candidates: a mistake counts once for each",
            "operator, semantics, convention, dtype and chunk size in which it can be made.",
            "",
            *totals(main),
            "",
            f"Correct candidates: {count}, {comparisons} comparisons; every semantics, float64 to",
            "float16, seeds 0 to 4, chunks of 16 to 128, the built-in, the plainest code, strided",
            f"outputs. Failures or diagnoses: {sum(len(bad) for _, _, bad in correct.values())}.",
            "",
            "## By operator",
            "",
            *table(main),
            "",
            "## Other conventions",
            "",
            "The same for every other interface: what a callable is given (an activated gate, say)",
            "decides which mistakes it can make. Full profile; mistakes of chunks in one size.",
            "",
            *table(others),
            *listed("Not found by full", summary.undetected(full)),
            *listed("Not found by quick", summary.undetected(t for t in main if t not in full)),
            *listed("Found, but not named", summary.unnamed(trials)),
            *listed(
                "Correct candidates refused", [b for _, _, bad in correct.values() for b in bad]
            ),
            "",
        ]
    )


def main() -> int:
    """Run, write, and say what is below its number."""
    parser = argparse.ArgumentParser(description="Run the kill matrix; write docs/kill-matrix.md")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--operator", nargs="*", default=list(matrix.operators()))
    parser.add_argument("--output", type=Path, default=PAGE)
    parser.add_argument("--keep", type=Path, help="folder for the trials of finished jobs")
    parser.add_argument("--fast", action="store_true", help="own conventions only")
    given = parser.parse_args()
    if given.keep is not None:
        given.keep.mkdir(parents=True, exist_ok=True)
    jobs = [j for j in wrong_jobs(given.operator) if not (given.fast and j[0].direct)]
    trials: list[matrix.Trial] = []
    started = time.monotonic()
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(given.jobs, mp_context=spawn, max_tasks_per_child=1) as pool:
        rights = {name: pool.submit(run_right, name) for name in given.operator}
        wrongs = {pool.submit(run_wrong, job, given.keep): job for job in jobs}
        for done in as_completed(wrongs):
            form, dtype, *_ = wrongs[done]
            trials += done.result()
            minutes = (time.monotonic() - started) / 60
            sys.stderr.write(f"{minutes:5.1f} min  {form.label} · {dtype}\n")
        correct = {name: future.result() for name, future in rights.items()}
    trials.sort(key=lambda t: (t.form.label, t.dtype, t.profile))
    given.output.write_text(page(trials, correct), "utf-8")
    problems = summary.shortfalls([t for t in trials if not t.form.direct])
    problems += summary.undetected(t for t in trials if t.form.direct)
    problems += [b for _, _, bad in correct.values() for b in bad]
    sys.stdout.write("\n".join([*totals(trials), *problems, ""]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
