"""``k3check bench``: how fast prefill is."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from k3check.cli import options as opt
from k3check.cli.app import app
from k3check.errors import ExitCode


@app.command()
def bench(
    config: opt.ConfigOption = None,
    operator: opt.OperatorOption = None,
    convention: opt.ConventionOption = None,
    semantics: opt.SemanticsOption = None,
    dtype: opt.DtypeOption = None,
    state_dtype: opt.StateDtypeOption = None,
    device: opt.DeviceOption = None,
    tokens: Annotated[
        int | None, typer.Option("--tokens", metavar="N", min=1, help="T, tokens of the prefill.")
    ] = None,
    heads: opt.HeadsOption = None,
    key_dim: opt.KeyDimOption = None,
    value_dim: opt.ValueDimOption = None,
    seed: opt.SeedOption = None,
    format: Annotated[  # noqa: A002 - the option's name
        opt.BenchFormat, typer.Option("--format", help="How the result is written.")
    ] = opt.BenchFormat.TEXT,
    output: opt.OutputOption = None,
    lang: opt.LangOption = opt.Lang.EN,
) -> None:
    """Compare speeds: the built-in by its toggles, your KDA, installed libraries."""
    from k3check.checking import from_config
    from k3check.cli import work
    from k3check.report import bench as report
    from k3check.report.terminal import look, to_ascii, write

    shown = work.Shown(format.value, output, lang.value)
    asked = from_config.OpsOptions(
        operators=operator or (),
        conventions=convention or (),
        semantics=semantics or (),
        dtype=dtype,
        state_dtype=state_dtype,
        device=device,
        seed=seed,
        directory=str(Path.cwd()),
    )
    request = from_config.request(work.load(config), asked)
    from k3check.checking.bench.run import compare

    drawn = look(sys.stderr, os.environ, lang=lang.value)
    live = sys.stderr.isatty()
    found = compare(
        request,
        (tokens, heads, key_dim, value_dim),
        lambda name: write(sys.stderr, f"\r\033[K{name[: drawn.width - 1]}") if live else None,
    )
    if live:
        write(sys.stderr, "\r\033[K")
    said = look(sys.stdout, os.environ, lang=lang.value)
    if format is opt.BenchFormat.JSON:
        text = report.to_json(found)
    else:
        text = report.to_text(found, lang.value if said.chinese or output else "en")
        text = to_ascii(text) if said.ascii and not output else text
    work.emit(text, shown)
    raise typer.Exit(ExitCode.FINDINGS if found.failed else ExitCode.OK)
