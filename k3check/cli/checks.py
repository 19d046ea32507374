"""``k3check ops``, ``link`` and ``all``."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from k3check.cli import options as opt
from k3check.cli.app import app

if TYPE_CHECKING:
    from k3check.cli.work import Result
    from k3check.config.load import Loaded
    from k3check.report.listener import Listener
    from k3check.run.from_config import OpsOptions


@dataclass(frozen=True)
class LinkOptions:
    """The options of ``k3check link``, as typed."""

    probes: tuple[str, ...] = ()
    base_url: str | None = None
    model: str | None = None
    api_key_env: str | None = None
    protocol: str | None = None
    offline: bool = False
    profile: str | None = None


@app.command()
def ops(
    suites: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SUITE",
            help="kda flashkda attnres moe mla mxfp4 cache dist; all without any.",
        ),
    ] = None,
    config: opt.ConfigOption = None,
    operator: opt.OperatorOption = None,
    convention: opt.ConventionOption = None,
    semantics: opt.SemanticsOption = None,
    dtype: opt.DtypeOption = None,
    state_dtype: opt.StateDtypeOption = None,
    device: opt.DeviceOption = None,
    tolerance: opt.ToleranceOption = None,
    standard: opt.StandardOption = None,
    timeout: opt.TimeoutOption = None,
    profile: opt.ProfileOption = None,
    seed: opt.SeedOption = None,
    demo: opt.DemoOption = False,
    format: opt.FormatOption = opt.Format.TEXT,  # noqa: A002 - the option's name
    output: opt.OutputOption = None,
    lang: opt.LangOption = opt.Lang.EN,
    verbose: opt.VerboseOption = False,
    quiet: opt.QuietOption = False,
) -> None:
    """Check operators: yours where configured, else the built-in ones."""
    from k3check.cli import work
    from k3check.run.from_config import OpsOptions

    shown = work.Shown(format.value, output, lang.value, verbose, quiet)
    asked = OpsOptions(
        suites=suites or (),
        operators=operator or (),
        conventions=convention or (),
        semantics=semantics or (),
        dtype=dtype,
        state_dtype=state_dtype,
        device=device,
        tolerance=tolerance,
        standard=standard and standard.value,
        timeout_s=timeout,
        seed=seed,
        profile=profile and profile.value,
        directory=str(Path.cwd()),
    )
    result = work.Result(_loaded(config, demo=demo, ops=asked))
    with work.progress(shown) as listener:
        _ops(result, asked, listener)
    work.show(result.report(), shown)


@app.command()
def link(
    probes: Annotated[
        list[str] | None,
        typer.Argument(metavar="PROBE", help="Probes to run; the default ones without any."),
    ] = None,
    config: opt.ConfigOption = None,
    base_url: opt.BaseUrlOption = None,
    model: opt.ModelOption = None,
    api_key_env: opt.ApiKeyEnvOption = None,
    protocol: opt.ProtocolOption = None,
    offline: opt.OfflineOption = False,
    profile: opt.ProfileOption = None,
    demo: opt.DemoOption = False,
    format: opt.FormatOption = opt.Format.TEXT,  # noqa: A002 - the option's name
    output: opt.OutputOption = None,
    lang: opt.LangOption = opt.Lang.EN,
    verbose: opt.VerboseOption = False,
    quiet: opt.QuietOption = False,
) -> None:
    """Check the endpoint: what is configured, then at most three chargeable requests."""
    from k3check.cli import work

    shown = work.Shown(format.value, output, lang.value, verbose, quiet)
    asked = LinkOptions(
        probes=tuple(probes or ()),
        base_url=base_url,
        model=model,
        api_key_env=api_key_env,
        protocol=protocol and protocol.value,
        offline=offline,
        profile=profile and profile.value,
    )
    result = work.Result(_loaded(config, demo=demo, link=asked))
    with work.progress(shown) as listener:
        _link(result, asked, listener, demo=demo)
    work.show(result.report(), shown)


@app.command(name="all")
def all_(
    config: opt.ConfigOption = None,
    operator: opt.OperatorOption = None,
    convention: opt.ConventionOption = None,
    semantics: opt.SemanticsOption = None,
    dtype: opt.DtypeOption = None,
    state_dtype: opt.StateDtypeOption = None,
    device: opt.DeviceOption = None,
    tolerance: opt.ToleranceOption = None,
    standard: opt.StandardOption = None,
    timeout: opt.TimeoutOption = None,
    base_url: opt.BaseUrlOption = None,
    model: opt.ModelOption = None,
    api_key_env: opt.ApiKeyEnvOption = None,
    protocol: opt.ProtocolOption = None,
    offline: opt.OfflineOption = False,
    profile: opt.ProfileOption = None,
    seed: opt.SeedOption = None,
    demo: opt.DemoOption = False,
    format: opt.FormatOption = opt.Format.TEXT,  # noqa: A002 - the option's name
    output: opt.OutputOption = None,
    lang: opt.LangOption = opt.Lang.EN,
    verbose: opt.VerboseOption = False,
    quiet: opt.QuietOption = False,
) -> None:
    """Check operators and the endpoint."""
    from k3check.cli import work
    from k3check.run.from_config import OpsOptions

    shown = work.Shown(format.value, output, lang.value, verbose, quiet)
    ops_asked = OpsOptions(
        operators=operator or (),
        conventions=convention or (),
        semantics=semantics or (),
        dtype=dtype,
        state_dtype=state_dtype,
        device=device,
        tolerance=tolerance,
        standard=standard and standard.value,
        timeout_s=timeout,
        seed=seed,
        profile=profile and profile.value,
        directory=str(Path.cwd()),
    )
    link_asked = LinkOptions(
        base_url=base_url,
        model=model,
        api_key_env=api_key_env,
        protocol=protocol and protocol.value,
        offline=offline,
        profile=profile and profile.value,
    )
    result = work.Result(_loaded(config, demo=demo, ops=ops_asked, link=link_asked))
    with work.progress(shown) as listener:
        _ops(result, ops_asked, listener)
        _link(result, link_asked, listener, demo=demo)
    work.show(result.report(), shown)


def _loaded(
    config: Path | None,
    *,
    demo: bool,
    ops: OpsOptions | None = None,
    link: LinkOptions | None = None,
) -> Loaded:
    """The configuration; a demo has none, and takes no option that names something to check."""
    from k3check.cli import work

    if not demo:
        if link is None:
            return work.load(config)
        return work.load(
            config,
            base_url=link.base_url,
            model=link.model,
            api_key_env=link.api_key_env,
            protocol=link.protocol,
        )
    named = {
        "--config": config,
        "--operator": ops and ops.operators,
        "--convention": ops and ops.conventions,
        "--base-url": link and link.base_url,
        "--model": link and link.model,
        "--api-key-env": link and link.api_key_env,
        "--protocol": link and link.protocol,
        "--offline": link and link.offline,
    }
    for option, value in named.items():
        if value:
            raise work.conflict("--demo", option)
    from k3check.config.load import Loaded
    from k3check.config.models import Config

    return Loaded(Config())


def _ops(result: Result, asked: OpsOptions, listener: Listener) -> None:
    from k3check import run
    from k3check.run import from_config

    request = from_config.request(result.loaded, asked)
    found = run.check(request, listener)
    result.findings += found.findings
    result.environment.update(found.environment)
    result.remarks += from_config.remarks(request)


def _link(result: Result, asked: LinkOptions, listener: Listener, *, demo: bool) -> None:
    from k3check import link as linking
    from k3check.link.request import request_from

    if demo:
        from k3check.link.demo import DemoServer

        with DemoServer() as server:
            request = request_from(
                result.loaded,
                asked,
                env={},
                base_url=server.base_url,
                api_key=server.api_key,
                model=server.model,
            )
            result.findings += linking.check(request, listener)
        return
    request = request_from(result.loaded, asked, env=os.environ)
    result.findings += linking.check(request, listener)
