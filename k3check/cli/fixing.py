"""``k3check link --fix``: say which values are certain to be wrong, show the edit, write it."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from k3check.config.problems import problem
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from k3check.cli.work import Result, Shown
    from k3check.config.models import Config
    from k3check.link.repair import Repair
    from k3check.link.request import LinkRequest
    from k3check.link.wire.redact import Redactor


def certain(request: LinkRequest, result: Result, *, tries: bool = False) -> tuple[Repair, ...]:
    """The corrections about which there is no doubt.

    Args:
        request: what was checked.
        result: what was found.
        tries: send one request more with what looks right and was not tried.
    """
    from k3check.link import repair

    found = repair.repairs(request, result.findings, result.loaded.origins, Path.cwd())
    found = repair.chosen(request, found, tries=tries)
    return tuple(
        one if _stands_there(one, result.loaded.config) else replace(one, file=None)
        for one in found
    )


def _stands_there(repair: Repair, config: Config) -> bool:
    """Whether the value is written in the file as it is used.

    A provider's prefix before a model's id, or seconds that are written as milliseconds, would be
    lost by writing the right value in its place.
    """
    if repair.file is None or repair.line is None:
        return False
    section, _, name = repair.key.partition(".")
    value = getattr(getattr(config, section, None), name, None)
    try:
        line = repair.file.read_text("utf-8").split("\n")[repair.line - 1]
    except (OSError, UnicodeError, IndexError):
        return True  # the edit itself will say so
    if isinstance(value, str):
        return any(f"{quote}{value}{quote}" in line for quote in "\"'")
    spellings = {str(value), f"{value:g}" if isinstance(value, float) else str(value)}
    return any(re.search(rf"(?<![\w.]){re.escape(s)}(?![\w.])", line) for s in spellings)


def mention(wanted: Sequence[Repair], result: Result, *, offered: bool) -> None:
    """Name the corrected values in the report.

    Args:
        wanted: the corrections.
        result: the report in the making.
        offered: say that --fix would write them.
    """
    if not wanted:
        return
    corrected = {repair.key: repair.value for repair in wanted}
    result.findings = [
        replace(f, evidence={**f.evidence, "corrected": corrected}) if f.id == "link/lint" else f
        for f in result.findings
    ]
    # What a note of the settings' check says already is not said again in other words.
    said = {n.code for f in result.findings if f.id == "link/lint" for n in f.notes}
    named = [repair for repair in wanted if repair.file is not None and repair.code in said]
    if named and offered:
        result.remarks.append(Message("K3C-195", {"n": len(named)}))
    for repair in wanted:
        if repair in named:
            continue
        values = {"where": _where(repair), "value": _value(repair), "key": repair.key}
        if repair.file is None:
            result.remarks.append(Message("K3C-095", values))
        elif offered:
            result.remarks.append(Message("K3C-094", values))


def write(wanted: Sequence[Repair], request: LinkRequest, shown: Shown) -> None:
    """Show each file's edit on stderr, then write it; the option is the consent.

    Raises:
        UsageError: a file cannot be read or written.
    """
    from k3check import hints
    from k3check.cli.work import rendering
    from k3check.link import repair
    from k3check.link.request import redactor_of

    redactor = redactor_of(request)
    lang = rendering(shown).lang
    in_files = [r for r in wanted if r.file is not None]
    if not in_files:
        _say("k3check: there is nothing to correct in a file", redactor)
        return
    for file in dict.fromkeys(r.file for r in in_files):
        ours = [r for r in in_files if r.file == file]
        try:
            (change,) = repair.changes(ours)
            name = _shown(change.file)
            if change.refused:
                for one in ours:
                    values = {"where": _where(one), "value": _value(one), "file": name}
                    _say(
                        f"k3check: {hints.title('K3C-098', lang, values)} "
                        f"{hints.fix('K3C-098', lang, values)}",
                        redactor,
                    )
                continue
            _say(f"k3check: in {name}\n{repair.diff(change, redactor)}", redactor)
            backup = repair.write(change)
        except (OSError, UnicodeError) as error:
            raise problem(
                "K3C-099",
                where=_shown(file or Path()),
                found=getattr(error, "strerror", None) or type(error).__name__,
                accepted="a UTF-8 file in a folder that may be written to",
            ) from None
        _say(f"k3check: wrote {name}; the original is kept as {_shown(backup)}", redactor)
        for one in ours:
            code = "K3L-721" if one.proof == "seen" else "K3L-722"
            values = {"value": _value(one)}
            _say(f"k3check: {hints.title(code, lang, values)}", redactor)


def _say(text: str, redactor: Redactor) -> None:
    from k3check.masking.settings import scrub
    from k3check.plain import clean
    from k3check.report.terminal import write as put

    put(sys.stderr, f"{scrub(clean(redactor.hide(text)))}\n")


def _shown(path: Path) -> str:
    from k3check.config.source import display

    cwd = Path.cwd()
    return display(path.relative_to(cwd) if path.is_relative_to(cwd) else path)


def _where(repair: Repair) -> str:
    return " ".join(repair.where.split())


def _value(repair: Repair) -> str:
    return json.dumps(repair.value, ensure_ascii=False)
