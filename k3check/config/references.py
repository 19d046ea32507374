"""References in a configuration: ``${VAR}``, ``{env:VAR}``, ``os.environ/VAR`` and the like.

Each client expands some forms and sends the others as they stand; so a form is resolved only where
the file's own client does it, and flagged with its place elsewhere.
"""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

BRACED = "${VAR}"
BARE = "$VAR"
LITELLM = "os.environ/VAR"
OPENCODE = "{env:VAR}"
FILE = "{file:PATH}"
SECRETS = "${{ secrets.NAME }}"
COMMAND = "$(command)"

_FORMS = {
    SECRETS: re.compile(r"\$\{\{\s*secrets\.([\w.\-/]+)\s*\}\}"),
    COMMAND: re.compile(r"\$\(([^()]*)\)"),
    BRACED: re.compile(r"\$\{(\w+)(?::?-([^{}]*))?\}"),
    BARE: re.compile(r"\$([A-Za-z_]\w*)"),
    LITELLM: re.compile(r"\Aos\.environ/(\w+)\Z"),
    OPENCODE: re.compile(r"\{env:([^{}]+)\}"),
    FILE: re.compile(r"\{file:([^{}]+)\}"),
}
FORMS = tuple(_FORMS)
_MOST_BYTES = 4096


@dataclass(frozen=True)
class Context:
    """What references are resolved with.

    Attributes:
        env: the environment, and below it what the file itself defines.
        folder: where relative paths start: the file's own folder.
        expands: the forms that the file's client expands.
    """

    env: Mapping[str, str] = field(repr=False)
    folder: Path
    expands: tuple[str, ...] = ()

    def variable(self, name: str) -> str | None:
        """A variable's value; an empty one counts as not set."""
        return self.env.get(name, "").strip() or None


@dataclass(frozen=True)
class Resolved:
    """A text with its references resolved.

    Attributes:
        text: the text; a reference that cannot be resolved stays in it as it is written.
        via: the variables and files that it comes from.
        notes: what could not be resolved, and what the client does not expand.
        unset: the first variable that is not set, as a message; the text is no value then.
        whole: the text is nothing but a reference that the client does not expand, as a message.
        command: whether a command makes the text, which is not run.
    """

    text: str = field(repr=False)
    via: tuple[str, ...] = ()
    notes: tuple[Message, ...] = ()
    unset: Message | None = None
    whole: Message | None = None
    command: bool = False


def resolve(text: str, context: Context, where: str, *, from_file: bool = False) -> Resolved:
    """Resolve a text's references.

    Args:
        text: a value of a configuration.
        context: what to resolve them with.
        where: the value's place, for notes.
        from_file: whether ``{file:PATH}`` may be read: for keys alone, so that no other file's
            content ends in an address or a model's name.
    """
    via: list[str] = []
    notes: list[Message] = []
    unset: list[Message] = []
    command, whole = False, None

    def variable(match: re.Match[str]) -> str:
        name = match[1].strip()
        value = context.variable(name)
        if value is None and match.re.groups > 1 and match[2] is not None:
            return match[2]
        if value is None:
            unset.append(Message("K3C-110", {"where": where, "variable": name}))
            return match[0]
        via.append(name)
        return value

    def secret(match: re.Match[str]) -> str:
        value = context.variable(match[1])
        if value is None:
            # The tool looks at stores of its own besides variables.
            unset.append(Message("K3C-151", {"where": where, "store": "the tool's secrets"}))
            return match[0]
        via.append(match[1])
        return value

    def file(match: re.Match[str]) -> str:
        content, reason = _read(match[1].strip(), context) if from_file else (None, _KEYS_ONLY)
        if content is None:
            values = {"where": where, "path": match[1].strip(), "reason": reason}
            notes.append(Message("K3C-111", values))
            return match[0]
        via.append(match[1].strip())
        return content

    for form in _present(text):
        if form == COMMAND and form in context.expands:
            command = True
        elif form not in context.expands:
            notes.append(Message("K3C-112", {"where": where, "form": form}))
            whole = notes[-1] if _FORMS[form].fullmatch(text.strip()) else whole
        else:
            by = file if form == FILE else secret if form == SECRETS else variable
            text = _substituted(text, form, by)
    missing = unset[0] if unset else None
    return Resolved(text, tuple(via), tuple(notes), missing, whole, command)


_KEYS_ONLY = "only keys are read from files"


def _present(text: str) -> list[str]:
    """The forms in a text. A lone dollar sign inside a longer text is no reference."""
    rest, found = text, []
    for form, pattern in _FORMS.items():
        hit = pattern.fullmatch(rest) if form == BARE else pattern.search(rest)
        if hit is not None:
            found.append(form)
            rest = pattern.sub("", rest)
    return found


def _substituted(text: str, form: str, by: Callable[[re.Match[str]], str]) -> str:
    return _FORMS[form].sub(by, text)


def _read(name: str, context: Context) -> tuple[str | None, str]:
    """A small file's text; None and why it cannot be read."""
    path = Path(name)
    if name.startswith("~/"):
        path = Path(context.env.get("HOME", "/")) / name[2:]
    try:
        path = context.folder / path
        if not stat.S_ISREG(path.stat().st_mode):
            return None, "no regular file"
        with path.open("rb") as stream:
            raw = stream.read(_MOST_BYTES + 1)
        text = raw.decode("utf-8").strip()
    except OSError as error:
        return None, error.strerror or "cannot be opened"
    except ValueError:
        return None, "not a text"
    if len(raw) > _MOST_BYTES or "\n" in text or not text:
        return None, "more or less than one line"
    return text, ""


def documented(forms: Iterable[str]) -> str:
    """The forms as a document lists them."""
    return ", ".join(f"`{form}`" for form in forms) or "none"
