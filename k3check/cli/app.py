"""The typer app, and the one place where exceptions become messages and exit codes."""

from __future__ import annotations

import os
import re
import sys
import traceback
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from k3check import __version__
from k3check.errors import (
    TRACE_VARIABLE,
    ExitCode,
    InternalError,
    K3CheckError,
    NothingToCheck,
    UsageError,
)


class Guarded(TyperGroup):
    """A group whose commands never end in a traceback of ours."""

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Read the command line, and answer ``--help`` and ``--version``."""
        try:
            return super().make_context(*args, **extra)
        except K3CheckError as error:
            _tell(error, "en")
            raise typer.Exit(_code(error)) from None

    def invoke(self, ctx: Any) -> Any:
        """Run the command; see :class:`k3check.errors.ExitCode`."""
        try:
            return super().invoke(ctx)
        except K3CheckError as error:
            _tell(error, _language(ctx))
            raise typer.Exit(_code(error)) from None
        except KeyboardInterrupt:
            _interrupted(_language(ctx))
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:
            # typer's own usage errors show themselves and exit with 2
            if hasattr(error, "show") and hasattr(error, "exit_code"):
                _add_the_nearest(error, ctx.command)
                raise
            what = f"{type(error).__name__}: {error}".rstrip(": ")
            _tell(InternalError(what, trace=traceback.format_exc()), _language(ctx))
            raise typer.Exit(ExitCode.INTERNAL) from None


_NONE_OF = re.compile(r"'([^']{1,60})' is not one of ((?:'[^']+'(?:, )?)+)")
_NO_VALUE = re.compile(r"Option '(--?[\w-]+)' requires an argument")


def _add_the_nearest(error: Any, command: Any) -> None:
    """Add to one of typer's own errors what was probably meant."""
    message = str(getattr(error, "message", ""))
    if found := _NONE_OF.search(message):
        from k3check.config.problems import nearest

        close = nearest(found[1], re.findall(r"'([^']+)'", found[2]))
        if close:
            error.message = f"{message.rstrip('.')}. Did you mean '{close}'?"
    elif found := _NO_VALUE.search(message):
        metavar = _metavar(command, found[1])
        if metavar:
            error.message = f"{message.rstrip('.')}: {found[1]} {metavar}"


def _metavar(command: Any, option: str) -> str:
    """What an option of a command, or of one below it, is followed by."""
    for parameter in command.params:
        if option in parameter.opts:
            return str(parameter.metavar or "VALUE")
    below = (_metavar(child, option) for child in getattr(command, "commands", {}).values())
    return next((found for found in below if found), "")


def _code(error: K3CheckError) -> ExitCode:
    return ExitCode.USAGE if isinstance(error, UsageError) else ExitCode.INTERNAL


def _language(ctx: Any) -> str:
    """What ``--lang`` says, if that was read before the error, and stderr can show."""
    from k3check.cli.options import LANG
    from k3check.report.terminal import look

    lang: str = ctx.meta.get(LANG, "en")
    return lang if look(sys.stderr, os.environ).chinese else "en"


def _interrupted(lang: str) -> None:
    from k3check.report.terminal import write
    from k3check.report.texts import label

    write(sys.stderr, f"k3check: {label('interrupted', lang)}\n")


def _tell(error: K3CheckError, lang: str) -> None:
    """Write an error to stderr: for people, without control characters and secrets."""
    from k3check.masking.settings import known_secrets, scrub
    from k3check.plain import clean, one_line
    from k3check.report.problem import usage_text
    from k3check.report.terminal import look, write
    from k3check.report.texts import label

    known = known_secrets(os.environ.get("K3CHECK_API_KEY"))
    if isinstance(error, UsageError):
        text = usage_text(error, look(sys.stderr, os.environ, lang=lang), lang)
    elif isinstance(error, NothingToCheck):
        text = f"k3check: {label('nothing', lang)}: {one_line(str(error))}\n"
    else:
        text = f"k3check: {one_line(str(error))}\n"
        trace = getattr(error, "trace", None)
        if trace and os.environ.get(TRACE_VARIABLE) == "1":
            text = f"{clean(trace)}{text}"
    write(sys.stderr, scrub(text, known))


app = typer.Typer(
    name="k3check",
    cls=Guarded,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: quick, and readable in any terminal
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"k3check {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Did I break Kimi K3?

    Checks operators against float64 references and endpoints against what K3 answers, and names
    the mistake when something fails.

    Exit codes: 0 nothing failed, 1 something failed, 2 usage or configuration error, 3 nothing
    was checked or an internal error, 130 interrupted (Ctrl-C or SIGTERM).
    """
