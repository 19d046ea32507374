"""What is set up on this machine: for each tool, the endpoint that it would use, and from where.

Given no file, ``k3check link --discover`` lists this. Files are found in their tools' known places
and read as ``-c FILE`` reads them, by the dialects of :mod:`k3check.config`, so that the list and
the check never disagree. Nothing is sent, nothing is written, and keys are masked. Source: section
E of the link specification.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from k3check.config.dialects.dotenv import FAMILIES
from k3check.config.load import VARIABLES, load
from k3check.errors import UsageError
from k3check.link.request import protocol_of
from k3check.link.wire.redact import one_line, without_keys
from k3check.link.wire.urls import Base
from k3check.masking import MASK
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from k3check.config.client import Client
    from k3check.config.dialects.dotenv import Family
    from k3check.config.loaded import Loaded

# Nothing is there, or the file is of another purpose than an endpoint's.
_NOT_OURS = ("K3C-001", "K3C-007", "K3C-020")
# A list of variables of which none is an SDK's is taken for TOML, which it is not.
_NO_VARIABLES = ("K3C-011", "K3C-012", "K3C-017")
_NO_YAML = "K3C-120"
_INCOMPLETE = "K3L-057"
_EXTENSIONS = {"vscode-oaicopilot": "VS Code", "vscode-copilot": "VS Code"}
_ENDPOINT = ("api.base_url", "api.api_key", "model.name")
# Sources that set a value and say nothing about who uses it.
_UNSET = "default"


@dataclass(frozen=True)
class Value:
    """One effective value: as shown, and where it comes from."""

    shown: str
    origin: str


@dataclass(frozen=True)
class Setup:
    """What one tool would use.

    Attributes:
        tool: its name.
        wire: ``openai``, ``anthropic`` or ``responses``.
        base_url, key, model: effective values; None where nothing sets them. The key is masked.
        url: where its requests go, empty without a base URL.
        remarks: what is wrong or worth knowing.
        shadowed: values that something stronger overrides.
    """

    tool: str
    wire: str
    base_url: Value | None = None
    key: Value | None = None
    model: Value | None = None
    url: str = ""
    remarks: tuple[Message, ...] = ()
    shadowed: tuple[Value, ...] = ()


@dataclass(frozen=True)
class Machine:
    """Where to look: the home folder, the working folder, the variables."""

    home: Path
    cwd: Path
    env: Mapping[str, str]


def _places(machine: Machine) -> tuple[tuple[str, tuple[Path, ...]], ...]:
    """Each tool and its files; of several the first that describes an endpoint stands for all.

    Where a client merges its files, the dialect reads the others together with it.
    """
    home, cwd = machine.home, machine.cwd
    return (
        ("Claude Code", (
            cwd / ".claude" / "settings.local.json",
            cwd / ".claude" / "settings.json",
            home / ".claude" / "settings.json",
        )),
        ("Claude Code in VS Code", (cwd / ".vscode" / "settings.json",)),
        ("claude-code-router", (home / ".claude-code-router" / "config.json",)),
        ("Codex", (home / ".codex" / "config.toml", home / ".codex" / "auth.json")),
        ("Kimi Code", (home / ".kimi-code" / "config.toml",)),
        ("opencode", (cwd / "opencode.json",)),
        ("opencode", (home / ".config" / "opencode" / "opencode.json",)),
        ("Crush", (
            cwd / ".crush.json", cwd / "crush.json", home / ".config" / "crush" / "crush.json",
        )),
        ("Continue", (home / ".continue" / "config.yaml", home / ".continue" / "config.json")),
        ("LiteLLM", (cwd / "litellm_config.yaml", cwd / "config.yaml")),
        ("OpenClaw", (home / ".openclaw" / "openclaw.json",)),
        ("PicoClaw", (home / ".picoclaw" / "config.json",)),
        ("Kilo Code", (home / ".kilocode" / "cli" / "config.json",)),
        ("Qwen Code", (cwd / ".qwen" / "settings.json", home / ".qwen" / "settings.json")),
        ("Zed", (cwd / ".zed" / "settings.json", home / ".config" / "zed" / "settings.json")),
        ("Goose", (home / ".config" / "goose" / "config.yaml",)),
        ("Aider", (cwd / ".aider.conf.yml", home / ".aider.conf.yml")),
        ("LibreChat", (cwd / "librechat.yaml",)),
        (".env", (cwd / ".env",)),
    )  # fmt: skip


_SDKS = {
    "OPENAI_*": "OpenAI SDK",
    "ANTHROPIC_*": "Anthropic SDK",
    "KIMI_*": "kimi-cli",
    "MOONSHOT_*": "Moonshot",
}


def discover(machine: Machine) -> tuple[Setup, ...]:
    """Every tool's setup that leaves a trace on this machine."""
    return tuple(_all(machine))


def _all(machine: Machine) -> Iterator[Setup]:
    yield from _read("k3check", None, machine, machine.env)
    # Our own variables override the file that is checked, not what other tools do.
    others = {n: v for n, v in machine.env.items() if n not in VARIABLES}
    others["HOME"] = str(machine.home)
    for tool, paths in _places(machine):
        for path in paths:
            found = tuple(_read(tool, path, machine, others))
            if found:
                login = _login_ignored(tool, path, machine, others)
                yield from (_short(replace(s, remarks=(*s.remarks, *login)), machine)
                            for s in found)  # fmt: skip
                break
    for family in FAMILIES:
        yield from _of_shell(family, machine.env)


def _read(
    tool: str, path: Path | None, machine: Machine, env: Mapping[str, str]
) -> Iterator[Setup]:
    """A tool's setup by its file; nothing if that describes no endpoint."""
    named = path
    if path is not None and path.is_relative_to(machine.cwd):
        named = path.relative_to(machine.cwd)  # as the user would name it
    try:
        loaded = load(named, cwd=machine.cwd, env=env)
    except UsageError as error:
        name = path.name if path is not None else one_line(error.where or "-")
        if error.code == _NO_YAML:
            yield Setup(tool, "openai", remarks=(Message("K3L-926", {"file": name}),))
        elif error.code not in _NOT_OURS + (_NO_VARIABLES if tool == ".env" else ()):
            values = {"file": name, "reason": f"{one_line(error.what)} [{error.code}]"}
            yield Setup(tool, "openai", remarks=(Message("K3L-920", values),))
        return
    # An editor's file may be of another extension than the one that is named here.
    tool = _EXTENSIONS.get(loaded.dialect or "", tool)
    made = _setup(tool, loaded)
    if made is not None:
        yield made


def _login_ignored(
    tool: str, path: Path, machine: Machine, env: Mapping[str, str]
) -> tuple[Message, ...]:
    """Codex takes nothing but the key from the login beside its configuration."""
    login = path.parent / "auth.json"
    if tool != "Codex" or path == login:
        return ()
    try:
        origin = load(login, cwd=machine.cwd, env=env).origins["api.base_url"]
    except UsageError:
        return ()
    return (Message("K3L-065"),) if origin.where != _UNSET else ()


def _short(setup: Setup, machine: Machine) -> Setup:
    """The same with ``~`` for the home folder."""
    home = str(machine.home)

    def text(value: str) -> str:
        return value.replace(home + "/", "~/") if len(home) > 1 else value

    def value(given: Value | None) -> Value | None:
        return given and replace(given, origin=text(given.origin))

    def remark(given: Message) -> Message:
        values = {k: text(v) if isinstance(v, str) else v for k, v in given.values.items()}
        return replace(given, values=values)

    return replace(
        setup,
        base_url=value(setup.base_url),
        key=value(setup.key),
        model=value(setup.model),
        remarks=tuple(remark(r) for r in setup.remarks),
        shadowed=tuple(replace(v, origin=text(v.origin)) for v in setup.shadowed),
    )


def _setup(tool: str, loaded: Loaded) -> Setup | None:
    """What a configuration sets; None if it is no endpoint's."""
    wire, config = protocol_of(loaded), loaded.config
    key = config.api.api_key.get_secret_value().strip() if config.api.api_key else ""
    given = {
        "api.base_url": (config.api.base_url or "").strip(),
        "api.api_key": key,
        "model.name": config.model.name.strip(),
    }
    values: dict[str, Value] = {}
    shadowed: list[Value] = []
    for name in _ENDPOINT:
        origin = loaded.origins[name]
        if origin.where != _UNSET and given[name]:
            values[name] = Value(_shown(name, given[name]), str(origin))
        shadowed += [
            Value(_shown(name, text), where)
            for (where, text), repeated in zip(origin.shadows, origin.repeats, strict=True)
            if not repeated
        ]
    # What is missing of Claude Code's three is told at once, below.
    notes = [note for note in loaded.messages if note.code != _INCOMPLETE]
    if not values and (not notes or loaded.path is None):
        return None
    base = given["api.base_url"]
    url, more = _address(base, wire, loaded.client) if base else ("", [])
    made = Setup(
        tool, wire, values.get("api.base_url"), values.get("api.api_key"),
        values.get("model.name"), url, (*notes, *more), tuple(shadowed),
    )  # fmt: skip
    return replace(made, remarks=(*made.remarks, *_incomplete(made)))


def _shown(name: str, text: str) -> str:
    """A value as it may be shown; nothing of a key is, so never compare two shown values."""
    if name == "api.api_key":
        return MASK
    return one_line(without_keys(text), 120)


def _address(base: str, wire: str, client: Client | None) -> tuple[str, list[Message]]:
    """Where requests go, and the right address if that is another."""
    address = Base(base, wire, client if client is not None and client.wire == wire else None)
    shown = one_line(without_keys(address.url(wire)), 200)
    if address.corrected == address.text:
        return shown, []
    right = one_line(without_keys(address.corrected), 120)
    return shown, [Message("K3L-922", {"right": right})]


def _incomplete(setup: Setup) -> list[Message]:
    """Claude Code uses its own login where a part of the three is missing."""
    if setup.wire != "anthropic" or not setup.tool.startswith("Claude Code"):
        return []
    absent = [
        name
        for name, value in (
            ("ANTHROPIC_BASE_URL", setup.base_url),
            ("ANTHROPIC_AUTH_TOKEN or ANTHROPIC_API_KEY", setup.key),
            ("ANTHROPIC_MODEL", setup.model),
        )
        if value is None
    ]
    return [Message(_INCOMPLETE, {"missing": ", ".join(absent)})] if 0 < len(absent) < 3 else []


def _of_shell(family: Family, env: Mapping[str, str]) -> Iterator[Setup]:
    """A client that looks at the shell's variables alone; the later of several names wins."""
    values: dict[str, Value] = {}
    given: dict[str, str] = {}
    shadowed: list[Value] = []
    for name, key in family.names().items():
        text = env.get(name, "").strip()
        if not text:
            continue
        if given.get(key, text) != text:
            shadowed.append(values[key])
        values[key], given[key] = Value(_shown(key, text), name), text
    if "api.base_url" not in values and "api.api_key" not in values:
        return
    base = given.get("api.base_url")
    url, remarks = _address(base, family.wire, family.client) if base else ("", [])
    if family.current and env.get(family.bases[0]) and not env.get(family.current):
        legacy = {"legacy": family.bases[0], "variable": family.current}
        remarks.append(Message("K3L-924", legacy))
    if shadowed:
        sources = ", ".join(value.origin for value in shadowed)
        remarks.append(Message("K3L-923", {"sources": sources}))
    yield Setup(
        _SDKS[family.name], family.wire, values.get("api.base_url"), values.get("api.api_key"),
        values.get("model.name"), url, tuple(remarks), tuple(shadowed),
    )  # fmt: skip
