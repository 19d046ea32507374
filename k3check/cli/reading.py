"""``k3check explain`` and ``k3check report``: reading what another run has said."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations at run time
from typing import Annotated

import typer

from k3check.cli import options as opt
from k3check.cli.app import app


@app.command()
def explain(
    code: Annotated[
        str | None,
        typer.Argument(metavar="CODE", help="A code or slug; every code without one."),
    ] = None,
    format: opt.DataFormatOption = opt.DataFormat.TEXT,  # noqa: A002 - the option's name
    output: opt.OutputOption = None,
    lang: opt.LangOption = opt.Lang.EN,
) -> None:
    """Show the long text of a finding's code."""
    from k3check import hints
    from k3check.cli import work
    from k3check.report import explain as explaining

    shown = work.Shown(output=output, lang=lang.value)
    options = work.rendering(shown)
    entries = (
        [hints.get(code) for code in hints.codes()] if code is None else [explaining.lookup(code)]
    )
    if format is opt.DataFormat.JSON:
        text = explaining.as_json(entries, lang.value, single=code is not None)
    elif code is None:
        text = explaining.as_list(entries, options.lang, options.look)
    else:
        text = explaining.as_text(entries[0], options.lang, options.look)
    work.emit(text, shown)


@app.command()
def report(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A report in JSON; - for standard input.")
    ],
    format: opt.FormatOption = opt.Format.TEXT,  # noqa: A002 - the option's name
    output: opt.OutputOption = None,
    lang: opt.LangOption = opt.Lang.EN,
    verbose: opt.VerboseOption = False,
    quiet: opt.QuietOption = False,
) -> None:
    """Render a saved JSON report in another format; exits with the report's own verdict."""
    from k3check.cli import links, work
    from k3check.report import saved

    shown = work.Shown(format.value, output, lang.value, verbose, quiet)
    found = saved.read(file)
    work.publish(found, shown, links.ticket(found, shown))
    raise typer.Exit(found.exit_code)
