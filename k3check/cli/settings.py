"""``k3check init`` and ``k3check config``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from k3check.cli import options as opt
from k3check.cli.app import app

config_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Show, convert and describe configurations.",
)
app.add_typer(config_app, name="config")

STARTER = Path("k3check.toml")


@app.command()
def init(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")] = STARTER,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write a commented starter configuration."""
    from k3check.config.init import write_starter
    from k3check.config.source import display

    write_starter(path, force=force)
    typer.echo(f"Wrote {display(path)}. Set K3CHECK_API_KEY, then run: k3check all")


@config_app.command()
def show(
    config: opt.ConfigOption = None,
    base_url: opt.BaseUrlOption = None,
    model: opt.ModelOption = None,
    api_key_env: opt.ApiKeyEnvOption = None,
    protocol: opt.ProtocolOption = None,
    header: opt.HeaderOption = None,
    proxy: opt.ProxyOption = None,
    cacert: opt.CacertOption = None,
    format: opt.DataFormatOption = opt.DataFormat.TEXT,  # noqa: A002 - the option's name
    output: opt.OutputOption = None,
    lang: opt.LangOption = opt.Lang.EN,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="What nothing sets, too.")
    ] = False,
) -> None:
    """Show what is set, where it came from, and what it shadows."""
    from k3check.cli import work
    from k3check.cli.links import LinkOptions
    from k3check.cli.settings_shown import as_text
    from k3check.config import show as showing
    from k3check.config.operator_tables import check_targets
    from k3check.link.request import url_of

    shown = work.Shown(output=output, lang=lang.value)
    asked = LinkOptions(
        base_url=base_url,
        model=model,
        api_key_env=api_key_env,
        protocol=protocol and protocol.value,
        headers=tuple(header or ()),
        proxy=proxy,
        cacert=cacert,
    )
    loaded = work.load(config, asked.overrides())
    check_targets(loaded)
    if format is opt.DataFormat.JSON:
        text = json.dumps(showing.to_json(loaded), indent=2) + "\n"
    else:
        text = as_text(
            loaded,
            work.path_of(loaded),
            work.rendering(shown),
            defaults=verbose,
            url=url_of(loaded),
        )
    work.emit(text, shown)


@config_app.command()
def convert(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="The same as --config FILE.")
    ] = None,
    config: opt.ConfigOption = None,
    output: opt.OutputOption = None,
) -> None:
    """Write any known configuration as our own config.toml; the key is left out."""
    from k3check.cli import work
    from k3check.config.convert import convert as converting
    from k3check.config.problems import problem

    if file is not None and config is not None:
        raise work.conflict("FILE", "--config")
    shown = work.Shown(output=output)
    loaded = work.load(file or config)
    if loaded.path is None:
        raise problem("K3C-093", where=str(Path.cwd()))
    work.emit(converting(loaded), shown)


@config_app.command()
def schema(output: opt.OutputOption = None) -> None:
    """Print the JSON Schema of our own configuration."""
    from k3check.cli import work
    from k3check.config.schema import schema as describing

    work.emit(json.dumps(describing(), indent=2) + "\n", work.Shown(output=output))
