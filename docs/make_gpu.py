"""Write docs/gpu.md: flash-linear-attention's kernels checked on this machine's GPU.

Run it from the repository's root on a machine with a CUDA device, torch, triton and fla-core:
``python docs/make_gpu.py``. Everything runs as a user would run it, from an empty kernel cache and
with autotuning as the library has it. ``--seconds N`` starts no further run after N seconds and
says what was not reached; ``--reports FOLDER`` keeps the JSON reports, or makes the page again from
those that are there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = Path(__file__).with_name("gpu.md")
INSIDE = {
    "use_gate_in_kernel": True,
    "use_qk_l2norm_in_kernel": True,
    "use_beta_sigmoid_in_kernel": True,
}
IMPORTS = "import torch, fla.ops.kda"


@dataclass(frozen=True)
class Run:
    """One command of a user's."""

    name: str
    operator: str
    target: str
    profile: str = "quick"
    gate: str = "activated"
    semantics: str = "k3"
    dtype: str = "bfloat16"
    options: dict[str, Any] = field(default_factory=dict)

    def config(self) -> str:
        """The configuration that it stands in."""
        options = ", ".join(f"{key} = {json.dumps(value)}" for key, value in self.options.items())
        return (
            f"[operators.{self.operator}]\n"
            f'target = "{self.target}"\nconvention = "fla"\nsemantics = "{self.semantics}"\n'
            f'dtype = "{self.dtype}"\ndevice = "cuda"\noptions = {{ {options} }}\n'
        )


CHUNK, RECURRENT = "fla.ops.kda:chunk_kda", "fla.ops.kda:fused_recurrent_kda"
LOWER = {**INSIDE, "safe_gate": True, "lower_bound": -5.0}
#: One after the other: their times are told.
ALONE = (
    Run("chunk-quick-cold", "kda_chunk", CHUNK),
    Run("chunk-quick-again", "kda_chunk", CHUNK),
)
#: The last one, alone again.
LAST = (Run("chunk-full-again", "kda_chunk", CHUNK, "full"),)
#: Side by side: their verdicts are told.
TOGETHER = (
    Run("chunk-full", "kda_chunk", CHUNK, "full"),
    Run("chunk-lower-bound", "kda_chunk", CHUNK, "full", "lower bound -5 in the kernel",
        options=LOWER),
    Run("chunk-softplus", "kda_chunk", CHUNK, "full", "softplus in the kernel", "kimi-linear",
        options=INSIDE),
    Run("recurrent", "kda_recurrent", RECURRENT, "full"),
    Run("recurrent-softplus", "kda_recurrent", RECURRENT, "full", "softplus in the kernel",
        "kimi-linear", options=INSIDE),
    Run("gate", "kda_gate", "fla.ops.kda.gate:fused_kda_gate", "full", "softplus", "kimi-linear"),
    Run("attn-res", "attn_res", "fla.ops.attnres:fused_attnres", "full", ""),
)  # fmt: skip


def execute(run: Run, folder: Path, cache: Path) -> None:
    """Run a command, and keep its report with the time that it took."""
    with tempfile.TemporaryDirectory() as place:
        config = Path(place) / "k3check.toml"
        config.write_text(run.config())
        report = Path(place) / "report.json"
        environment = {
            **os.environ,
            "TRITON_CACHE_DIR": str(cache),
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        }
        command = [
            sys.executable, "-m", "k3check", "ops", "-c", str(config), "--profile", run.profile,
            "--format", "json", "--output", str(report), "-q",
        ]  # fmt: skip
        began = time.perf_counter()
        done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True)
        took = time.perf_counter() - began
        said = json.loads(report.read_text()) if report.exists() else {"error": done.stderr[-2000:]}
    said["wall_s"] = round(took, 1)
    (folder / f"{run.name}.json").write_text(json.dumps(said))
    said_of = said.get("summary", said.get("error"))
    sys.stdout.write(f"{run.name}: {took:.1f} s, {said_of}\n")
    sys.stdout.flush()


def import_seconds() -> float:
    """What importing torch and the target takes, the second time."""
    took = 0.0
    for _ in range(2):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", IMPORTS], check=True, capture_output=True)
        took = time.perf_counter() - began
    return took


def run_all(folder: Path, limit_s: float) -> None:
    """Run everything that there is time for."""
    began = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    facts = {"import_s": round(import_seconds(), 1), **machine()}
    (folder / "machine.json").write_text(json.dumps(facts))
    with tempfile.TemporaryDirectory() as cache:
        for run in ALONE:
            if time.perf_counter() - began < limit_s:
                execute(run, folder, Path(cache))
        if time.perf_counter() - began < limit_s:
            with ThreadPoolExecutor(len(TOGETHER)) as pool:
                list(pool.map(lambda run: execute(run, folder, Path(cache)), TOGETHER))
        for run in LAST:
            if time.perf_counter() - began < limit_s:
                execute(run, folder, Path(cache))


def machine() -> dict[str, str]:
    """The card and the versions."""
    import fla
    import torch
    import triton

    return {
        "card": torch.cuda.get_device_name(),
        "CUDA": str(torch.version.cuda),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "fla-core": fla.__version__,
        "Python": sys.version.split()[0],
        "date": datetime.now(UTC).date().isoformat(),
    }


def page(folder: Path) -> str:
    """The page from the reports of a folder."""
    facts = json.loads((folder / "machine.json").read_text())
    imports = facts.pop("import_s")
    reports = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}
    runs = [run for run in (*ALONE, *TOGETHER, *LAST) if run.name in reports]
    lines = [
        "# Measured on a GPU",
        "",
        "flash-linear-attention's Triton kernels as targets of `k3check ops`, convention `fla`,",
        "bfloat16 in and out with a float32 state, from an empty kernel cache and with autotuning",
        "as the library has it. The kernels are correct, so everything must pass. Made by",
        "`python docs/make_gpu.py`.",
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in facts.items()),
        f"| importing torch and the target | {imports} s |",
        "",
        "Times are those of the whole command. *First calls* are those with a shape that the",
        "kernel had not met in the run: compiling and tuning, or reading the cache. The runs",
        "between the first two and the last were made side by side: they shared the card and the",
        "processor.",
        "",
        "| function | gate | profile | time | first calls | shapes | checks |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [row(run, reports[run.name]) for run in runs]
    missing = [run.name for run in (*ALONE, *TOGETHER, *LAST) if run.name not in reports]
    if missing:
        lines += ["", f"Not reached in the time there was: {', '.join(missing)}."]
    lines += ["", "## What did not pass", ""]
    lines += list(failures(runs, reports)) or ["Nothing."]
    lines += ["", "## Errors and limits", ""]
    lines += [
        "Each error stands before its limit, relative L2 over the whole tensor.",
        "",
        "| function | gate | check | outcome | error of limit |",
        "|---|---|---|---|---|",
    ]
    for run in runs:
        if run.name.endswith("again") or run.name == "chunk-quick-cold":
            continue
        lines += list(errors(run, reports[run.name]))
    return "\n".join(lines) + "\n"


def row(run: Run, report: dict[str, Any]) -> str:
    """A run in the table."""
    name = run.target.split(":")[1] + (", again" if run.name.endswith("again") else "")
    if "checks" not in report:
        return f"| {name} | {run.gate} | {run.profile} | {report['wall_s']} s | | | error |"
    notes = [n for check in report["checks"] for n in check["notes"] if n["code"] == "K3O-830"]
    first = sum(check["metrics"].get("first_call_seconds", 0.0) for check in report["checks"])
    counts = {key: n for key, n in report["summary"].items() if isinstance(n, int) and n}
    told = ", ".join(f"{n} {key}" for key, n in counts.items())
    return (
        f"| {name} | {run.gate} | {run.profile} | {report['wall_s']} s | {first:.1f} s | "
        f"{len(notes)} | {told} |"
    )


def failures(runs: list[Run], reports: dict[str, Any]) -> list[str]:
    """What failed, was only acceptable, or could not run, by run."""
    found = []
    for run in runs:
        if "checks" not in reports[run.name]:
            found.append(f"- {run.name}: {reports[run.name]['error'].strip()[-300:]}")
        for check in reports[run.name].get("checks", ()):
            if check["outcome"] in ("fail", "crashed", "timed_out"):
                hint = check.get("hint") or {}
                found.append(f"- {run.name}, {check['id']}: {check['outcome']}, "
                             f"{hint.get('code')} {hint.get('text', '')[:160]}")  # fmt: skip
    return found


def errors(run: Run, report: dict[str, Any]) -> list[str]:
    """Every check's errors and limits."""
    rows = []
    for check in report.get("checks", ()):
        told = [
            f"{name.split('.')[0]} {value:.1e} of {limit:.1e}"
            for name, value in check["metrics"].items()
            if name.endswith(("relative_l2", "difference"))
            and isinstance(limit := check["limits"].get(name), float)
            and isinstance(value, float)
        ]
        if told:
            rows.append(
                f"| {run.target.split(':')[1]} | {run.gate} | {check['case']} | "
                f"{check['outcome']} | {'; '.join(told)} |"
            )
    return rows


def main() -> None:
    """Run what is asked for and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--reports", type=Path)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--page", type=Path, default=PAGE)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = given.reports or Path(place)
        if not (folder / "machine.json").exists():
            run_all(folder, given.seconds)
        given.page.write_text(page(folder))


if __name__ == "__main__":
    main()
