"""Correct a configuration file where the right value is certain: shown first, undoable, minimal.

Only the value itself is replaced in the file's text (in TOML by tomlkit), so comments and order
stay. The result is parsed again: it must differ from the original in exactly the corrected keys,
else nothing is written. The API key is never touched and never shown.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import re
import tempfile
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k3check.config.document import parts_of
from k3check.link import lint
from k3check.link.problem import Severity
from k3check.link.wire.urls import Base
from k3check.masking import MASK

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from k3check.config.document import Path_
    from k3check.config.loaded import Origin
    from k3check.link.request import LinkRequest
    from k3check.link.wire.redact import Redactor
    from k3check.model import Finding

# What is wrong with the text alone: its correction leaves scheme, host and path as they are.
_SYNTAX = ("K3L-002", "K3L-004", "K3L-005", "K3L-016", "K3L-033", "K3L-034")
# Diagnoses that name a right value: code -> (configuration key, value's name in the diagnosis).
_NAMED = {
    "K3L-703": ("api.base_url", "found_base_url"),
    "K3L-006": ("api.base_url", "corrected_base_url"),
    "K3L-007": ("api.base_url", "corrected_base_url"),
    "K3L-009": ("api.base_url", "corrected_base_url"),
    "K3L-010": ("api.base_url", "corrected_base_url"),
    "K3L-250": ("model.{parameter}", "accepted"),
}
# The value was seen to work when the diagnosis was made.
_SEEN = ("K3L-703",)
# A key is never touched, and a model is never written by guess.
_NEVER = ("api.api_key", "model.name")
# Keys whose fields of the request have another name.
_FIELDS = {"model.name": "model", "api.timeout_seconds": "timeout_s"}


@dataclass(frozen=True)
class Repair:
    """One value to correct.

    Attributes:
        code: the diagnosis that asks for it.
        key: the configuration's dotted key.
        value: the right value.
        where: where the present value comes from, for messages.
        file: the file to edit; None if the value does not come from a file.
        path: the key path inside that file.
        line: the line of the value, from 1.
        proof: ``syntax`` where the text alone was wrong, ``seen`` where a request with the value
            was answered, empty where it would have to be tried.
    """

    code: str
    key: str
    value: Any
    where: str
    file: Path | None = None
    path: Path_ = ()
    line: int | None = None
    proof: str = ""


@dataclass(frozen=True)
class Change:
    """A file's text before and after.

    Attributes:
        file: the file.
        before, after: its text.
        refused: why it cannot be edited; then ``after`` equals ``before``.
    """

    file: Path
    before: str
    after: str
    refused: str = ""


def repairs(
    request: LinkRequest,
    findings: Iterable[Finding],
    origins: Mapping[str, Origin],
    folder: Path,
) -> tuple[Repair, ...]:
    """What might be corrected; see :func:`chosen`.

    Args:
        request: what was checked.
        findings: what was found.
        origins: where each value came from, by dotted key.
        folder: the folder that relative file names start at.
    """
    wanted: dict[tuple[str, Any], tuple[str, str]] = {}
    base = request.address()
    for finding in findings:
        for diagnosis in finding.diagnoses:
            key, name = _NAMED.get(diagnosis.code, ("", ""))
            value = diagnosis.values.get(name)
            if key and value not in (None, ""):
                proof = "seen" if diagnosis.code in _SEEN else ""
                at = key.format(**dict(diagnosis.values))
                wanted.setdefault((at, value), (diagnosis.code, proof))
    for problem in lint.check(request):
        wrong = problem.severity in (Severity.BLOCK, Severity.FAIL) and problem.fixed is not None
        if not wrong or problem.key != "api.base_url":
            continue
        if problem.code in _SYNTAX and (tidy := base.tidy) is not None:
            wanted.setdefault((problem.key, tidy), (problem.code, "syntax"))
        wanted.setdefault((problem.key, problem.fixed), (problem.code, ""))
    made = []
    for (key, value), (code, proof) in wanted.items():
        if key in _NEVER or key not in origins:
            continue
        origin = origins[key]
        if value == _present(request, key) or (isinstance(value, str) and MASK in value):
            continue  # it changes nothing, or was taken from where secrets are masked
        file = folder / origin.where if origin.line is not None else None
        path = parts_of(origin.key)
        made.append(Repair(code, key, value, str(origin), file, path, origin.line, proof))
    return tuple(made)


def chosen(
    request: LinkRequest, candidates: Iterable[Repair], *, tries: bool
) -> tuple[Repair, ...]:
    """One correction for each key: what was seen to work, else what is syntax alone.

    Args:
        request: what was checked.
        candidates: what might be corrected.
        tries: send one request with what was not tried yet; without it such values are left out.
    """
    by_key: dict[str, list[Repair]] = {}
    for one in candidates:
        by_key.setdefault(one.key, []).append(one)
    safe = {
        key: one
        for key, some in by_key.items()
        for one in [r for p in ("seen", "syntax") for r in some if r.proof == p][:1]
    }
    open_ = {
        key: [r for r in some if not r.proof][-1]
        for key, some in by_key.items()
        if (key not in safe or safe[key].proof == "syntax") and any(not r.proof for r in some)
    }
    if open_ and tries and not request.offline:
        best = safe | open_
        if _works(request, best.values()):
            return tuple(replace(one, proof="seen") for one in best.values())
    return tuple(safe.values())


def _works(request: LinkRequest, wanted: Iterable[Repair]) -> bool:
    """Whether one request with the corrected values, as the client would send it, is answered."""
    from k3check.link.asking import ask, question, request_body
    from k3check.link.session import Session

    fields = {_FIELDS.get(r.key, r.key.rpartition(".")[2]): r.value for r in wanted}
    tried = replace(request, **fields)
    # The key goes nowhere else, and never by another scheme.
    if tried.address().origin != Base(request.address().tidy or "").origin:
        return False
    session = Session.of(tried)
    try:
        wire = session.wire
        asked = ask(session, wire, request_body(session, wire, question(session)))
    finally:
        session.close()
    return asked.result.answered and not asked.result.failing and not asked.refused


def _present(request: LinkRequest, key: str) -> Any:
    """The value that a key has now; None where the request does not know it."""
    name = _FIELDS.get(key, key.rpartition(".")[2])
    return getattr(request, name, None)


def changes(wanted: Sequence[Repair]) -> tuple[Change, ...]:
    """The edits of the files, one for each file; nothing is written.

    Raises:
        OSError: a file cannot be read.
    """
    by_file: dict[Path, list[Repair]] = {}
    for repair in wanted:
        if repair.file is not None:
            by_file.setdefault(repair.file, []).append(repair)
    return tuple(_change(file, list(some)) for file, some in by_file.items())


def _change(file: Path, wanted: list[Repair]) -> Change:
    with file.open(encoding="utf-8", newline="") as stream:
        before = stream.read()
    text = before
    for repair in wanted:
        edited = replace_value(text, repair)
        if edited is None:
            return Change(file, before, before, f"{repair.where} cannot be edited safely")
        text = edited
    return Change(file, before, text)


_JSON_VALUE = r"\"(?:[^\"\\\n]|\\.)*\"|-?[\w.+-]+"


def replace_value(text: str, repair: Repair) -> str | None:
    """The text with one value replaced; None if that cannot be done without touching more."""
    if repair.line is None or not repair.path:
        return None
    if _parsed(text, toml=True) is not None:
        edited = _in_toml(text, repair)
        return edited if edited and _only_differs(text, edited, repair, toml=True) else None
    lines = text.split("\n")  # as the configuration counts them; a carriage return stays
    if not 0 < repair.line <= len(lines):
        return None
    line, name = lines[repair.line - 1], re.escape(str(repair.path[-1]))
    pattern = rf"(\"{name}\"\s*:\s*)({_JSON_VALUE})"
    value = json.dumps(repair.value, ensure_ascii=False)
    found = list(re.finditer(pattern, line))
    if len(found) != 1:
        return None
    start, end = found[0].span(2)
    lines[repair.line - 1] = line[:start] + value + line[end:]
    edited = "\n".join(lines)
    return edited if _only_differs(text, edited, repair, toml=False) else None


def _in_toml(text: str, repair: Repair) -> str | None:
    """A TOML text with one value replaced; comments, order and blanks stay."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    mark = "\ufeff" if text.startswith("\ufeff") else ""
    try:
        document = tomlkit.parse(text.removeprefix(mark))
        place = _place_of(document, repair.path)
        if place is None:
            return None
        place[repair.path[-1]] = repair.value
        return mark + tomlkit.dumps(document)
    except (TOMLKitError, TypeError, ValueError):
        return None


def _place_of(data: Any, path: Path_) -> Any:
    """The table or list that holds a key path's last part; None if there is none."""
    # In pyproject.toml the path starts further down.
    for prefix in ((), ("tool", "k3check")):
        place = data
        try:
            for step in (*prefix, *path[:-1]):
                place = place[step]
            place[path[-1]]
        except (KeyError, IndexError, TypeError):
            continue
        return place
    return None


def _parsed(text: str, *, toml: bool) -> Any:
    text = text.removeprefix("\ufeff")
    try:
        return tomllib.loads(text) if toml else json.loads(text)
    except (ValueError, RecursionError):
        return None


def _only_differs(before: str, after: str, repair: Repair, *, toml: bool) -> bool:
    """The edit changed exactly the wanted value."""
    old, new = _parsed(before, toml=toml), _parsed(after, toml=toml)
    if old is None or new is None:
        return False
    place = _place_of(old, repair.path)
    if place is None:
        return False
    place[repair.path[-1]] = repair.value
    return bool(old == new)


def diff(change: Change, redactor: Redactor) -> str:
    """The edit as a unified diff without any secret."""
    lines = difflib.unified_diff(
        redactor.hide(change.before).splitlines(),
        redactor.hide(change.after).splitlines(),
        change.file.name,
        change.file.name,
        lineterm="",
        n=1,
    )
    return "\n".join(_masked_line(line) for line in lines)


def _masked_line(line: str) -> str:
    """A line of a diff; whatever stands under a secret's name is masked, known or not."""
    return re.sub(
        r"(?i)([\"']?[\w-]*(?:api[_-]?key|token|secret|password)[\"']?\s*[=:]\s*)"
        r"(\"[^\"]*\"|'[^']*')",
        r"\1***",
        line,
    )


def write(change: Change) -> Path:
    """Write an edit; the original is kept beside it.

    Returns:
        The backup's path.

    Raises:
        OSError: writing failed; the original is still there.
    """
    file = change.file.resolve()
    mode = file.stat().st_mode & 0o777
    backup = _free(file)
    _place(backup, change.before, mode)
    _place(file, change.after, mode)
    return backup


def _free(file: Path) -> Path:
    """A name for the backup that nothing has yet."""
    for number in range(1000):
        path = file.with_name(f"{file.name}.bak{number or ''}")
        if not path.exists():
            return path
    raise FileExistsError(f"{file.name}.bak")


def _place(path: Path, text: str, mode: int) -> None:
    """Write a file completely or not at all, with its mode from the first moment."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
        Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
