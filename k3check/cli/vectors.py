"""``k3check vectors``: cases as files for hardware without Python, and what came back from it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from k3check.cli import options as opt
from k3check.cli.app import app

if TYPE_CHECKING:
    from k3check.nouns.request import OpsRequest

vectors_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Test vectors as files: export them, run them elsewhere, check what came back.",
)
app.add_typer(vectors_app, name="vectors")

#: an export is one check to whoever watches the time
_LIMIT_S = 3600.0


@vectors_app.command()
def export(
    suites: Annotated[
        list[str] | None, typer.Argument(metavar="SUITE", help="As of ops; all without any.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="The folder to write.")
    ] = None,
    raw: Annotated[
        bool,
        typer.Option("--raw", help="Also .bin and .npy, for programs without a library."),
    ] = False,
    semantics: opt.SemanticsOption = None,
    dtype: opt.DtypeOption = None,
    state_dtype: opt.StateDtypeOption = None,
    profile: opt.ProfileOption = None,
    seed: opt.SeedOption = None,
    lang: opt.LangOption = opt.Lang.EN,
) -> None:
    """Write inputs, expected outputs and limits of every case, with a manifest."""
    from dataclasses import replace

    from k3check import runners
    from k3check.checking.from_config import OpsOptions, request
    from k3check.cli.links import demo_config
    from k3check.config.problems import problem
    from k3check.report.listener import Silent

    del lang  # errors read it from the context
    if out is None:
        raise problem("K3C-244", where="--out")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise problem("K3C-245", where=f"--out {out}", found="a file" if out.is_file() else "files")
    asked = OpsOptions(
        suites=suites or (),
        semantics=semantics or (),
        dtype=dtype,
        state_dtype=state_dtype,
        seed=seed,
        profile=profile and profile.value,
        directory=str(Path.cwd()),
    )
    place = {"out": str(out.absolute()), "raw": raw}
    wanted = replace(
        request(demo_config(None), asked), settings={"vectors": place}, timeout_s=_LIMIT_S
    )
    out.mkdir(parents=True, exist_ok=True)
    (found,) = runners.check(wanted, Silent(), plan="k3check.checking.export:plan").findings
    size = found.metrics.get("bytes", 0.0) / 2**20
    typer.echo(f"Wrote {found.metrics.get('cases', 0):.0f} cases, {size:.1f} MiB, to {out}.")
    typer.echo(f"Put outputs beside the inputs, then run: k3check vectors check {out}")


@vectors_app.command()
def check(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="As exported, with outputs in it.")],
    suites: Annotated[
        list[str] | None, typer.Argument(metavar="SUITE", help="As of ops; all without any.")
    ] = None,
    tolerance: opt.ToleranceOption = None,
    standard: opt.StandardOption = None,
    timeout: opt.TimeoutOption = None,
    format: opt.FormatOption = opt.Format.TEXT,  # noqa: A002 - the option's name
    output: opt.OutputOption = None,
    lang: opt.LangOption = opt.Lang.EN,
    verbose: opt.VerboseOption = False,
    quiet: opt.QuietOption = False,
) -> None:
    """Compare, diagnose and report what lies in a folder exactly like ``ops``."""
    from k3check import runners
    from k3check.checking.from_config import OpsOptions
    from k3check.cli import work
    from k3check.cli.links import demo_config

    shown = work.Shown(format.value, output, lang.value, verbose, quiet)
    asked = OpsOptions(
        suites=suites or (),
        tolerance=tolerance,
        standard=standard and standard.value,
        timeout_s=timeout,
        directory=str(Path.cwd()),
    )
    result = work.Result(demo_config(None))
    with work.progress(shown) as listener:
        found = runners.check(stored(result.loaded, asked, folder), listener)
    result.findings += found.findings
    result.environment.update(found.environment)
    work.show(result.report(), shown)


def stored(loaded: Any, asked: Any, folder: Path) -> OpsRequest:
    """What a folder's manifest asks to be checked."""
    from dataclasses import replace

    from k3check.checking.from_config import request
    from k3check.nouns.request import CandidateSpec
    from k3check.operators import OPERATORS
    from k3check.runners.manifest import folders, read_manifest

    manifest = read_manifest(folder)
    suites = set(asked.suites)
    candidates = {
        name: CandidateSpec(
            name,
            target=f"dir:{folder.absolute()}",
            convention=cases[0]["convention"],
            semantics=cases[0]["semantics"],
            dtype=cases[0]["recipe"].get("dtype"),
            state_dtype=cases[0]["recipe"].get("state_dtype"),
            accumulate_dtype=cases[0]["recipe"].get("accumulate_dtype"),
            device="cpu",
            origin=f"{folder}/manifest.json",
        )
        for name, cases in folders(folder).items()
        if name in OPERATORS and (not suites or OPERATORS[name] in suites)
    }
    return replace(
        request(loaded, asked),
        candidates=candidates,
        only_configured=True,
        profile=str(manifest.get("profile", "full")),
        seed=int(manifest.get("seed", 0)),
    )
