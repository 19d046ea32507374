"""What the commands have in common: load the configuration, time the work, show the report."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from k3check.config.problems import problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.loaded import Loaded
    from k3check.model import Finding, Message, Report
    from k3check.report.formats import Options


@dataclass(frozen=True)
class Shown:
    """How a command's result is shown, as typed."""

    format: str = "text"
    output: Path | None = None
    lang: str = "en"
    verbose: bool = False
    quiet: bool = False

    def __post_init__(self) -> None:
        """Refuse at once what would fail after the work."""
        if self.verbose and self.quiet:
            raise conflict("-v", "-q")
        if self.output is not None:
            from k3check.report import output

            output.check(self.output)


@dataclass
class Result:
    """What a command has found so far; each part of it adds its own."""

    loaded: Loaded
    findings: list[Finding] = field(default_factory=list)
    environment: dict[str, Any] = field(default_factory=dict)
    remarks: list[Message] = field(default_factory=list)
    #: keys about which a finding says what there is to say
    said: set[str] = field(default_factory=set)
    began: float = field(default_factory=time.monotonic)
    started_at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    def report(self) -> Report:
        """The report of everything found, without any known secret."""
        from k3check.masking import Masker
        from k3check.masking.address import hosts
        from k3check.model import Report

        report = Report(
            findings=self.findings,
            started_at=self.started_at,
            duration_s=round(time.monotonic() - self.began, 3),
            environment=self.environment,
            config_path=path_of(self.loaded),
            config_dialect=self.loaded.dialect,
            config_notes=[*self.remarks, *self._unsaid()],
        )
        masked: Report = Masker(
            self.loaded.secrets, public=hosts(self.loaded.config.api.base_url)
        ).value(report)
        return masked

    def _unsaid(self) -> list[Message]:
        """The configuration's notes but for those on keys that a finding is about."""
        if not any(finding.id == "link/lint" for finding in self.findings):
            return list(self.loaded.notes)
        return [note for note in self.loaded.notes if note.values.get("key") not in self.said]


def path_of(loaded: Loaded) -> str | None:
    """The configuration's file as the user would write it, safe to print."""
    from k3check.config.source import display

    path, cwd = loaded.path, Path.cwd()
    if path is None:
        return None
    return display(path.relative_to(cwd) if path.is_relative_to(cwd) else path)


def conflict(first: str, second: str) -> Exception:
    """Two options that exclude each other."""
    return problem("K3C-084", where=f"{first} {second}", first=first, second=second)


def load(path: Path | None, overriding: Mapping[str, tuple[Any, str]] | None = None) -> Loaded:
    """Load the configuration; by key, values that override it and the option each comes from."""
    from k3check.config import load as loading

    overrides = {key: loading.Override(*given) for key, given in (overriding or {}).items()}
    return loading.load(path, cwd=Path.cwd(), env=os.environ, overrides=overrides)


def key_variables(loaded: Loaded, named: str | None) -> tuple[str, ...]:
    """The variables that hold a key: the one that an option names, and those with a key's value."""
    from k3check.masking import SHORTEST

    holding = [
        name
        for name, value in os.environ.items()
        if len(value.strip()) >= SHORTEST and value.strip() in loaded.secrets
    ]
    return tuple(dict.fromkeys([*([named] if named else []), *holding]))


def progress(shown: Shown) -> Any:
    """A live display on stderr, unless the user wants quiet."""
    import contextlib

    from k3check.report.listener import Silent
    from k3check.report.progress import Progress

    if shown.quiet:
        return contextlib.nullcontext(Silent())
    return Progress(sys.stderr, os.environ, lang=shown.lang)


def show(report: Report, shown: Shown) -> NoReturn:
    """Write a report and exit with what its verdict stands for."""
    publish(report, shown)
    raise typer.Exit(report.exit_code)


def publish(report: Report, shown: Shown, head: str = "") -> None:
    """Write a report, after a text in the same format that comes first."""
    from k3check.report.formats import render

    emit(head + render(shown.format, report, rendering(shown)), shown)
    if shown.output is not None and not shown.quiet:
        from k3check.report.formats.text import last_line
        from k3check.report.terminal import look, write
        from k3check.report.texts import label

        drawn = look(sys.stderr, os.environ, lang=shown.lang)
        lang = shown.lang if drawn.chinese else "en"
        told = f"{last_line(report, lang)}; {label('written', lang)} {shown.output}\n"
        write(sys.stderr, told)


def rendering(shown: Shown) -> Options:
    """The renderer's options: a file can take everything, a terminal what it can show."""
    from k3check.report.formats import Options, Verbosity
    from k3check.report.terminal import Look, look

    verbosity = Verbosity.VERBOSE if shown.verbose else Verbosity.NORMAL
    if shown.quiet:
        verbosity = Verbosity.QUIET
    drawn = Look() if shown.output else look(sys.stdout, os.environ, lang=shown.lang)
    lang = shown.lang if drawn.chinese else "en"
    return Options(lang, verbosity, drawn if lang == shown.lang else replace(drawn, ascii=True))


def emit(text: str, shown: Shown) -> None:
    """Write a command's result to ``--output`` or standard output."""
    from k3check.report import output
    from k3check.report.terminal import write

    if shown.output is not None:
        output.write(shown.output, text)
        return
    try:
        write(sys.stdout, text)
    except BrokenPipeError:
        pass  # the reader has seen enough; the exit code still tells the result
    except OSError as error:
        from k3check.cli.stdout import not_written

        raise not_written(error) from None
