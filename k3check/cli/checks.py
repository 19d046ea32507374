"""``k3check ops``, ``link`` and ``all``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from k3check.cli import options as opt
from k3check.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.checking.from_config import OpsOptions
    from k3check.cli.links import LinkOptions
    from k3check.cli.work import Result
    from k3check.config.loaded import Loaded
    from k3check.nouns.request import OpsRequest
    from k3check.report.listener import Listener


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
    operator_command: opt.OperatorCommandOption = None,
    convention: opt.ConventionOption = None,
    semantics: opt.SemanticsOption = None,
    dtype: opt.DtypeOption = None,
    state_dtype: opt.StateDtypeOption = None,
    device: opt.DeviceOption = None,
    heads: opt.HeadsOption = None,
    key_dim: opt.KeyDimOption = None,
    value_dim: opt.ValueDimOption = None,
    tolerance: opt.ToleranceOption = None,
    standard: opt.StandardOption = None,
    timeout: opt.TimeoutOption = None,
    memory_limit: opt.MemoryLimitOption = None,
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
    from k3check.checking.from_config import OpsOptions
    from k3check.cli import work

    shown = work.Shown(format.value, output, lang.value, verbose, quiet)
    asked = OpsOptions(
        suites=suites or (),
        operators=operator or (),
        commands=operator_command or (),
        conventions=convention or (),
        semantics=semantics or (),
        dtype=dtype,
        state_dtype=state_dtype,
        device=device,
        heads=heads,
        key_dim=key_dim,
        value_dim=value_dim,
        tolerance=tolerance,
        standard=standard and standard.value,
        timeout_s=timeout,
        memory_limit=memory_limit,
        seed=seed,
        profile=profile and profile.value,
        directory=str(Path.cwd()),
    )
    result = work.Result(_loaded(config, demo=demo, ops=asked))
    with work.progress(shown) as listener:
        _ops(result, asked, listener, demo=demo)
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
    header: opt.HeaderOption = None,
    proxy: opt.ProxyOption = None,
    cacert: opt.CacertOption = None,
    turns: opt.TurnsOption = None,
    needle_tokens: opt.NeedleTokensOption = None,
    offline: opt.OfflineOption = False,
    fix: opt.FixOption = False,
    discover: opt.DiscoverOption = False,
    profile: opt.ProfileOption = None,
    demo: opt.DemoOption = False,
    format: opt.FormatOption = opt.Format.TEXT,  # noqa: A002 - the option's name
    output: opt.OutputOption = None,
    lang: opt.LangOption = opt.Lang.EN,
    verbose: opt.VerboseOption = False,
    quiet: opt.QuietOption = False,
) -> None:
    """Check the endpoint: what is configured, then at most three chargeable requests."""
    from k3check.cli import fixing, links, work

    shown = work.Shown(format.value, output, lang.value, verbose, quiet)
    asked = links.LinkOptions(
        probes=tuple(probes or ()),
        base_url=base_url,
        model=model,
        api_key_env=api_key_env,
        protocol=protocol and protocol.value,
        headers=tuple(header or ()),
        proxy=proxy,
        cacert=cacert,
        turns=turns,
        needle_tokens=needle_tokens,
        offline=offline,
        profile=profile and profile.value,
    )
    if discover:
        _exclude("--discover", {"PROBE": probes, "--config": config, "--fix": fix, "--demo": demo})
        _exclude("--discover", asked.endpoint())
        links.discover(shown)
        return
    if demo:
        _exclude("--demo", {"--fix": fix})
    result = work.Result(_loaded(config, demo=demo, link=asked))
    if not demo:
        links.require_endpoint(result.loaded)
        links.require_key(result.loaded, asked)
        links.announce(result.loaded, asked, shown)
    with work.progress(shown) as listener:
        request = links.check(result, asked, listener, demo=demo)
    certain = fixing.certain(request, result, tries=fix)
    fixing.mention(certain, result, offered=not fix)
    report = result.report()
    work.publish(report, shown, links.ticket(report, shown))
    if fix:
        fixing.write(certain, request, shown)
    raise typer.Exit(report.exit_code)


@app.command(name="all")
def all_(
    config: opt.ConfigOption = None,
    operator: opt.OperatorOption = None,
    operator_command: opt.OperatorCommandOption = None,
    convention: opt.ConventionOption = None,
    semantics: opt.SemanticsOption = None,
    dtype: opt.DtypeOption = None,
    state_dtype: opt.StateDtypeOption = None,
    device: opt.DeviceOption = None,
    heads: opt.HeadsOption = None,
    key_dim: opt.KeyDimOption = None,
    value_dim: opt.ValueDimOption = None,
    tolerance: opt.ToleranceOption = None,
    standard: opt.StandardOption = None,
    timeout: opt.TimeoutOption = None,
    memory_limit: opt.MemoryLimitOption = None,
    base_url: opt.BaseUrlOption = None,
    model: opt.ModelOption = None,
    api_key_env: opt.ApiKeyEnvOption = None,
    protocol: opt.ProtocolOption = None,
    header: opt.HeaderOption = None,
    proxy: opt.ProxyOption = None,
    cacert: opt.CacertOption = None,
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
    from k3check.checking.from_config import OpsOptions
    from k3check.cli import fixing, links, work

    shown = work.Shown(format.value, output, lang.value, verbose, quiet)
    ops_asked = OpsOptions(
        operators=operator or (),
        commands=operator_command or (),
        conventions=convention or (),
        semantics=semantics or (),
        dtype=dtype,
        state_dtype=state_dtype,
        device=device,
        heads=heads,
        key_dim=key_dim,
        value_dim=value_dim,
        tolerance=tolerance,
        standard=standard and standard.value,
        timeout_s=timeout,
        memory_limit=memory_limit,
        seed=seed,
        profile=profile and profile.value,
        directory=str(Path.cwd()),
    )
    link_asked = links.LinkOptions(
        base_url=base_url,
        model=model,
        api_key_env=api_key_env,
        protocol=protocol and protocol.value,
        headers=tuple(header or ()),
        proxy=proxy,
        cacert=cacert,
        offline=offline,
        profile=profile and profile.value,
    )
    result = work.Result(_loaded(config, demo=demo, ops=ops_asked, link=link_asked))
    silent = not demo and links.nothing_said(result.loaded, link_asked)
    if not demo and not silent:
        links.announce(result.loaded, link_asked, shown)
    with work.progress(shown) as listener:
        checked = _ops(result, ops_asked, listener, demo=demo, key_variable=api_key_env)
        # Who configured operators alone means them alone; who configured nothing is told so.
        request = None
        if silent and checked.candidates:
            result.findings.append(links.left_out())
        elif not demo and result.loaded.login is not None and not link_asked.offline:
            result.findings.append(links.left_out(result.loaded.login))
        else:
            request = links.check(result, link_asked, listener, demo=demo)
    if request is not None:
        result.findings = links.with_way_out(result.findings, result.loaded, demo=demo)
        fixing.mention(fixing.certain(request, result), result, offered=True)
    report = result.report()
    work.publish(report, shown, links.ticket(report, shown))
    raise typer.Exit(report.exit_code)


def _exclude(first: str, others: Mapping[str, object]) -> None:
    """Refuse options that say the opposite of another one."""
    from k3check.cli import work

    for option, value in others.items():
        if value:
            raise work.conflict(first, option)


def _loaded(
    config: Path | None,
    *,
    demo: bool,
    ops: OpsOptions | None = None,
    link: LinkOptions | None = None,
) -> Loaded:
    """The configuration; a demo has none, and takes no option that names something to check."""
    from k3check.cli import links, work

    if not demo:
        return work.load(config, link.overrides() if link else None)
    named = {
        "--config": config,
        "--operator": ops and (*ops.operators, *ops.commands),
        "--convention": ops and ops.conventions,
    }
    _exclude("--demo", named | (link.endpoint() if link else {}))
    return links.demo_config(link)


def _ops(
    result: Result,
    asked: OpsOptions,
    listener: Listener,
    *,
    demo: bool,
    key_variable: str | None = None,
) -> OpsRequest:
    from k3check import runners as run
    from k3check.checking import from_config
    from k3check.cli import work

    request = from_config.request(result.loaded, asked)
    request = replace(request, hidden=work.key_variables(result.loaded, key_variable))
    found = run.check(request, listener)
    result.findings += from_config.noted(request, found.findings)
    result.environment.update(found.environment)
    if not demo:
        result.remarks += from_config.remarks(request, result.loaded, asked)
    return request
