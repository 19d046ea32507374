"""Claude Code's ``settings.json``: the endpoint stands in its ``env`` table.

The client merges several files, and within them variable by variable. Highest first: managed
settings, the file of ``--settings``, the project's ``settings.local.json`` and ``settings.json``,
the user's ``settings.json``, the shell. A file outside a ``.claude`` folder is taken as that of
``--settings``. Source: code.claude.com, "settings" and "llm-gateway-connect"; that the ``env``
table overrides the shell was measured by others on version 2.1.304.

The client uses Anthropic's library, so /v1/messages is appended to ANTHROPIC_BASE_URL as it stands.
ANTHROPIC_AUTH_TOKEN is sent as a bearer, ANTHROPIC_API_KEY as x-api-key. The aliases opus, sonnet,
haiku and opusplan become the models of ANTHROPIC_DEFAULT_*_MODEL, and a mark such as [1m] behind a
model's name is for the client alone (code.claude.com, "model-config").
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k3check.config.client import sdk
from k3check.config.dialects.base import Layer, Reading, Value, table, table_dialect
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from k3check.config.dialects.base import Found
    from k3check.config.document import Document, Path_

# Linux; the client has other places on other systems.
MANAGED = Path("/etc/claude-code/managed-settings.json")

# Variable, our key, rank: with both keys set the client sends both headers; the token's is the one
# that most gateways read. The old name of the background model gives way to the new one.
VARIABLES = (
    ("ANTHROPIC_BASE_URL", "api.base_url", 0),
    ("ANTHROPIC_API_KEY", "api.api_key", 1),
    ("ANTHROPIC_AUTH_TOKEN", "api.api_key", 2),
    # The file's own "model" is used only where the variable is not set.
    ("ANTHROPIC_MODEL", "model.name", 1),
    ("ANTHROPIC_SMALL_FAST_MODEL", "client.background_model", 0),
    ("ANTHROPIC_DEFAULT_HAIKU_MODEL", "client.background_model", 1),
    ("ANTHROPIC_DEFAULT_OPUS_MODEL", "alias.opus", 0),
    ("ANTHROPIC_DEFAULT_SONNET_MODEL", "alias.sonnet", 0),
    ("ANTHROPIC_CUSTOM_HEADERS", "api.headers", 0),
    ("API_TIMEOUT_MS", "api.timeout_seconds", 0),
)
CLIENT = sdk("Claude Code", "anthropic")
# Which model an alias stands for while no plan is made; a mark of the window may follow.
_ALIASES = {
    "opus": "alias.opus",
    "sonnet": "alias.sonnet",
    "opusplan": "alias.sonnet",
    "haiku": "client.background_model",
}
# Without it the client asks for a model of Anthropic's.
NO_MODEL = Message("K3L-057", {"missing": "ANTHROPIC_MODEL", "setting": "model"})
_KEY = "api.api_key"
_MARK = re.compile(r"\[\d+m\]\Z", re.IGNORECASE)
_AUTH = {"ANTHROPIC_API_KEY": "x-api-key", "ANTHROPIC_AUTH_TOKEN": "bearer"}
_RANKS = {name: rank for name, _, rank in VARIABLES}
_FIELDS: dict[str, str | None] = {
    "model": "model.name",
    **{f"env.{name}": key for name, key, _ in VARIABLES},
    "permissions": "client.permissions",
    "agent": "client.agent",
}


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data have an ``env`` table with one of the client's variables, or its helper."""
    return "apiKeyHelper" in data or any(
        name.startswith(("ANTHROPIC_", "CLAUDE_CODE_")) for name in table(data, "env")
    )


def from_variables(document: Document, items: Sequence[tuple[str, Any, Path_]]) -> Reading:
    """The endpoint that the client's variables describe, those of the shell below them.

    Args:
        document: the file, for places.
        items: variable, value and key path of each variable that the file sets.
    """
    values: list[Value] = []
    notes: list[Message] = []
    keys = {name: key for name, key, _ in VARIABLES}
    for name, given, path in items:
        if name not in keys or given is None:
            continue
        value = given
        if isinstance(value, int | float) and not isinstance(value, bool):
            notes.append(Message("K3L-925", {"name": name, "file": document.file}))
            value = str(value)
        if name == "API_TIMEOUT_MS":
            value = _seconds(value)
        if name == "ANTHROPIC_CUSTOM_HEADERS":
            value = _headers(value)
        # Both headers are sent, so the two do not contradict each other.
        rival = name != "ANTHROPIC_API_KEY"
        values.append(Value(keys[name], value, path, rank=_RANKS[name], rival=rival))
        if name in _AUTH:
            values.append(Value("link.auth", _AUTH[name], path, rank=_RANKS[name]))
    for name, key, rank in VARIABLES:
        # These need another form, which a variable of the shell cannot be given here.
        if name in ("API_TIMEOUT_MS", "ANTHROPIC_CUSTOM_HEADERS"):
            continue
        rival = name != "ANTHROPIC_API_KEY"
        values.append(Value(key, name, (), source="below", rank=rank, rival=rival))
        if name in _AUTH:
            values.append(
                Value("link.auth", name, (), source="below", instead=_AUTH[name], rank=rank)
            )
    return Reading(tuple(values), notes=tuple(notes), client=CLIENT)


def _headers(raw: Any) -> Any:
    """The client's variable is a text of lines ``Name: value``."""
    if not isinstance(raw, str):
        return raw
    pairs = (line.partition(":") for line in raw.splitlines() if ":" in line)
    return {name.strip(): value.strip() for name, _, value in pairs}


def _seconds(raw: Any) -> Any:
    """The client's variable is a text of milliseconds."""
    if isinstance(raw, str) and raw.isascii() and raw.isdigit() and len(raw) < 16:
        return int(raw) / 1000
    return raw


def finish(document: Document, reading: Reading) -> Reading:
    """Set protocol and ranks, and note keys that the client does not have."""
    env = table(document.data, "env")
    variables = from_variables(document, [(n, v, ("env", n)) for n, v in env.items()])
    other = [value for value in reading.values if value.path[0] != "env"]
    notes = list(variables.notes)
    if "agent" in document.data:
        notes.append(Message("K3C-048", {"key": "agent", "where": document.where(("agent",))}))
    # What the command prints is sent in both headers.
    both = (
        [Value("link.auth", "both", ("apiKeyHelper",))] if document.data.get("apiKeyHelper") else []
    )
    helper = Message("K3C-116", {"where": document.where(("apiKeyHelper",))})
    return replace(
        variables,
        values=(*other, *both, *variables.values),
        notes=(*reading.notes, *notes),
        client_at=("env",) if env else (),
        absent={
            "model.name": NO_MODEL,
            **({"api.api_key": helper} if document.data.get("apiKeyHelper") else {}),
        },
    )


def resolve(found: list[Found]) -> tuple[list[Found], Mapping[str, Message]]:
    """Follow the client's aliases of models, leave out a window's mark, and send both keys."""
    return _aliases(_both_keys(found))


def _both_keys(found: list[Found]) -> list[Found]:
    """With both variables set the client sends both headers, each with its own."""
    keys = {one.item.rank: one for one in found if one.item.key == _KEY}
    plain, token = (keys.get(_RANKS[name]) for name in _AUTH)
    if plain is None or token is None:
        return found
    header = {"x-api-key": str(plain.value)}
    item = replace(plain.item, key="api.headers", rank=0, rival=False)
    return [*found, replace(plain, item=item, value=header, line=None)]


def _aliases(found: list[Found]) -> tuple[list[Found], Mapping[str, Message]]:
    by_key = {one.item.key: one for one in found}
    kept = [one for one in found if not one.item.key.startswith("alias.")]
    model = by_key.get("model.name")
    if model is None:
        # The client's default is one of these two, by the account.
        two = [by_key.get(alias) for alias in ("alias.opus", "alias.sonnet")]
        if two[0] is None or two[1] is None or two[0].value != two[1].value:
            return kept, {}
        item = replace(two[1].item, key="model.name")
        name = _MARK.sub("", str(two[1].value).strip())
        return [*kept, replace(two[1], item=item, value=name)], {}
    if not isinstance(model.value, str):
        return kept, {}
    name = _MARK.sub("", model.value.strip())
    alias_key = _ALIASES.get(name.casefold(), "")
    target = by_key.get(alias_key)
    if alias_key and target is None:
        # What the client sends then is its own newest model's name, which nobody here knows.
        variable = next(name for name, key, _ in reversed(VARIABLES) if key == alias_key)
        told = {"where": model.place, "alias": name, "variable": variable}
        kept = [one for one in kept if one.item.key != "model.name"]
        return kept, {"model.name": Message("K3C-155", told)}
    if target is not None and isinstance(target.value, str):
        meant = replace(
            target,
            item=replace(target.item, key="model.name", rank=model.item.rank, rival=False),
            value=_MARK.sub("", target.value.strip()),
        )
        # No rival either: the alias and what it stands for say the same.
        alias = replace(model, item=replace(model.item, rival=False))
        return [alias if one is model else one for one in kept] + [meant], {}
    if name != model.value:
        # Nobody may write the shorter name into the file: the mark is right there.
        plain = replace(model, value=name, line=None, where=model.place.split("  ")[0])
        return [plain if one is model else one for one in kept], {}
    return kept, {}


def review(found: Sequence[Found]) -> tuple[Message, ...]:
    """Notes on all files and the shell together."""
    notes = []
    auths = {one.value for one in found if one.item.key == "link.auth"} - {"both"}
    if len(auths) > 1:
        notes.append(Message("K3L-056"))
    by_key = {one.item.key: one for one in found}
    model = by_key.get("model.name")
    if model is not None and "api.base_url" in by_key and "client.background_model" not in by_key:
        notes.append(Message("K3C-115", {"where": model.place}))
    return tuple(notes)


def layers(path: Path, _document: Document, env: Mapping[str, str]) -> tuple[Layer, ...]:
    """The files that the client merges with this one, by its place."""
    home = Path(env["HOME"]) if env.get("HOME") else None
    user = home / ".claude" / "settings.json" if home else None
    names = ("settings.json", "settings.local.json")
    if path.parent.name != ".claude" or path.name not in names:
        # Only managed settings are above a file of --settings.
        return (Layer(path),) if path == MANAGED else (Layer(path), Layer(MANAGED))
    project = [path.parent / name for name in names]
    below = [user] if user is not None and user not in project else []
    return tuple(Layer(file) for file in (*below, *project, MANAGED))


DIALECT = table_dialect(
    name="claude-code",
    title="Claude Code's settings.json",
    looks_for='an "env" table with ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY, ANTHROPIC_MODEL',
    fields=_FIELDS,
    recognise=recognise,
    open_=True,
    finish=finish,
    layers=layers,
    resolve=resolve,
    review=review,
    clients=(CLIENT,),
    speaks="messages",
    precedence="managed > `--settings` > `.claude/settings.local.json` > `.claude/settings.json` > "
    "`~/.claude/settings.json` > shell; `ANTHROPIC_AUTH_TOKEN` before `ANTHROPIC_API_KEY`",
)
