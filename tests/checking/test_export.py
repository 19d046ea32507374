"""Cases as files and back: what was exported checks itself, and a wrong program is named."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import safetensors.torch
import torch

from k3check.checking.export import export
from k3check.checking.planning import make_plan
from k3check.errors import UsageError
from k3check.model import Confidence, Outcome
from k3check.nouns.request import CandidateSpec, OpsRequest
from k3check.operators import OPERATORS, families
from k3check.runners.manifest import folders

C = Path(__file__).parents[2] / "examples" / "c" / "kda_recurrent.c"
#: slug -> (a line of the C program, the same line with one mistake in it)
TWINS = {
    "heads.tiled": ("long hk = h / (HV / H);", "long hk = h % H;"),
    "beta.no-sigmoid": (
        "double bt = sigmoid(beta->f[(b * T + t) * HV + h]);",
        "double bt = beta->f[(b * T + t) * HV + h];",
    ),
    "scale.missing": ("(float)(factor * read)", "(float)(0 * factor + read)"),
    "delta.sign": ("(vt[j] - predicted)", "(vt[j] + predicted)"),
    "state.ignored": ("initial != NULL ? initial->f[", "0 ? initial->f["),
}


def asked(operator: str, **more) -> OpsRequest:
    return OpsRequest(
        candidates={operator: CandidateSpec(operator, origin="test")}, only_configured=True, **more
    )


def checked(folder: Path, operator: str) -> dict[str, object]:
    """case -> finding, the diagnosis included."""
    spec = CandidateSpec(operator, target=f"dir:{folder}", origin="test")
    request = OpsRequest(candidates={operator: spec}, only_configured=True, profile="quick")
    found = {}
    for check in make_plan(request, lambda *_: pytest.fail("a folder loads nothing")):
        found[check.id] = check.run()
        if check.amend is not None:
            found |= {finding.id: finding for finding in check.amend()}
    return {f.case: f for f in found.values() if f.operator == operator}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("vectors")
    export(asked("kda_recurrent", profile="quick"), root, raw=True)
    return root


@pytest.fixture
def folder(exported: Path, tmp_path: Path) -> Path:
    return shutil.copytree(exported, tmp_path / "vectors")


def run_c(folder: Path, tmp_path: Path, change: tuple[str, str] | None = None) -> None:
    source = C.read_text("utf-8")
    if change is not None:
        assert source.count(change[0]) == 1, change[0]
        source = source.replace(*change)
    (tmp_path / "kda.c").write_text(source, "utf-8")
    program = tmp_path / "kda"
    build = ["cc", "-std=c99", "-O2", "-Wall", "-Werror", "-o", program, tmp_path / "kda.c", "-lm"]
    subprocess.run(build, check=True)
    for case in (folder / "kda_recurrent").iterdir():
        (case / "outputs").mkdir()
        subprocess.run([program, case / "inputs", case / "outputs"], check=True)


def with_expected(folder: Path) -> None:
    """Outputs that are right: the reference's, in the recipe's dtype."""
    for cases in folders(folder).values():
        for case in cases:
            place = folder / case["folder"]
            exact = safetensors.torch.load_file(place / "expected.safetensors")
            own = {
                n: exact[n].to(getattr(torch, told["dtype"])) for n, told in case["outputs"].items()
            }
            safetensors.torch.save_file(own, place / "outputs.safetensors")


needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


@needs_cc
def test_the_c_program_passes(folder: Path, tmp_path: Path) -> None:
    run_c(folder, tmp_path)
    found = checked(folder, "kda_recurrent")
    assert {f.outcome for f in found.values()} == {Outcome.PASS, Outcome.SKIPPED}
    assert sum(f.outcome is Outcome.PASS for f in found.values()) >= 5


@needs_cc
@pytest.mark.parametrize("slug", TWINS)
def test_a_c_program_with_one_broken_line_is_named(slug: str, folder: Path, tmp_path: Path) -> None:
    from k3check import hints

    run_c(folder, tmp_path, TWINS[slug])
    failed = [f for f in checked(folder, "kda_recurrent").values() if f.outcome is Outcome.FAIL]
    assert failed
    best = [f.diagnoses[0] for f in failed if f.diagnoses]
    assert {hints.get(d.code).slug for d in best} == {slug}
    assert {d.confidence for d in best} <= {Confidence.HIGH, Confidence.MEDIUM}


def test_the_same_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    trees = []
    for name in ("one", "two"):
        export(asked("situ_glu", profile="quick"), tmp_path / name, raw=True)
        files = sorted(p for p in (tmp_path / name).rglob("*") if p.is_file())
        trees.append({str(p.relative_to(tmp_path / name)): p.read_bytes() for p in files})
    assert trees[0] == trees[1]
    export(asked("situ_glu", profile="quick", seed=1), tmp_path / "three", raw=True)
    assert (tmp_path / "three" / "manifest.json").read_bytes() != trees[0]["manifest.json"]


@pytest.mark.parametrize("operator", OPERATORS)
def test_expected_outputs_pass_for_every_operator(operator: str, tmp_path: Path) -> None:
    export(asked(operator, profile="quick"), tmp_path)
    with_expected(tmp_path)
    found = checked(tmp_path, operator)
    assert {f.outcome for f in found.values()} <= {Outcome.PASS, Outcome.SKIPPED}
    names = {c.name for f in families() for o in f.operators if o.name == operator for c in o.cases}
    assert any(f.outcome is Outcome.PASS for case, f in found.items() if case in names)


def code_of(folder: Path, case: str) -> str:
    finding = checked(folder, "kda_recurrent")[case]
    assert finding.outcome is Outcome.FAIL
    assert finding.hint is not None
    return finding.hint.code


@pytest.fixture
def full(folder: Path) -> Path:
    with_expected(folder)
    return folder


CASE = "slow-correlated"


def test_missing_outputs_are_a_finding(full: Path) -> None:
    (full / "kda_recurrent" / CASE / "outputs.safetensors").unlink()
    assert code_of(full, CASE) == "K3O-750"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 40,
        # a header that claims 2^40 elements
        (lambda h: len(h).to_bytes(8, "little") + h)(
            b'{"output":{"dtype":"F32","shape":[1099511627776],"data_offsets":[0,4398046511104]}}'
        ),
        # two tensors in the same bytes
        (lambda h: len(h).to_bytes(8, "little") + h + b"\0" * 8)(
            b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},'
            b'"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
        ),
    ],
)
def test_a_damaged_file_is_a_finding(full: Path, content: bytes) -> None:
    (full / "kda_recurrent" / CASE / "outputs.safetensors").write_bytes(content)
    assert code_of(full, CASE) == "K3O-751"


def test_a_file_that_is_cut_short_is_a_finding(full: Path) -> None:
    path = full / "kda_recurrent" / CASE / "outputs.safetensors"
    path.write_bytes(path.read_bytes()[:-4])
    assert code_of(full, CASE) == "K3O-751"


def test_a_plain_file_of_another_size_is_a_finding(full: Path) -> None:
    place = full / "kda_recurrent" / CASE
    (place / "outputs.safetensors").unlink()
    (place / "outputs").mkdir()
    (place / "outputs" / "output.bin").write_bytes(b"\0" * 12)
    assert code_of(full, CASE) == "K3O-751"


def test_a_link_out_of_the_folder_is_not_followed(full: Path, tmp_path: Path) -> None:
    place = full / "kda_recurrent" / CASE / "outputs.safetensors"
    elsewhere = tmp_path / "elsewhere.safetensors"
    place.rename(elsewhere)
    place.symlink_to(elsewhere)
    assert code_of(full, CASE) == "K3O-752"


def test_an_output_that_nobody_knows_is_a_finding(full: Path) -> None:
    place = full / "kda_recurrent" / CASE / "outputs.safetensors"
    tensors = safetensors.torch.load_file(place)
    safetensors.torch.save_file({**tensors, "debug": torch.zeros(2)}, place)
    assert code_of(full, CASE) == "K3O-753"


def test_another_dtype_is_a_finding(full: Path) -> None:
    place = full / "kda_recurrent" / CASE / "outputs.safetensors"
    tensors = safetensors.torch.load_file(place)
    safetensors.torch.save_file({n: x.double() for n, x in tensors.items()}, place)
    assert code_of(full, CASE) == "K3O-003"


def test_nan_is_a_finding(full: Path) -> None:
    place = full / "kda_recurrent" / CASE / "outputs.safetensors"
    tensors = safetensors.torch.load_file(place)
    tensors["output"].view(-1)[-3:] = float("nan")
    safetensors.torch.save_file(tensors, place)
    assert code_of(full, CASE) == "K3O-004"


def test_another_cases_outputs_are_named(tmp_path: Path) -> None:
    export(asked("gated_rms_norm", profile="quick"), tmp_path)
    with_expected(tmp_path)
    one, other, *_ = sorted((tmp_path / "gated_rms_norm").iterdir())
    shutil.copy(other / "outputs.safetensors", one / "outputs.safetensors")
    finding = checked(tmp_path, "gated_rms_norm")[one.name]
    assert finding.hint is not None
    assert finding.hint.code == "K3O-758"
    assert finding.hint.values["case"] == other.name


def test_other_inputs_than_the_exported_ones_are_a_finding(full: Path) -> None:
    place = full / "kda_recurrent" / CASE / "inputs.safetensors"
    tensors = safetensors.torch.load_file(place)
    safetensors.torch.save_file({**tensors, "v": -tensors["v"]}, place)
    assert code_of(full, CASE) == "K3O-757"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda m: {**m, "schema_version": 9}, "K3C-241"),
        (lambda m: {**m, "cases": "none"}, "K3C-240"),
        (lambda m: {**m, "cases": [{"operator": "kda_recurrent"}]}, "K3C-242"),
        (lambda m: {**m, "cases": [5]}, "K3C-242"),
        (lambda m: {**m, "cases": []}, "K3C-243"),
        (lambda _: [], "K3C-240"),
    ],
)
def test_a_manifest_that_cannot_be_used_is_refused(full: Path, change, code: str) -> None:
    path = full / "manifest.json"
    path.write_text(json.dumps(change(json.loads(path.read_text("utf-8")))), "utf-8")
    with pytest.raises(UsageError) as refused:
        checked(full, "kda_recurrent")
    assert refused.value.code == code
