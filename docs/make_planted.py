"""Write docs/planted.md: mistakes planted into flash-linear-attention's Triton source, and found.

Run it from the repository's root on a machine with a CUDA device, torch, triton and fla-core:
``python docs/make_planted.py``. Each mistake is one changed line in a copy of the library; the
kernel is checked in bfloat16 as a user would check it. ``--reports FOLDER`` keeps the JSON reports,
or makes the page again from those that are there; ``--list`` only tries the replacements.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = Path(__file__).with_name("planted.md")


@dataclass(frozen=True)
class Planted:
    """One changed line.

    Attributes:
        name: of the mistake.
        operator, target: what is checked.
        file: in the library.
        old, new: the line's text, and what stands there instead.
        which: which of the places that read so, from 0.
        extra: further lines of the configuration.
        profile: how much is checked; ``chunk_kda`` compiles for a minute a shape.
    """

    name: str
    operator: str
    target: str
    file: str
    old: str
    new: str
    which: int = 0
    extra: str = ""
    profile: str = "full"

    def copy(self, place: Path) -> None:
        """A copy of the library with the mistake in it."""
        found = importlib.util.find_spec("fla")
        assert found is not None
        assert found.origin is not None
        shutil.copytree(Path(found.origin).parent, place / "fla")
        path = place / "fla" / self.file
        before, *rest = path.read_text().split(self.old)
        assert len(rest) > self.which, f"{self.name}: {self.old!r} is not in {self.file}"
        parts = [before, *rest]
        head, tail = self.old.join(parts[: self.which + 1]), self.old.join(parts[self.which + 1 :])
        path.write_text(head + self.new + tail)


RECURRENT = ("kda_recurrent", "fla.ops.kda:fused_recurrent_kda", "ops/kda/fused_recurrent.py")
CHUNK = ("kda_chunk", "fla.ops.kda:chunk_kda")
GATE = ("kda_gate", "fla.ops.kda.gate:fused_kda_gate", "ops/kda/gate.py")
MIX = ("attn_res", "fla.ops.attnres:fused_attnres", "ops/attnres/fused.py")
PLANTED = (
    Planted("prediction by the query", *RECURRENT,
            "b_v -= tl.sum(b_h * b_k[:, None], 0)", "b_v -= tl.sum(b_h * b_q[:, None], 0)"),
    Planted("exp2 for exp", *RECURRENT,
            "b_h *= exp(b_gk[:, None])", "b_h *= tl.exp2(b_gk[:, None])"),
    Planted("query heads tiled", *RECURRENT,
            "i_h = i_hv // (HV // H)", "i_h = i_hv % H"),
    Planted("beta twice", *RECURRENT, "b_v *= b_beta\n", "b_v *= b_beta * b_beta\n"),
    Planted("readout before the write", *RECURRENT,
            "b_o = tl.sum(b_h * b_q[:, None], 0)",
            "b_o = tl.sum((b_h - b_k[:, None] * b_v[None, :]) * b_q[:, None], 0)"),
    Planted("prediction from the state added", *CHUNK, "ops/common/chunk_delta_h.py",
            "other=0.0) - b_v", "other=0.0) + b_v",
            profile="quick"),
    Planted("key of the prediction not decayed", *CHUNK, "ops/kda/wy_fast.py",
            "b_kb *= exp2(b_gk)", "b_kb *= 1.0", profile="quick"),
    Planted("a token does not see itself", *CHUNK, "ops/gla/chunk.py",
            "m_s = tl.arange(0, BT)[:, None] >= tl.arange(0, BT)[None, :]",
            "m_s = tl.arange(0, BT)[:, None] > tl.arange(0, BT)[None, :]", profile="quick"),
    Planted("rate not exponentiated", *GATE,
            "b_yg = -exp(b_A) * softplus(b_g)", "b_yg = -b_A * softplus(b_g)",
            extra='semantics = "kimi-linear"\n'),
    Planted("bias subtracted", *GATE,
            "b_g = b_g + tl.load(dt_bias", "b_g = b_g - tl.load(dt_bias",
            extra='semantics = "kimi-linear"\n'),
    Planted("keys normalised by their length", *MIX,
            "b_rstd = tl.rsqrt(tl.sum(b_v * b_v, axis=1) / D + eps)",
            "b_rstd = tl.rsqrt(tl.sum(b_v * b_v, axis=1) + eps)"),
    Planted("softmax to base 2", *MIX,
            "b_p = exp(b_s - b_m)", "b_p = tl.exp2(b_s - b_m)"),
)  # fmt: skip


def execute(planted: Planted, folder: Path) -> None:
    """Check a kernel with a mistake in it, and keep the report."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        planted.copy(place / "library")
        config = place / "k3check.toml"
        config.write_text(
            f'[operators.{planted.operator}]\ntarget = "{planted.target}"\nconvention = "fla"\n'
            f'dtype = "bfloat16"\ndevice = "cuda"\n{planted.extra}'
        )
        paths = [str(place / "library"), str(ROOT), os.environ.get("PYTHONPATH", "")]
        environment = {
            **os.environ,
            "TRITON_CACHE_DIR": str(place / "cache"),
            "PYTHONPATH": os.pathsep.join(paths),
        }
        report = folder / f"{planted.name.replace(' ', '-')}.json"
        command = [
            sys.executable, "-m", "k3check", "ops", "-c", str(config),
            "--profile", planted.profile, "--format", "json", "--output", str(report), "-q",
        ]  # fmt: skip
        done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True)
        if not report.exists():
            report.write_text(json.dumps({"error": done.stderr[-2000:]}))
        sys.stdout.write(f"{planted.name}: {told(json.loads(report.read_text()))}\n")
        sys.stdout.flush()


def diagnoses(report: dict[str, Any]) -> list[tuple[str, str, str]]:
    """(confidence, slug, title) of everything that was named, once each, the surest first."""
    order = {"high": 0, "medium": 1, "low": 2}
    found = {
        (d["confidence"], d["slug"] or "", d["title"])
        for check in report.get("checks", ())
        for d in check["diagnoses"]
    }
    return sorted(found, key=lambda d: (order[d[0]], d[1]))


def told(report: dict[str, Any]) -> str:
    """A row of the page, without its name."""
    if "checks" not in report:
        return f"error: {report['error'][-200:]}"
    failed = [c["id"].split("/")[1] for c in report["checks"] if c["outcome"] == "fail"]
    named = "; ".join(f"{c}: {title}" for c, _, title in diagnoses(report)[:4])
    return f"{len(failed)} of {len(report['checks'])} checks fail | {named or 'unknown'}"


def page(folder: Path) -> str:
    """The page from the reports of a folder."""
    lines = [
        "# Mistakes planted into a library's kernels",
        "",
        "One line changed in a copy of flash-linear-attention's Triton source, checked on a GPU in",
        "bfloat16 as a user would check it. Made by `python docs/make_planted.py`.",
        "",
        card(folder),
        "",
        "| kernel | mistake | found | named |",
        "|---|---|---|---|",
    ]
    for planted in PLANTED:
        path = folder / f"{planted.name.replace(' ', '-')}.json"
        said = told(json.loads(path.read_text())) if path.exists() else "not reached | "
        lines.append(f"| {planted.target.split(':')[1]} | {planted.name} | {said} |")
    return "\n".join(lines) + "\n"


def card(folder: Path) -> str:
    """Where and with what it ran, and when."""
    for path in sorted(folder.glob("*.json")):
        report = json.loads(path.read_text())
        if "checks" in report:
            where = report["environment"]
            packages = (f"{name} {version}" for name, version in where["packages"].items())
            told = (*where["devices"], f"torch {where['torch']}", *packages)
            return f"{', '.join(told)}, {report['started_at'][:10]}."
    return "Nothing ran."


def main() -> None:
    """Run what is asked for and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--reports", type=Path)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        if given.list:
            for n, planted in enumerate(PLANTED):
                planted.copy(Path(place) / str(n))
            return
        folder = given.reports or Path(place)
        folder.mkdir(parents=True, exist_ok=True)
        if not list(folder.glob("*.json")):
            with ThreadPoolExecutor(6) as pool:
                list(pool.map(lambda planted: execute(planted, folder), PLANTED))
        given.page.write_text(page(folder))


if __name__ == "__main__":
    main()
