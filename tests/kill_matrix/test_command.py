"""A sample of wrong candidates through the real command line and its worker process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from k3check.operators import families

ROOT = Path(__file__).parents[2]

#: one mistake of each operator that every profile shows, by slug
SAMPLE = {
    "kda_gate": "gate.sign",
    "kda_step": "delta.missing",
    "kda_recurrent": "decay.after-write",
    "kda_chunk": "chunk.state-reset",
    "attn_res": "attnres.values-are-keys",
    "moe_router": "router.bias-dropped",
    "situ_glu": "situ.silu",
}

FILE = """
import sys

sys.path.insert(0, {root!r})
from tests.kill_matrix.matrix import candidate_with, faults_of, forms, operators


def wrong(name, slug):
    operator = operators()[name]
    form = forms(operator)[0]
    fault = next(f for f in faults_of(operator, form, {dtype!r}) if f.slug == slug)
    return candidate_with(operator, form, {dtype!r}, fault)


def right(name):
    operator = operators()[name]
    return candidate_with(operator, forms(operator)[0], {dtype!r})
"""


def k3check(folder, *arguments):
    """Run it in a process of its own; returns (exit status, JSON report)."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "k3check", "ops", *arguments, "--format", "json"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def sample():
    """The sample, and of an operator that is not in it the first mistake that it lists."""
    from tests.kill_matrix.matrix import faults_of, forms, operators

    found = dict(SAMPLE)
    for family in families():
        for operator in family.operators:
            if operator.name not in found:
                form = forms(operators()[operator.name])[0]
                found[operator.name] = faults_of(operator, form, "float32")[0].slug
    return found


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_wrong_operators_fail_by_name(tmp_path, dtype):
    chosen = sample()
    lines = [FILE.format(root=str(ROOT), dtype=dtype)]
    lines += [f"{name} = wrong({name!r}, {slug!r})" for name, slug in chosen.items()]
    (tmp_path / "wrong.py").write_text("\n".join(lines))
    options = [x for name in chosen for x in ("--operator", f"{name}=wrong.py:{name}")]
    options += [x for name in chosen for x in ("--convention", f"{name}=k3check")]
    status, report = k3check(tmp_path, *options, "--dtype", dtype, "--profile", "quick")
    assert status == 1
    for name, slug in chosen.items():
        failed = [c for c in report["checks"] if c["operator"] == name and c["outcome"] == "fail"]
        assert failed, name
        said = {d["slug"] for c in failed for d in c["diagnoses"] if d["confidence"] != "low"}
        assert slug in said, (name, slug, said)


def test_right_operators_pass(tmp_path):
    names = list(sample())
    lines = [FILE.format(root=str(ROOT), dtype="bfloat16")]
    lines += [f"{name} = right({name!r})" for name in names]
    (tmp_path / "right.py").write_text("\n".join(lines))
    options = [x for name in names for x in ("--operator", f"{name}=right.py:{name}")]
    options += [x for name in names for x in ("--convention", f"{name}=k3check")]
    status, report = k3check(tmp_path, *options, "--dtype", "bfloat16", "--profile", "quick")
    bad = [c for c in report["checks"] if c["outcome"] not in ("pass", "acceptable", "skipped")]
    assert not bad
    assert status == 0
    assert not [c for c in report["checks"] if c["diagnoses"]]
