"""What is set up on this machine: for each tool, the endpoint that it would use, and from where.

Given no file, ``k3check link --discover`` lists this. Only known places are read; nothing is sent,
nothing is written, and keys are masked. Source: section E of the link specification.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from k3check.link.jsonsafe import get
from k3check.link.redact import masked, one_line
from k3check.link.urls import Base
from k3check.report.model import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

_MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class Value:
    """One effective value: as shown, and where it comes from."""

    shown: str
    origin: str


@dataclass(frozen=True)
class Setup:
    """What one tool would use.

    Attributes:
        tool: its name, with the provider's where it has several.
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


def discover(machine: Machine) -> tuple[Setup, ...]:
    """Every tool's setup that leaves a trace on this machine."""
    return tuple(setup for reader in READERS for setup in reader(machine))


def _read(path: Path) -> tuple[Any, Message | None]:
    """A file's document, and what is wrong with the file; both None if there is none."""
    try:
        if not path.is_file():
            return None, None
        if path.stat().st_size > _MOST_BYTES:
            return None, _unreadable(path, "too large")
        text = path.read_text("utf-8-sig")
        if path.suffix == ".toml":
            return tomllib.loads(text), None
        return json.loads(text), None
    except (OSError, ValueError, RecursionError) as error:
        return None, _unreadable(path, type(error).__name__)


def _unreadable(path: Path, reason: str) -> Message:
    return Message("K3L-920", {"file": path.name, "reason": reason})


def _text(document: Any, *path: str) -> str:
    value = get(document, *path)
    return value.strip() if isinstance(value, str) else ""


_REFERENCE = re.compile(r"^\$\{?(\w+)\}?$|^\{env:(\w+)\}$|^os\.environ/(\w+)$")


@dataclass
class _Choice:
    """The strongest of several values, and the ones that it overrides."""

    env: Mapping[str, str]
    secret: bool = False
    chosen: Value | None = None
    raw: str = ""
    shadowed: tuple[Value, ...] = ()
    unresolved: Message | None = None

    def offer(self, text: str, origin: str) -> None:
        """Take a value if none stronger came before."""
        if not text:
            return
        if match := _REFERENCE.match(text):
            name = next(g for g in match.groups() if g)
            resolved = self.env.get(name, "").strip()
            if not resolved:
                values = {"origin": origin, "variable": name}
                self.unresolved = self.unresolved or Message("K3L-921", values)
                return
            text, origin = resolved, f"{origin} -> {name}"
        value = Value(masked(text) if self.secret else one_line(Base(text).shown, 120), origin)
        if self.chosen is None:
            self.chosen, self.raw = value, text
        elif text != self.raw:
            self.shadowed += (value,)


def _setup(
    tool: str, wire: str, base: _Choice, key: _Choice, model: _Choice, *remarks: Message | None
) -> Setup | None:
    """A tool's setup; None if nothing of it is set."""
    if base.chosen is None and key.chosen is None:
        return None
    notes = [r for r in (*remarks, base.unresolved, key.unresolved, model.unresolved) if r]
    url = ""
    if base.raw:
        address = Base(base.raw, wire)
        url = one_line(Base(address.url(wire), wire).shown, 200)
        if address.corrected != address.text:
            right = one_line(Base(address.corrected).shown, 120)
            notes.append(Message("K3L-922", {"right": right}))
    shadowed = (*base.shadowed, *key.shadowed, *model.shadowed)
    if shadowed:
        sources = ", ".join(v.origin for v in shadowed)
        notes.append(Message("K3L-923", {"sources": sources}))
    return Setup(tool, wire, base.chosen, key.chosen, model.chosen, url, tuple(notes), shadowed)


def _choices(machine: Machine) -> tuple[_Choice, _Choice, _Choice]:
    return _Choice(machine.env), _Choice(machine.env, secret=True), _Choice(machine.env)


def _variables(
    tool: str, wire: str, base: str, keys: tuple[str, ...], model: str, legacy: str = ""
) -> Callable[[Machine], Iterator[Setup]]:
    """A reader of a tool that looks at variables only."""

    def read(machine: Machine) -> Iterator[Setup]:
        urls, secrets, models = _choices(machine)
        for choice, names in ((urls, (base,)), (secrets, keys), (models, (model,))):
            for name in names:
                choice.offer(machine.env.get(name, "").strip(), name)
        remark = None
        if legacy and machine.env.get(legacy):
            remark = Message("K3L-924", {"legacy": legacy, "variable": base})
        made = _setup(tool, wire, urls, secrets, models, remark)
        if made is not None:
            yield made

    return read


def _k3check(machine: Machine) -> Iterator[Setup]:
    """Our own configuration in the working folder."""
    from k3check.config.load import load
    from k3check.errors import UsageError

    try:
        loaded = load(cwd=machine.cwd, env=machine.env)
    except UsageError as error:
        yield Setup(
            "k3check",
            "openai",
            remarks=(
                Message("K3L-920", {"file": one_line(error.where or "-"), "reason": error.code}),
            ),
        )
        return
    urls, secrets, models = _choices(machine)
    api, origins = loaded.config.api, loaded.origins

    def origin(key: str) -> str:
        return str(origins[key]) if key in origins else "default"

    urls.offer((api.base_url or "").strip(), origin("api.base_url"))
    if api.api_key is not None:
        secrets.offer(api.api_key.get_secret_value().strip(), origin("api.api_key"))
    models.offer(loaded.config.model.name.strip(), origin("model.name"))
    made = _setup("k3check", "openai", urls, secrets, models)
    if made is not None:
        yield made


def _claude_code(machine: Machine) -> Iterator[Setup]:
    """Claude Code: the env block of the settings, strongest file first, then the shell."""
    files = (
        machine.cwd / ".claude" / "settings.local.json",
        machine.cwd / ".claude" / "settings.json",
        machine.home / ".claude" / "settings.json",
    )
    urls, bearer, models = _choices(machine)
    api_key = _Choice(machine.env, secret=True)
    remarks: list[Message | None] = []
    for file in files:
        document, problem = _read(file)
        remarks.append(problem)
        block = get(document, "env")
        if not isinstance(block, dict):
            continue
        remarks += [
            Message("K3L-925", {"name": one_line(str(name), 60), "file": file.name})
            for name, v in block.items()
            if not isinstance(v, str)
        ]
        for choice, name in _claude_names(urls, bearer, api_key, models):
            choice.offer(_text(block, name), f"{file.parent.name}/{file.name} env.{name}")
    # The env block wins over the shell's variable of the same name.
    for choice, name in _claude_names(urls, bearer, api_key, models):
        choice.offer(machine.env.get(name, "").strip(), name)
    if bearer.chosen is not None and api_key.chosen is not None:
        remarks.append(Message("K3L-056"))
    key = bearer if bearer.chosen is not None else api_key
    absent = [
        name
        for name, choice in (
            ("ANTHROPIC_BASE_URL", urls),
            ("ANTHROPIC_AUTH_TOKEN or ANTHROPIC_API_KEY", key),
            ("ANTHROPIC_MODEL", models),
        )
        if choice.chosen is None
    ]
    if absent and len(absent) < 3:
        remarks.append(Message("K3L-057", {"missing": ", ".join(absent)}))
    made = _setup("Claude Code", "anthropic", urls, key, models, *remarks)
    if made is not None:
        yield made


def _claude_names(
    urls: _Choice, bearer: _Choice, api_key: _Choice, models: _Choice
) -> tuple[tuple[_Choice, str], ...]:
    return (
        (urls, "ANTHROPIC_BASE_URL"),
        (bearer, "ANTHROPIC_AUTH_TOKEN"),
        (api_key, "ANTHROPIC_API_KEY"),
        (models, "ANTHROPIC_MODEL"),
    )


def _codex(machine: Machine) -> Iterator[Setup]:
    """Codex: the provider that model_provider names, and the key from its env_key or auth.json."""
    document, problem = _read(machine.home / ".codex" / "config.toml")
    auth, _ = _read(machine.home / ".codex" / "auth.json")
    if document is None and auth is None and not problem:
        return
    urls, secrets, models = _choices(machine)
    remarks: list[Message | None] = [problem]
    name = _text(document, "model_provider") or "openai"
    provider = get(document, "model_providers", name)
    if provider is None and name != "openai":
        remarks.append(Message("K3L-058", {"provider": one_line(name, 60)}))
    origin = f".codex/config.toml model_providers.{name}"
    urls.offer(_text(provider, "base_url"), f"{origin}.base_url")
    variable = _text(provider, "env_key")
    if variable:
        # A key written there must not be shown as a variable's name.
        named = re.fullmatch(r"[A-Z_][A-Z0-9_]*", variable) is not None
        shown = variable if named else "?"
        secrets.offer(machine.env.get(variable, "").strip(), f"{origin}.env_key -> {shown}")
        if not named:
            remarks.append(Message("K3L-059"))
        elif not machine.env.get(variable):
            values = {"origin": f"{origin}.env_key", "variable": variable}
            remarks.append(Message("K3L-921", values))
    secrets.offer(_text(provider, "experimental_bearer_token"), f"{origin}.bearer token")
    secrets.offer(_text(auth, "OPENAI_API_KEY"), ".codex/auth.json OPENAI_API_KEY")
    models.offer(_text(document, "model"), ".codex/config.toml model")
    if _text(provider, "wire_api") == "chat":
        remarks.append(Message("K3L-064"))
    if _text(auth, "base_url"):
        remarks.append(Message("K3L-065"))
    made = _setup("Codex", "responses", urls, secrets, models, *remarks)
    if made is not None:
        yield made


def _kimi_code(machine: Machine) -> Iterator[Setup]:
    """Kimi Code: every provider of its configuration."""
    document, problem = _read(machine.home / ".kimi-code" / "config.toml")
    if problem:
        yield Setup("Kimi Code", "openai", remarks=(problem,))
    providers = get(document, "providers")
    for name, provider in (providers if isinstance(providers, dict) else {}).items():
        urls, secrets, models = _choices(machine)
        origin = f".kimi-code/config.toml providers.{name}"
        kind = _text(provider, "type")
        wire = {"anthropic": "anthropic", "openai_responses": "responses"}.get(kind, "openai")
        urls.offer(_text(provider, "base_url"), f"{origin}.base_url")
        secrets.offer(_text(provider, "api_key"), f"{origin}.api_key")
        alias = _text(document, "default_model")
        if _text(document, "models", alias, "provider") == name:
            models.offer(_text(document, "models", alias, "model"), f"models.{alias}.model")
        made = _setup(f"Kimi Code ({one_line(name, 40)})", wire, urls, secrets, models)
        if made is not None:
            yield made


def _opencode(machine: Machine) -> Iterator[Setup]:
    """opencode: every provider with a base URL of its own."""
    for file in (
        machine.cwd / "opencode.json",
        machine.home / ".config" / "opencode" / "opencode.json",
    ):
        document, problem = _read(file)
        if problem:
            yield Setup("opencode", "openai", remarks=(problem,))
        providers = get(document, "provider")
        for name, provider in (providers if isinstance(providers, dict) else {}).items():
            urls, secrets, models = _choices(machine)
            origin = f"{file.name} provider.{name}.options"
            urls.offer(_text(provider, "options", "baseURL"), f"{origin}.baseURL")
            secrets.offer(_text(provider, "options", "apiKey"), f"{origin}.apiKey")
            listed = get(provider, "models")
            if isinstance(listed, dict) and listed:
                models.offer(str(next(iter(listed))), f"provider.{name}.models")
            made = _setup(f"opencode ({one_line(name, 40)})", "openai", urls, secrets, models)
            if made is not None:
                yield made


def _dotenv(machine: Machine) -> Iterator[Setup]:
    """A .env file in the working folder: its variables, read as the SDKs' own."""
    path = machine.cwd / ".env"
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return
        text = path.read_text("utf-8-sig")
    except (OSError, ValueError) as error:
        yield Setup(".env", "openai", remarks=(_unreadable(path, type(error).__name__),))
        return
    found: dict[str, str] = {}
    for line in text.splitlines():
        if match := re.match(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*$", line):
            value = match.group(2)
            if value[:1] in "\"'" and value[:1] == value[-1:] and len(value) > 1:
                value = value[1:-1]
            found[match.group(1)] = value
    inside = Machine(machine.home, machine.cwd, found)
    for reader in _SDKS:
        for setup in reader(inside):
            yield Setup(
                f".env ({setup.tool})", setup.wire, setup.base_url, setup.key, setup.model,
                setup.url, setup.remarks, setup.shadowed,
            )  # fmt: skip


def _unread(machine: Machine) -> Iterator[Setup]:
    """Files that are there but of a format that k3check does not read."""
    for tool, path in (
        ("Continue", machine.home / ".continue" / "config.yaml"),
        ("LiteLLM", machine.cwd / "litellm_config.yaml"),
        ("LiteLLM", machine.cwd / "config.yaml"),
    ):
        try:
            there = path.is_file()
        except OSError:
            there = False
        if there:
            yield Setup(tool, "openai", remarks=(Message("K3L-926", {"file": path.name}),))


_SDKS: tuple[Callable[[Machine], Iterator[Setup]], ...] = (
    _variables("OpenAI SDK", "openai", "OPENAI_BASE_URL", ("OPENAI_API_KEY",), "OPENAI_MODEL",
               "OPENAI_API_BASE"),
    _variables("Anthropic SDK", "anthropic", "ANTHROPIC_BASE_URL",
               ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"), "ANTHROPIC_MODEL"),
    _variables("kimi-cli", "openai", "KIMI_BASE_URL", ("KIMI_API_KEY",), "KIMI_MODEL_NAME"),
    _variables("Moonshot", "openai", "MOONSHOT_BASE_URL", ("MOONSHOT_API_KEY",),
               "MOONSHOT_MODEL"),
)  # fmt: skip
READERS: tuple[Callable[[Machine], Iterator[Setup]], ...] = (
    _k3check,
    _claude_code,
    _codex,
    _kimi_code,
    _opencode,
    _dotenv,
    *_SDKS,
    _unread,
)
